"""Bundles of a server with its program (``.mcpb``, formerly ``.dxt``): what they say of themselves, and the entry for one.

Used by the bundle dialog.

A bundle is a ZIP file with a ``manifest.json``. Looking at one unpacks nothing; it is unpacked into a folder of its own in
Deskhand's data (``bundle_archive``). What was looked at is what is unpacked: its hash is compared.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from desktop.errors import AssistantError, os_reason
from desktop.host import bundle_archive
from desktop.host.config_import import unreadable
from desktop.host.foreign_document import NotUnderstood, document
from desktop.host.foreign_entry import Entry, literal
from desktop.paths import private_folder

_MOST_OPTIONS = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_FORM = re.compile(r"\$\{([^{}]*)\}")

OptionKind = Literal["string", "number", "boolean", "directory", "file"]
Value = str | float | bool | list[str]


@dataclass(frozen=True)
class Option:
    """Something the bundle has the person enter. Texts are the bundle's own and untrusted."""

    name: str
    kind: OptionKind
    title: str
    description: str
    required: bool
    multiple: bool
    sensitive: bool
    default: Value | None


@dataclass(frozen=True)
class Bundle:
    """What a bundle says of itself; untrusted texts."""

    file: Path
    digest: str
    name: str
    title: str
    version: str
    description: str
    author: str
    options: tuple[Option, ...]
    command: Mapping[str, Any]
    """``command``, ``args`` and ``env`` for this system, with the bundle's own variables."""

    def folder(self, data: Path) -> Path:
        """Where it is unpacked below Deskhand's folder of data."""
        return data / "bundles" / f"{self.name}-{self.digest[:12]}"

    def entry(self, values: Mapping[str, Value], folder: Path) -> tuple[Entry, dict[str, str]]:
        """The entry for Deskhand's file, and the secrets for the keyring by the names the entry refers to them.

        `values` are what was entered, by the options' names. Raises AssistantError ``import_unreadable``.
        """
        known: dict[str, str] = {
            "__dirname": str(folder),
            "HOME": str(Path.home()),
            **{name.upper(): str(Path.home() / name) for name in ("Desktop", "Documents", "Downloads")},
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        secrets: dict[str, str] = {}
        for option in self.options:
            value = values.get(option.name, option.default)
            value = "" if value is None else value
            if option.sensitive and value not in ("", []):
                secrets[option.name] = _text(value)
            known[f"user_config.{option.name}"] = _text(value)
        lists = {
            f"user_config.{option.name}": cast("list[str]", values.get(option.name, option.default) or [])
            for option in self.options
            if option.multiple
        }

        def filled(text: str, *, in_value: bool) -> str:
            parts = _FORM.split(text)
            result: list[str] = []
            for number, part in enumerate(parts):
                if not number % 2:
                    if "${" in part:
                        raise unreadable("its manifest has a variable without an end")
                    result.append(part.replace("$", "$$") if in_value else part)
                elif part.removeprefix("user_config.") in secrets and part.startswith("user_config."):
                    if not in_value:
                        raise unreadable("its manifest puts a secret into an argument, where every program can read it")
                    result.append(f"${{keyring:{part.removeprefix('user_config.')}}}")
                elif part in known:
                    if not in_value and "${" in known[part]:
                        raise unreadable("a value with `${` can't stand in an argument")
                    result.append(literal(known[part]) if in_value else known[part])
                else:
                    raise unreadable("its manifest has a variable that is not known")
            whole = "".join(result)
            return f"${whole}" if in_value and whole.startswith("!") else whole

        arguments: list[str] = []
        for argument in self.command["args"]:
            match = _FORM.fullmatch(argument)
            if match and match[1] in lists:  # one argument for each
                if any("${" in each for each in lists[match[1]]):
                    raise unreadable("a value with `${` can't stand in an argument")
                arguments += lists[match[1]]
            else:
                arguments.append(filled(argument, in_value=False))
        variables = {name: filled(text, in_value=True) for name, text in self.command["env"].items()}
        entry: Entry = {"command": filled(self.command["command"], in_value=False), "args": arguments}
        if variables:
            entry["env"] = variables
        if self.description:
            entry["description"] = self.description
        return entry, secrets

    def unpack(self, data: Path) -> Path:
        """Unpacks it, all or nothing, and returns its folder; one that was unpacked before is used again.

        Raises AssistantError: ``import_unreadable`` (also when the file is no more what was looked at), ``storage_failed``.
        """
        folder = self.folder(data)
        if folder.is_dir():
            return folder
        try:
            private_folder(folder.parent)
            with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as temporary:
                bundle_archive.unpack(self.file, self.digest, Path(temporary) / "bundle")
                os.replace(Path(temporary) / "bundle", folder)
        except OSError as error:
            raise AssistantError("storage_failed", operation="storage", reason=os_reason(error)) from error
        return folder


def is_bundle(file: Path) -> bool:
    return file.suffix.lower() in (".mcpb", ".dxt")


def read_bundle(file: Path, *, platform: str = sys.platform) -> Bundle:
    """Looks at a bundle without unpacking it. Raises AssistantError ``import_unreadable``."""
    try:
        digest, manifest = bundle_archive.read(file)
        return _bundle(file, digest, document(manifest.decode("utf-8-sig")), platform)
    except OSError as error:
        raise unreadable(os_reason(error)) from None
    except NotUnderstood as reason:
        raise unreadable(f"of its manifest, {reason}") from None
    except UnicodeDecodeError:
        raise unreadable("its manifest is not UTF-8 text") from None


def _bundle(file: Path, digest: str, manifest: dict[str, Any], platform: str) -> Bundle:
    if not re.match(r"0\.\d", str(manifest.get("manifest_version") or manifest.get("dxt_version") or "")):
        raise unreadable("its manifest is of a version that is not known")
    name = manifest.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise unreadable("its manifest has no valid name")
    platforms = _at(manifest, "compatibility", "platforms")
    if isinstance(platforms, list) and platforms and platform not in platforms:
        raise unreadable("it is not for this system")
    command = {
        **_object(_at(manifest, "server", "mcp_config")),
        **_object(_at(manifest, "server", "mcp_config", "platform_overrides", platform)),
    }
    program: Any = command.get("command")
    arguments: Any = command.get("args") or []
    variables: Any = command.get("env") or {}
    if not isinstance(program, str) or not program.strip():
        raise unreadable("its manifest does not say how its server is started")
    if not isinstance(arguments, list) or not all(isinstance(each, str) for each in cast("list[Any]", arguments)):
        raise unreadable("its manifest's args are no list of texts")
    if not isinstance(variables, dict) or not all(
        isinstance(each, str) for each in cast("dict[str, Any]", variables).values()
    ):
        raise unreadable("its manifest's env is no object of texts")
    if unknown := command.keys() - {"command", "args", "env", "platform_overrides"}:
        raise unreadable(f"its manifest has {len(unknown)} fields for the start that are not known")
    author = _at(manifest, "author", "name")
    options: Any = manifest.get("user_config") or {}
    if not isinstance(options, dict) or len(cast("dict[str, Any]", options)) > _MOST_OPTIONS:
        raise unreadable("what its manifest asks for can't be read")
    return Bundle(
        file,
        digest,
        name,
        _string(manifest.get("display_name")) or name,
        _string(manifest.get("version")),
        _string(manifest.get("description")),
        _string(author),
        tuple(_option(key, each) for key, each in cast("dict[str, Any]", options).items()),
        {"command": program, "args": arguments, "env": variables},
    )


def _option(name: str, given: object) -> Option:
    option = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    kind = option.get("type")
    if kind not in ("string", "number", "boolean", "directory", "file") or not re.fullmatch(
        r"[A-Za-z0-9_.-]{1,100}", name
    ):
        raise unreadable("what its manifest asks for can't be read")
    multiple = option.get("multiple") is True
    default = option.get("default")
    fits = isinstance(default, list) if multiple else isinstance(default, str | int | float | bool)
    return Option(
        name,
        kind,
        _string(option.get("title")) or name,
        _string(option.get("description")),
        option.get("required") is True,
        multiple,
        option.get("sensitive") is True,
        _default(default) if fits else None,
    )


def _default(value: Any) -> Value:
    """With the variables that a default may have."""

    def filled(text: str) -> str:
        home = Path.home()
        known = {
            "HOME": str(home),
            **{each.upper(): str(home / each) for each in ("Desktop", "Documents", "Downloads")},
        }
        return _FORM.sub(lambda match: known.get(match[1], match[0]), text)

    if isinstance(value, list):
        return [filled(str(each)) for each in cast("list[Any]", value)]
    return filled(value) if isinstance(value, str) else value


def _text(value: Value) -> str:
    """A value as the server gets it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value
