"""What a server's form asks for and which answers fit it (MCP specification, elicitation, form mode). Imports nothing of the SDK.

Used by ``server_requests.py``, which refuses a form that can't be asked, and by the window, which draws the fields and says
what does not fit. A server's own text stays in the values given here: whoever shows it makes it visible.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, cast
from urllib.parse import urlsplit

Kind = Literal["text", "number", "integer", "boolean", "choice", "choices"]
Format = Literal["", "email", "uri", "date", "date-time"]
Value = str | int | float | bool | list[str]
FaultCode = Literal[
    "missing",
    "no_text",
    "no_number",
    "no_integer",
    "too_small",
    "too_large",
    "too_short",
    "too_long",
    "no_email",
    "no_uri",
    "no_date",
    "no_date_time",
    "no_choice",
    "too_few",
    "too_many",
]

MOST_FIELDS = 50
MOST_OPTIONS = 100
LONGEST_TEXT = 8192
LARGEST_ANSWER = 64 * 1024
_LONGEST_NAME = 512
_FORMATS: tuple[Format, ...] = ("email", "uri", "date", "date-time")
_EMAIL = re.compile(r"[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
#: RFC 3339, section 5.6; a leap second is no time of day here.
_TIME = re.compile(
    r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:z|[+-](?:[01]\d|2[0-3]):[0-5]\d)", re.ASCII | re.IGNORECASE
)
#: Words in a field's name or title after which nobody should type a secret into a server's form.
_SECRET = re.compile(
    r"passw|passphrase|\bpin\b|secret|token|api.?key|credential|private.?key|card.?(?:number|no)|\bcvv?c?\b|\biban\b|\bssn\b",
    re.IGNORECASE,
)


class UnusableForm(Exception):
    """The form is outside the protocol or the limits; the text says why and holds nothing of the server's."""


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    title: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an answer doesn't fit, and the limit it breaks, where there is one."""

    code: FaultCode
    limit: float | int | None = None


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form. `low` and `high` limit a number, the characters of a text, or how many are chosen."""

    name: str
    kind: Kind
    title: str = ""
    description: str = ""
    required: bool = False
    default: Value | None = None
    """Only where it fits."""
    format: Format = ""
    low: float | int | None = None
    high: float | int | None = None
    options: tuple[Option, ...] = ()

    @property
    def looks_secret(self) -> bool:
        """Whether it seems to ask for what nobody should tell a server in a form."""
        return bool(_SECRET.search(re.sub(r"[_-]", " ", self.name)) or _SECRET.search(self.title))

    def fault(self, value: Value | None) -> Fault | None:
        """Why a value is none for this field; None stands for no value."""
        if value is None:
            return Fault("missing") if self.required else None
        match self.kind:
            case "boolean":
                return None if isinstance(value, bool) else Fault("missing")
            case "number" | "integer":
                return self._fault_of_number(value)
            case "text":
                return self._fault_of_text(value)
            case "choice":
                chosen = isinstance(value, str) and value in {option.value for option in self.options}
                return None if chosen else Fault("no_choice")
            case "choices":
                return self._fault_of_choices(value)

    def _fault_of_number(self, value: Value) -> Fault | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return Fault("no_number")
        if self.kind == "integer" and not float(value).is_integer():
            return Fault("no_integer")
        if self.low is not None and value < self.low:
            return Fault("too_small", self.low)
        if self.high is not None and value > self.high:
            return Fault("too_large", self.high)
        return None

    def _fault_of_text(self, value: Value) -> Fault | None:
        if not isinstance(value, str):
            return Fault("no_text")
        if self.low is not None and len(value) < self.low:
            return Fault("too_short", self.low)
        longest = LONGEST_TEXT if self.high is None else min(self.high, LONGEST_TEXT)
        if len(value) > longest:
            return Fault("too_long", longest)
        fits = {"email": is_email, "uri": is_absolute_uri, "date": is_date, "date-time": is_date_time}
        faults: dict[str, FaultCode] = {
            "email": "no_email",
            "uri": "no_uri",
            "date": "no_date",
            "date-time": "no_date_time",
        }
        return Fault(faults[self.format]) if self.format and not fits[self.format](value) else None

    def _fault_of_choices(self, value: Value) -> Fault | None:
        known = {option.value for option in self.options}
        # A default may be any JSON, whatever the type says.
        chosen = cast("list[Any]", value) if isinstance(value, list) else [None]
        if not all(isinstance(each, str) and each in known for each in chosen):
            return Fault("no_choice")
        if len(set(chosen)) != len(chosen):
            return Fault("no_choice")
        if self.low is not None and len(chosen) < self.low:
            return Fault("too_few", self.low)
        if self.high is not None and len(chosen) > self.high:
            return Fault("too_many", self.high)
        return None


def fields_of(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """The fields that a requested schema describes, in its order. Raises UnusableForm.

    The schema is flat: text, numbers, yes or no, and choices (``enum`` with ``enumNames``, or ``oneOf`` and ``anyOf`` of titled
    constants). At most 50 fields and 100 options.
    """
    properties = schema.get("properties")
    required = _list(schema.get("required", []))
    if schema.get("type") != "object" or not isinstance(properties, Mapping) or required is None:
        raise UnusableForm("its schema is no object")
    named = _mapping(properties)  # pyright: ignore[reportUnknownArgumentType]
    if len(named) > MOST_FIELDS:
        raise UnusableForm(f"it has more than {MOST_FIELDS} fields")
    if any(each not in named for each in required):
        raise UnusableForm("it requires a field that it doesn't describe")
    return tuple(_field(name, described, name in required) for name, described in named.items())


def fault_of(fields: Sequence[FormField], content: Mapping[str, Value]) -> tuple[str, Fault] | None:
    """The first field whose answer doesn't fit, and why; None when all do."""
    for field in fields:
        if (fault := field.fault(content.get(field.name))) is not None:
            return field.name, fault
    return None


def is_too_large(content: Mapping[str, Value]) -> bool:
    """Whether an answer has more than 64 KiB as JSON."""
    return len(json.dumps(dict(content), ensure_ascii=False).encode("utf-8", "surrogatepass")) > LARGEST_ANSWER


def is_email(text: str) -> bool:
    """Whether it has the form of an address; that it exists is the server's to find out."""
    return _EMAIL.fullmatch(text) is not None


def is_absolute_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return re.search(r"\s", text) is None and bool(parts.scheme) and bool(parts.netloc or parts.path)


def is_date(text: str) -> bool:
    """Whether it is a day of the calendar, ``YYYY-MM-DD`` (RFC 3339, full-date)."""
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    try:
        date(*map(int, found.groups()))
    except ValueError:
        return False
    return True


def is_date_time(text: str) -> bool:
    """Whether it is a moment with its zone (RFC 3339, date-time)."""
    return text[10:11] in ("T", "t") and is_date(text[:10]) and _TIME.fullmatch(text[11:]) is not None


def _field(name: str, described: Any, required: bool) -> FormField:
    if not 0 < len(name) <= _LONGEST_NAME or not isinstance(described, Mapping):
        raise UnusableForm("a field is not described")
    schema = _mapping(described)
    match schema.get("type", "string" if "enum" in schema or "oneOf" in schema else None):
        case "boolean":
            field = FormField(name, "boolean")
        case "number" | "integer" as kind:
            field = FormField(name, kind, low=_number(schema, "minimum"), high=_number(schema, "maximum"))
        case "string" if "enum" in schema or "oneOf" in schema:
            field = FormField(name, "choice", options=_options(schema, "oneOf"))
        case "string":
            said = schema.get("format")
            format_ = said if said in _FORMATS else ""
            field = FormField(
                name, "text", format=format_, low=_count(schema, "minLength"), high=_count(schema, "maxLength")
            )
        case "array" if isinstance(schema.get("items"), Mapping):
            field = FormField(
                name,
                "choices",
                low=_count(schema, "minItems"),
                high=_count(schema, "maxItems"),
                options=_options(_mapping(schema["items"]), "anyOf"),
            )
        case _:
            raise UnusableForm("a field is of a kind that forms don't have")
    return _completed(field, schema, required)


def _completed(field: FormField, schema: Mapping[str, Any], required: bool) -> FormField:
    """The field with what all kinds have. A default that doesn't fit is none."""
    title, description = schema.get("title"), schema.get("description")
    default = cast("Value | None", schema.get("default"))
    fits = default is not None and field.fault(default) is None
    return FormField(
        field.name,
        field.kind,
        title if isinstance(title, str) else "",
        description if isinstance(description, str) else "",
        required,
        default if fits else None,
        field.format,
        field.low,
        field.high,
        field.options,
    )


def _options(schema: Mapping[str, Any], titled: str) -> tuple[Option, ...]:
    """Choices of ``enum`` (its titles in ``enumNames``), or constants with titles."""
    values = _list(schema.get("enum"))
    if values is not None:
        names = _list(schema.get("enumNames"))
        pairs = list(zip(values, names if names is not None and len(names) == len(values) else values, strict=True))
    else:
        constants = [_mapping(each) for each in _list(schema.get(titled)) or []]
        pairs = [(each.get("const"), each.get("title")) for each in constants]
    found = [
        Option(value, title if isinstance(title, str) else value) for value, title in pairs if isinstance(value, str)
    ]
    if not 0 < len(found) <= MOST_OPTIONS or len(found) != len(pairs):
        raise UnusableForm(f"a choice has no options, too many (over {MOST_OPTIONS}), or some that are no text")
    if len({option.value for option in found}) != len(found):
        raise UnusableForm("a choice has the same option twice")
    return tuple(found)


def _list(value: Any) -> list[Any] | None:
    return cast("list[Any]", value) if isinstance(value, list) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _number(schema: Mapping[str, Any], name: str) -> float | int | None:
    value = schema.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None


def _count(schema: Mapping[str, Any], name: str) -> int | None:
    value = schema.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
