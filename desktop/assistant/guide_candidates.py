"""Which of the candidates of a search a wish means, and whether that is clear enough to go on without asking.

Used by Guide alone, on ``call.details["candidates"]`` of an ``mcp_tools`` query. The search knows words; this knows what a wish
brings along: a path wants a tool that takes one, and who asks to see something doesn't want it changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from desktop.assistant.guide_parameters import kind_of_name
from desktop.assistant.guide_wish import RELATED_VERBS, asks_to_see, stem, words_of
from desktop.assistant.text_values import TextValue, ValueKind

Candidate = Mapping[str, Any]

#: An identifier that was written out scores at least this.
_EXACT = 1e8
#: What the descriptions of tools that change something begin with.
_CHANGES = re.compile(
    r"(?:add|append|apply|archive|assign|cancel|clear|close|commit|create|delete|disable|edit|enable|insert|make|merge|modif|move"
    r"|post|publish|push|record|remove|rename|replace|reset|restore|send|set|stage|start|stop|submit|switch|toggle|trigger|unstage"
    r"|update|upload|write)\w{0,3}\b",
    re.IGNORECASE,
)
#: What a candidate's score is multiplied with: for a required parameter whose value the wish brings, or doesn't; for a change
#: where something is to be seen; for each value it has no use for.
_FITS, _MISSES, _CHANGES_UNASKED, _UNUSED, _DEPRECATED = 1.2, 0.8, 0.6, 0.8, 0.4
#: What a description that has to do with a kind of value says.
_SAID_OF: dict[ValueKind, frozenset[str]] = {
    "zone": frozenset({"timezone", "timezones", "zone", "zones", "time"}),
    "url": frozenset({"url", "uri", "web", "page", "link", "website"}),
    "path": frozenset({"file", "files", "directory", "directories", "path", "folder"}),
    "email": frozenset({"email", "mail"}),
}
#: How much better than the second the best must be, and which part of the words must meet it.
_MARGIN, _MARGIN_OF_NAME, _OWN_WORDS, _ALL_WORDS = 1.25, 1.05, 0.51, 0.5
#: Which part of the wish's words a candidate must meet to be offered.
_THIRD = 0.33


def ranked(candidates: Sequence[Candidate], wish: str, values: Sequence[TextValue]) -> list[Candidate]:
    """The candidates as the wish bears on them, each with its score, best first; equal ones as the search had them."""
    scored = [{**each, "score": each["score"] * _bearing(each, wish, values)} for each in candidates]
    return sorted(scored, key=lambda each: -each["score"])


def is_clear(best: Sequence[Candidate], wish: str, query: str, values: Sequence[TextValue]) -> bool:
    """Whether the first candidate is what the wish means: fit for it, well ahead of the second, and met by enough of the words.

    Words of the wish itself count for more than those that were added to the query; and where the wish begins with the name of
    a tool that takes one text, the rest of the words are that text.
    """
    first, *others = best
    if first["score"] >= _EXACT:
        return True
    if asks_to_see(wish) and _CHANGES.match(first["description"]):
        return False
    kinds = {kind_of_name(name) for name in first.get("required", ())}
    about = set(words_of(first["description"]))
    brought = {value.kind for value in values}
    for kind, words in _SAID_OF.items():
        if kind in brought and kinds.isdisjoint({kind, None}) and about.isdisjoint(words):
            return False  # it has nothing to do with what the wish brings along
    searched = _stems(query)
    others = [each for each in others if not _is_deprecated(each)]
    if others:
        # "list directory" says all of one name, and not all of "list directory with sizes".
        in_full = _stems(first["name"]) <= searched and not _stems(others[0]["name"]) <= searched
        if first["score"] < (_MARGIN_OF_NAME if in_full else _MARGIN) * others[0]["score"]:
            return False
    labels = _stems(f"{first['server']} {first['name']} {first['title']}")
    everything = labels | _stems(first["description"])
    own = words_of(_without(wish, values)) or words_of(query)
    if not own:
        return False
    own_stems = [stem(word) for word in own]
    verb = _stems(f"{own[0]} {RELATED_VERBS.get(own[0], '')} {query.split()[0]}")
    if not asks_to_see(wish) and verb.isdisjoint(everything):
        return False
    texts = [name for name in first.get("required", ()) if kind_of_name(name) is None]
    return (
        (_share(own_stems, everything) >= _OWN_WORDS and not labels.isdisjoint(own_stems))
        or (_share(searched, everything) >= _ALL_WORDS and not labels.isdisjoint(searched))
        or (own_stems[0] in labels and len(texts) == 1 == len(first["required"]))
    )


def is_worth_offering(candidate: Candidate, wish: str, query: str, values: Sequence[TextValue]) -> bool:
    """Whether a candidate has more to do with a wish than a chance word of its description: a word of its name, a third of the
    wish's words, or a use for a value that the wish brings along."""
    labels = _stems(f"{candidate['server']} {candidate['name']} {candidate['title']}")
    everything = labels | _stems(candidate["description"])
    own = _stems(_without(wish, values)) or _stems(query)
    if not own or not labels.isdisjoint(own | _stems(query)) or _share(own, everything) > _THIRD:
        return True
    brought = {value.kind for value in values}
    wanted = {kind_of_name(name) for name in candidate.get("required", ())} - {None}
    about = set(words_of(candidate["description"]))
    said = {kind for kind, words in _SAID_OF.items() if not about.isdisjoint(words)}
    return not brought.isdisjoint(wanted | said)


def _bearing(candidate: Candidate, wish: str, values: Sequence[TextValue]) -> float:
    description = str(candidate["description"])
    factor = 1.0
    if asks_to_see(wish) and _CHANGES.match(description):
        factor *= _CHANGES_UNASKED
    if _is_deprecated(candidate):
        factor *= _DEPRECATED
    if candidate["kind"] != "tool":
        return factor
    left: list[ValueKind] = [value.kind for value in values]
    wanted = [kind for name in candidate["required"] if (kind := kind_of_name(name)) is not None]
    for name in candidate["required"]:
        if (kind := kind_of_name(name)) is None:
            continue
        takes_all = name.endswith("s") and left.count(kind) > 1
        factor *= _FITS if takes_all or (kind in left and not name.endswith("s")) else _MISSES
        left = [each for each in left if each != kind] if takes_all else left
        if kind in left:
            left.remove(kind)
    about = set(words_of(description))
    for kind in left:
        if kind in wanted or (kind in _SAID_OF and about.isdisjoint(_SAID_OF[kind])):
            factor *= _UNUSED
    return factor


def _is_deprecated(candidate: Candidate) -> bool:
    return "deprecated" in str(candidate["description"]).lower()


def _share(words: Collection[str], known: set[str]) -> float:
    return sum(word in known for word in words) / len(words)


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words_of(text)}


def _without(wish: str, values: Sequence[TextValue]) -> str:
    for value in reversed(values):
        wish = f"{wish[: value.start]} {wish[value.end :]}"
    return wish
