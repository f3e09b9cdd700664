"""What servers offer, as plain values: the host makes them, the assistant, the command line and the window read them.

Text in these values is a server's own: untrusted. It is cleaned where it is shown (``visible_text``) and where it enters a
request to a model (``assistant/mcp_tools.py``), never here, so that fingerprints cover what the server really sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from desktop.errors import Diagnostic

Kind = Literal["tool", "resource", "template", "prompt"]
KindFilter = Literal["all", "tools", "resources", "prompts"]


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """A configured server, for the directory that the model sees."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool of a server as it was listed."""

    kind: ClassVar[Kind] = "tool"
    server: str
    name: str
    native_name: str
    """The name a model calls it by: ``tool_names.native_name``."""
    description: str
    input_schema: dict[str, Any]
    """The server's own schema: what is validated against and part of the fingerprint; never changed."""
    fingerprint: str
    """Of the whole definition (name, description, schemas, annotations), so that a changed one is noticed."""
    identity: str
    """Of the server's definition: a tool of a server that was reconfigured is another tool."""
    title: str = ""
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, bool] = field(default_factory=dict[str, bool])
    """The server's claims (``readOnlyHint`` …), boolean ones only. They change wording, never a decision."""
    icon: str = ""
    """Base64 of a PNG, JPEG or WebP image of at most 32 KiB; "" for none. Icons at an address are never fetched."""

    @property
    def identifier(self) -> str:
        return f"{self.server}.{self.name}"


@dataclass(frozen=True, slots=True)
class ResourceEntry:
    kind: ClassVar[Kind] = "resource"
    server: str
    uri: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""
    size: int | None = None
    icon: str = ""
    """As a tool's."""


@dataclass(frozen=True, slots=True)
class TemplateEntry:
    kind: ClassVar[Kind] = "template"
    server: str
    template: str
    """RFC 6570."""
    name: str
    variables: tuple[str, ...] = ()
    title: str = ""
    description: str = ""
    mime_type: str = ""
    icon: str = ""
    """As a tool's."""


@dataclass(frozen=True, slots=True)
class PromptArgument:
    name: str
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class PromptEntry:
    kind: ClassVar[Kind] = "prompt"
    server: str
    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
    icon: str = ""
    """As a tool's."""


CatalogEntry = ToolDefinition | ResourceEntry | TemplateEntry | PromptEntry


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, best first, and what could not be searched."""

    candidates: tuple[CatalogEntry, ...]
    scores: tuple[float, ...] = ()
    """One a candidate; comparable within one result only. An exact identifier scores ``inf``."""
    reasons: tuple[tuple[str, ...], ...] = ()
    """One a candidate: words of the query, each with the fields that answer it, or ``identifier``, or ``meaning``."""
    not_searched: tuple[tuple[Diagnostic, tuple[str, ...]], ...] = ()
    """A diagnostic (with its server) and the catalogs (``tools``, ``resources`` …) it kept from being searched."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolLookup:
    """What an identifier (``server.tool`` or a native name) stands for: a tool, or why there is none."""

    identifier: str
    tool: ToolDefinition | None = None
    diagnostic: Diagnostic | None = None
    near: tuple[str, ...] = ()
    """At most three identifiers that are nearly the same, nearest first."""
