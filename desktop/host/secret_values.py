"""Which values of an entry look like secrets, and the entry with references into the keyring in their place. Used by the server
editor and the import, which offer to keep such values in the keyring and not in the file.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection
from typing import Any, cast

from desktop.host.foreign_entry import Entry, value_itself

#: Names of variables and headers whose values are secrets.
_NAME = re.compile(r"(?i)key|token|secret|passw|passphrase|pwd|auth|credential|cookie|(?:^|_)pat(?:$|_)")
#: Values that are none whatever their name: numbers, truths, paths, addresses without a password or a query.
_ORDINARY = re.compile(
    r"\s*|[\d.,:]{1,8}|(?i:true|false|yes|no|on|off|none)|(?:~|\.{0,2}|[A-Za-z]:)[/\\].*|[a-z]+://[^@?]*"
)
#: Values that are one whatever their name: tokens of services, a JSON web token, a private key, a password in an address.
_FORM = re.compile(
    r"(?:sk|rk|pk)[-_][\w-]{16,}|gh[oprsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}|hf_\w{16,}"
    r"|AKIA[A-Z0-9]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]+\..*|(?i:bearer|basic|token)\s+\S.*|-----BEGIN .*"
    r"|[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@.*",
    re.DOTALL,
)
_RANDOM = re.compile(r"[A-Za-z0-9+/_=-]{24,}")


def looks_secret(name: str, value: str) -> bool:
    """Whether a value, not as it is written but itself, is better kept in the keyring."""
    if _FORM.fullmatch(value.strip()):
        return True
    if _ORDINARY.fullmatch(value):
        return False
    return bool(_NAME.search(name)) or _is_random(value)


def _is_random(value: str) -> bool:
    """Long, of one piece, with digits and letters well mixed: no words, no path."""
    if not _RANDOM.fullmatch(value) or "/" in value[:1]:
        return False
    changes = sum(one.isdigit() != other.isdigit() for one, other in itertools.pairwise(value))
    return changes >= 6 and any(each.isalpha() for each in value)


def secrets_of(entry: Entry) -> dict[str, str]:
    """The values of variables or headers that look secret, by the name of what they belong to; those that are references already
    are none."""
    found: dict[str, str] = {}
    for name, written in _values(entry).items():
        value = value_itself(written) if isinstance(written, str) else None
        if value and looks_secret(name, value):
            found[name] = value
    return found


def with_references(entry: Entry, names: Collection[str]) -> Entry:
    """The entry with references into the keyring in place of the values of those names."""
    key = _key(entry)
    values = {
        name: f"${{keyring:{reference_name(name)}}}" if name in names else value
        for name, value in _values(entry).items()
    }
    return {**entry, key: values} if values else entry


def reference_name(name: str) -> str:
    """Under which name the keyring keeps the value of a variable or a header of a server."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:128]


def _key(entry: Entry) -> str:
    return "env" if "command" in entry else "headers"


def _values(entry: Entry) -> dict[str, Any]:
    values = entry.get(_key(entry))
    return cast("dict[str, Any]", values) if isinstance(values, dict) else {}
