"""``deskhand doctor``: what works here and what to do about the rest. Run by ``cli.py``.

It looks at each part as the program would use it, all at the same time and within bounds: no server is started, no model is
asked anything, no secret is shown; a probe is written to each folder and to the keyring, and taken away again.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import secrets
import shutil
import sys
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

from desktop import __version__, exit_codes, processes
from desktop.credentials import Credentials
from desktop.errors import AssistantError, os_reason
from desktop.paths import Paths, private_folder
from desktop.settings import Settings
from desktop.visible_text import visible_line

#: Seconds for one part; a keyring may show a dialog and wait for a person.
_LONGEST = 20.0
_LONGEST_KEYRING = 8.0
_LONGEST_WINDOW = 15.0
_LONGEST_BUS = 3.0
_LEAST_SPACE = 200 * 2**20
_PACKAGES = ("PySide6-Essentials", "qasync", "mcp", "litellm", "keyring")


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    found: str
    remedy: str = ""
    """What to do; empty where all is well."""
    needed: bool = False
    """Whether Deskhand can't do its work without it."""


async def doctor(*, as_json: bool) -> int:
    """Prints the report. Returns 1 when something that Deskhand needs is missing or broken."""
    paths = Paths.for_user()
    settings, credentials = Settings(paths.settings_file), Credentials()
    parts: dict[str, Awaitable[list[Check]]] = {
        "Python": _python(),
        "Window": _window(),
        "Notifications": _notifications(),
        "Keyring and keys": _keyring(credentials, settings),
        "Files": _files(paths, settings),
        "Servers": _servers(paths),
        "Models": _models(settings),
    }
    found = await asyncio.gather(*(_bounded(name, part) for name, part in parts.items()))
    checks = [check for part in found for check in part]
    failed = any(check.needed and not check.ok for check in checks)
    if as_json:
        report = {"version": __version__, "ok": not failed, "checks": [asdict(check) for check in checks]}
        print(json.dumps(report, ensure_ascii=False))
    else:
        print(f"Deskhand {__version__}")
        for check in checks:
            print(f"{'✔' if check.ok else '✘' if check.needed else '!'} {check.name}: {check.found}")
            if check.remedy:
                print(f"    {check.remedy}")
        print("Something that Deskhand needs is missing; see ✘." if failed else "Deskhand can do its work here.")
    return exit_codes.FAILED if failed else exit_codes.DONE


async def _bounded(name: str, part: Awaitable[list[Check]]) -> list[Check]:
    try:
        async with asyncio.timeout(_LONGEST):
            return await part
    except TimeoutError:
        return [Check(name, False, f"no answer within {_LONGEST:.0f} seconds", "Try again when the computer is idle.")]


def _check(name: str, ok: bool, found: str, remedy: str, *, needed: bool = False) -> Check:
    return Check(name, ok, found, "" if ok else remedy, needed)


async def _python() -> list[Check]:
    system = f"{platform.python_version()} on {platform.system()} {platform.release()}"
    checks = [_check("Python", sys.version_info >= (3, 11), system, "Install Python 3.11 or newer.", needed=True)]
    for package in _PACKAGES:
        try:
            checks.append(Check(package, True, metadata.version(package), needed=True))
        except metadata.PackageNotFoundError:
            checks.append(Check(package, False, "not installed", f"Install {package}.", needed=True))
    return checks


async def _window() -> list[Check]:
    """Asks a process of its own: Qt ends the process that has no screen."""
    own = [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "desktop"]
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    try:
        ended = await processes.run(
            [*own, "--check-window"], environment=environment, time_limit=_LONGEST_WINDOW, output_limit=65536
        )
        found = json.loads(ended.output) if ended.status == 0 else None
    except (OSError, ValueError, TimeoutError):
        found = None
    if found is None:
        screen = any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))) or sys.platform != "linux"
        if screen:
            remedy = "Run `deskhand` in a terminal: it names what Qt misses, on Linux mostly a library such as libxcb-cursor0."
            return [Check("Window", False, "Qt can't open one", remedy, needed=True)]
        remedy = "Start the window from a desktop; the commands work here."
        return [Check("Window", False, "there is no screen", remedy)]
    tray = _check(
        "Tray", found["tray"], "there" if found["tray"] else "none", "Closing the window quits Deskhand here."
    )
    return [Check("Window", True, f"Qt's platform “{found['platform']}”", needed=True), tray]


async def _notifications() -> list[Check]:
    if sys.platform != "linux":
        return [Check("Notifications", True, "the system's own")]
    service = await asyncio.to_thread(_notification_service)
    remedy = (
        "Start a notification service (part of every usual desktop); without one only the tray's mark tells of changes."
    )
    return [_check("Notifications", bool(service), service or "no service on the session bus", remedy)]


def _notification_service() -> str:
    """The service's name and version, or ""."""
    from jeepney import DBusAddress, new_method_call
    from jeepney.io.blocking import open_dbus_connection

    name = "org.freedesktop.Notifications"
    question = new_method_call(DBusAddress("/org/freedesktop/Notifications", name, name), "GetServerInformation")
    try:
        with open_dbus_connection(bus="SESSION") as connection:
            title, _, version, *_ = connection.send_and_get_reply(question, timeout=_LONGEST_BUS).body
    except Exception:  # whatever there is instead of a bus or a service
        return ""
    return visible_line(f"{title} {version}", 80)


async def _keyring(credentials: Credentials, settings: Settings) -> list[Check]:
    """Whether a value can be kept and had again, and which models' keys there are."""
    name, value = "doctor", secrets.token_hex(16)
    remedy = "Unlock, install or start the system's keyring; until then keys and secrets last for one run only."
    try:
        async with asyncio.timeout(_LONGEST_KEYRING):
            kept = await credentials.set(name, value) and await credentials.get(name) == value
            await credentials.delete(name)
    except (TimeoutError, AssistantError):
        return [Check("Keyring", False, "locked or not answering", remedy)]
    works = _check("Keyring", kept, credentials.backend or "none of the system's", remedy)
    return [works, *await _keys(credentials, settings)]


async def _keys(credentials: Credentials, settings: Settings) -> list[Check]:
    from desktop.assistant.model_list import PROVIDERS, credential_name, needs_key, provider_of

    async def where(credential: str, variable: str) -> str:
        if await credentials.get(credential):
            return "in the keyring"
        return f"in {variable}" if variable and os.environ.get(variable) else ""

    known = {each.title: await where(each.credential, each.key_variable) for each in PROVIDERS if each.address}
    present = ", ".join(f"{title} {place}" for title, place in known.items() if place)
    checks = [Check("Keys of models", True, present or "none")]
    model, address = settings.values.model, settings.values.api_base
    if not model:
        return [Check("Model", True, "none chosen: Guide answers, which is no language model"), *checks]
    provider = provider_of(model)
    key = await where(credential_name(model, address), provider.key_variable if provider and not address else "")
    found = f"{visible_line(model)}, its key {key or 'is not there'}"
    if not key and not needs_key(model, address):
        found = f"{visible_line(model)}, without a key"
    remedy = "Enter its key in the settings under Models."
    return [_check("Model", bool(key) or not needs_key(model, address), found, remedy, needed=True), *checks]


async def _files(paths: Paths, settings: Settings) -> list[Check]:
    remedy = "Correct the file or take it away; Deskhand goes by its defaults and never overwrites it."
    told = str(paths.settings_file)
    if settings.fault:
        told += f" can't be read ({settings.fault})"
    elif not await asyncio.to_thread(paths.settings_file.exists):
        told += " is not there yet; all settings are as they come"
    folders = {
        "Settings and servers": paths.config,
        "Conversations": paths.data,
        "Cache": paths.cache,
        "Logs": paths.logs,
        "Stored results": paths.results,
    }
    checks = [_check("Settings", settings.fault is None, told, remedy)]
    for name, folder in folders.items():
        fault = await asyncio.to_thread(_fault_of, folder)
        what = "Make room on the disk, or see that the folder belongs to you and can be written."
        found = f"{folder} can't be written: {fault}" if fault else str(folder)
        checks.append(_check(name, not fault, found, what, needed=True))
    checks += await asyncio.to_thread(lambda: list(_space(folders.values())))
    return checks


def _fault_of(folder: Path) -> str:
    """Why nothing can be written in a folder, or ""."""
    probe = folder / f".doctor-{secrets.token_hex(8)}"
    try:
        private_folder(folder)
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        return os_reason(error)
    return ""


def _space(folders: Iterable[Path]) -> Iterator[Check]:
    """The disks that the folders are on, each once."""
    seen: set[int] = set()
    for folder in folders:
        try:
            disk, free = folder.stat().st_dev, shutil.disk_usage(folder).free
        except OSError:
            continue  # said already
        if disk not in seen:
            seen.add(disk)
            found = f"{free / 2**30:.1f} GiB free at {folder}"
            yield _check("Disk space", free >= _LEAST_SPACE, found, "Make room: conversations and results need some.")


async def _servers(paths: Paths) -> list[Check]:
    from desktop.host.consent import Consent
    from desktop.host.programs import find_program
    from desktop.host.runtimes import runtime_of
    from desktop.host.server_config import ServerDefinition
    from desktop.host.servers_file import read_configuration

    configuration = await asyncio.to_thread(read_configuration, paths.servers_file)
    unreadable = any(fault.code == "configuration_unreadable" for fault in configuration.faults)
    found = f"{paths.servers_file}, {len(configuration.definitions)} servers"
    if not await asyncio.to_thread(paths.servers_file.exists):
        found = f"{paths.servers_file} is not there yet; no servers"
    checks = [Check("Servers", True, found)] if not unreadable else []
    for fault in configuration.faults:
        name = f"Server {visible_line(fault.server)}" if fault.server else f"Servers ({paths.servers_file})"
        checks.append(Check(name, False, visible_line(fault.message, 400), fault.hint, needed=unreadable))
    consent = Consent(paths.data / "consent.json")

    async def check(definition: ServerDefinition) -> Check:
        name = f"Server {definition.name}"
        if definition.disabled:
            return Check(name, True, "disabled")
        if definition.kind != "stdio":
            return Check(name, True, f"{definition.kind} at {urlsplit(definition.url).hostname}")
        program = await find_program(definition.command, definition.env, definition.cwd)
        if not program.path:
            runtime = runtime_of(definition.command)
            remedy = f"Install {runtime.title}: {runtime.site}" if runtime else "Install it, or give its full path."
            return Check(name, False, str(program), remedy)
        if definition.cwd is not None and not await asyncio.to_thread(os.path.isdir, definition.cwd):
            return Check(name, False, f"its folder {definition.cwd} is not there", "Make the folder, or correct `cwd`.")
        allowed = consent.given(definition)
        found = str(program) if allowed else f"{program}, not allowed to start yet"
        return _check(name, allowed, found, "Look at its command in the servers panel and allow it there.")

    return [*checks, *await asyncio.gather(*map(check, configuration.definitions))]


async def _models(settings: Settings) -> list[Check]:
    from desktop.assistant.model_list import find_local_models
    from desktop.host.sentence_encoder import is_installed

    local = await find_local_models()
    by_meaning = "by words and by meaning" if is_installed() else "by words; by meaning, too, with deskhand[semantic]"
    running = ", ".join(visible_line(model.title) for model in local) or "none running"
    return [Check("Local models", True, running), Check("Search in the window", True, by_meaning)]
