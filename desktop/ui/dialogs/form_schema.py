"""What a JSON schema of a server's says of a value, for the fields of a form: bounded, nothing fetched, nothing trusted."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from desktop.visible_text import visible_line

MISSING: Final = object()
"""Instead of a value: nothing is entered, and nothing will be sent."""

#: Characters of a number.
LONGEST_NUMBER = 400
#: References followed to find what a schema says.
_MOST_REFERENCES = 16
_INTEGER = re.compile(r"[+-]?[0-9]+")


def resolved(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    """What a schema says itself: local references followed, "or null" taken for optional."""
    said: dict[str, Any] = {}
    for _ in range(_MOST_REFERENCES):
        if not isinstance(schema, dict):
            return said
        said = {**schema, **{name: said[name] for name in ("title", "description", "default") if name in said}}
        reference = said.pop("$ref", None)
        if isinstance(reference, str):
            schema = _local(reference, root)
            continue
        forms = next((said[each] for each in ("anyOf", "oneOf", "allOf") if isinstance(said.get(each), list)), [])
        forms = [form for form in forms if not (isinstance(form, dict) and form.get("type") == "null")]
        if len(forms) == 1 and "type" not in said:
            schema = forms[0]
            continue
        if forms and all(isinstance(form, dict) and "const" in form for form in forms):
            return said | {"enum": [form["const"] for form in forms]}
        if isinstance(said.get("type"), list):
            types = [each for each in said["type"] if each != "null"]
            said["type"] = types[0] if len(types) == 1 else None
        if said.get("default", MISSING) is None:
            del said["default"]
        return said
    return {}


def _local(reference: str, root: dict[str, Any]) -> Any:
    if not reference.startswith("#/"):
        return {}
    place: Any = root
    for part in reference[2:].split("/"):
        place = place.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(place, dict) else None
    return place


def limit_of(schema: dict[str, Any], keyword: str) -> int | float | None:
    limit = schema.get(keyword)
    return limit if isinstance(limit, int | float) and not isinstance(limit, bool) else None


def number_in(text: str) -> int | float | None:
    if len(text) > LONGEST_NUMBER:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is not true."""
    return type(one) is type(other) and one == other


def shown(value: Any) -> str:
    return visible_line(value if isinstance(value, str) else as_json(value), LONGEST_NUMBER)


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
