"""Names and fingerprints of tools: shared by the catalog, which lists tools, and the toolbox, which offers them."""

from __future__ import annotations

import hashlib
import json
import re

#: What every provider accepts as the name of a function.
_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_PREFIX = 50


def fingerprint(value: object) -> str:
    """SHA-256 (hex) of a JSON value in compact form with sorted keys: equal for equal values, whatever their order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def native_name(server: str, tool: str) -> str:
    """The name under which a model calls a server's tool: ``mcp__server__tool``, at most 64 characters.

    Where that would not be legal, or could be read as another pair's name, a hash of the pair ends the name, so that two
    tools never share one.
    """
    name = f"mcp__{server}__{tool}"
    # No underscore beside the one pair that separates: "a_" and "b" would read like "a" and "_b".
    if _LEGAL.fullmatch(name) and "__" not in f"{server}_" and "__" not in f"_{tool}":
        return name
    return f"{native_prefix(name)}__{fingerprint([server, tool])[:12]}"


def may_name_tool_of(server: str, identifier: str) -> bool:
    """Whether an identifier (``server.tool`` or a native name) begins as those of a server's tools do.

    Exact and case-sensitive. Where servers' names begin alike, a shortened native name may begin as those of several.
    """
    native = f"mcp__{server}__"
    return identifier.startswith((f"{server}.", native if len(native) <= _LONGEST_PREFIX else native_prefix(native)))


def native_prefix(name: str) -> str:
    """A name as it begins in a shortened native name."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_LONGEST_PREFIX]
