"""What a person's sentence asks for, as far as that can be told without understanding it. Used by Guide alone.

Greetings and the like are no wish. Of a wish, the words that say what is to be done are searched for: without politeness, without
the values (paths, numbers, quotations), and with the words that tools use where people say it otherwise.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Literal

from desktop.assistant.text_values import TextValue, ValueKind

Talk = Literal["hello", "thanks", "help"]

_LONGEST_QUERY = 500
_LONGEST_TALK = 200
_MOST_PHRASES = 20
_WORD = re.compile(r"[^\W_]+")
_TALK: tuple[tuple[Talk, re.Pattern[str]], ...] = (
    (
        "hello",
        re.compile(
            r"(?:hi+|hello|hey|hiya|howdy|yo|greetings|good (?:morning|afternoon|evening|day)|how are you(?: doing)?(?: today)?"
            r"|what s up|hallo|moin|servus|guten (?:morgen|tag|abend)|grüezi|bonjour|salut|hola|ciao|olá|hej|ahoj|привет"
            r"|здравствуйте|你好|こんにちは|there|guide|deskhand|all|everyone|again| )+"
        ),
    ),
    (
        "thanks",
        re.compile(
            r"(?:thanks|thank you|thx|cheers|danke(?: schön)?|vielen dank|merci|gracias|grazie|obrigad[oa]|спасибо|谢谢"
            r"|ありがとう|ok(?:ay)?|great|perfect|cool|nice|good|fine|well done|awesome|super|prima|bye|goodbye|see you|tschüss"
            r"|yes|no|so much|very much|a lot|for (?:your|the) help|for that|all good|that is all|that s all|job|later|guide"
            r"|deskhand|you| )+"
        ),
    ),
    (
        "help",
        re.compile(
            r"(?:please )?(?:help(?: me)?|hilfe|can you help(?: me)?|what (?:can|do) you do|what can i (?:do|ask)(?: here| you)?"
            r"|who are you|what are you|what is (?:this|guide|deskhand)|how (?:do you|does (?:this|it)) work"
            r"|are you (?:an? )?(?:ai|bot|robot|human|llm|language model|chatgpt|claude)|was kannst du|wer bist du)(?: please)?"
        ),
    ),
)
#: Said before the wish itself, and after it.
_OPENING = re.compile(
    r"\s*(?:(?:hi|hello|hey|ok|okay|so|now|well|please|kindly|guide|deskhand|bitte)\b[\s,!.:]*"
    r"|(?:can|could|would|will) you(?: please)?(?: help me(?: to)?)?\b|(?:can|could|may|how (?:can|do)) i\b"
    r"|i(?: would|'d|’d) (?:like|love)(?: you)?(?: to)?\b|i (?:want|need|wish)(?: you)?(?: to)?\b|i(?: a|'|’)m looking for\b"
    r"|help me(?: to)?\b|let me\b|let'?s\b|find out\b|do you know\b|is there (?:a|any) (?:way|tool) to\b)+\s*",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"(?:(?<![\s,])[\s,]*\b(?:please|thanks|thank you|for me|bitte|danke)\b)+[\s.!?]*$", re.IGNORECASE
)
#: Words that say nothing of what is to be done. Verbs of showing are among them: every tool shows something.
_EMPTY = frozenset(
    """
    a about above after all also am an and any are as at back be been below between both but by can could d did do does during
    for from get give had has have he her here his how i if in inside into is it its ll m may me more much my need no of on once
    one or our out over per please re right s see she should show since so some such t tell than that the their them then there
    these they this to too under until up us use using ve very want was we well were what when where which who why will with
    within would you your
    """.split()  # noqa: SIM905
)
_ASKS_TO_SEE = re.compile(
    r"(?:show|list|display|see|view|open|which|what|who|whose|how|when|where|tell|give|get|is|are|do|does|did|read|print|load|cat"
    r"|tail|head|ls)\b",
    re.IGNORECASE,
)
_ENGLISH = frozenset("the a an my of for to is are what which please can you with and from this that it me".split())  # noqa: SIM905
_SAID_BY: dict[ValueKind, str] = {"path": "read file directory", "url": "url", "email": "email", "zone": "time zone"}
_NOW = "current time"
#: How people say it, and the words of tools for it. Of two that overlap the earlier wins.
_PHRASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (r"\bwhat(?:'s|’s| is) the time\b|\bwhat time\b(?: is it)?|\bhow late is it\b", _NOW),
        (
            r"\bwhat(?:'s|’s| is| are| do i have) (?:there )?(?:inside|in)\b|\bcontents? of (?:the |my )?(?=folder|dir)",
            "list",
        ),
        (r"\b(?:the )?contents? of\b", "read"),
        (r"\bwhen (?:was|were)\b|\bhow (?:big|large|long|old)\b", "info size"),
        (r"\bnot (?:yet )?staged\b", "unstaged"),
        (r"\b(?:turn|switch) (?:on|off)\b", "toggle"),
        (r"\blook(?:ing)? (?:for|up)\b", "search"),
        (r"\bcheck out\b", "checkout"),
        (r"\b(?:talk|speak|spoke|chat)(?:ed)? about\b", "search conversations"),
        (r"(?<=\d)\s*\+\s*(?=\d)|(?<=\d) plus (?=\d)", "sum add"),
        (r"(?<=\d)\s*[-−]\s*(?=\d)|(?<=\d) minus (?=\d)", "subtract"),
        (r"(?<=\d)\s*[*×x]\s*(?=\d)|(?<=\d) times (?=\d)", "multiply"),
        (r"(?<=\d)\s*[/÷:]\s*(?=\d)|(?<=\d) divided by (?=\d)", "divide"),
    )
)
_ENDINGS = (
    (
        frozenset("txt md log csv json yaml yml toml ini cfg conf xml html py js ts sh".split()),  # noqa: SIM905
        "text",
    ),
    (frozenset(("png", "jpg", "jpeg", "gif", "webp", "bmp", "svg")), "media image"),
    (frozenset(("mp3", "wav", "ogg", "flac", "m4a")), "media audio"),
)
#: What people and shells call it, and what tools call it: as the first word of a wish, and anywhere.
RELATED_VERBS = {
    "add": "sum", "adjust": "update", "alter": "edit", "answer": "reply", "calculate": "sum", "cat": "read file",
    "change": "edit", "compare": "diff", "compress": "gzip", "copy": "duplicate", "cp": "copy", "delete": "remove",
    "describe": "info", "download": "fetch", "echo": "message", "erase": "delete", "fetch": "get", "find": "search",
    "fix": "edit", "grep": "search", "launch": "start", "load": "read", "locate": "search", "look": "search",
    "ls": "list directory", "make": "create", "mkdir": "create directory", "modify": "edit", "mv": "move",
    "open": "read", "print": "get", "put": "write", "remove": "delete", "rename": "move", "repeat": "echo",
    "replace": "edit", "return": "echo", "rm": "delete", "run": "trigger", "save": "write", "say": "echo",
    "send": "post", "stage": "add", "start": "trigger toggle", "stop": "cancel", "store": "write",
    "substitute": "edit", "switch": "checkout", "tail": "read", "translate": "convert", "undo": "reset",
    "unstage": "reset", "zip": "gzip",
}  # fmt: skip
_RELATED_NOUNS = {
    "appointment": "event", "biggest": "size", "chat": "conversation", "details": "info", "difference": "diff",
    "document": "file", "folder": "directory", "history": "log", "information": "info", "largest": "size",
    "listing": "list", "logo": "image", "mail": "email", "meeting": "event", "metadata": "info",
    "permitted": "allowed", "photo": "image", "picture": "image", "properties": "info", "repo": "repository",
    "structure": "tree", "ticket": "issue", "total": "sum", "webpage": "url", "website": "url",
}  # fmt: skip


def talk(text: str) -> Talk | None:
    """What kind of talk a text is, where it is no wish. A text without a word asks for help."""
    words = " ".join(re.sub(r"[^\w\s]|_", " ", text.lower()).split())
    if len(words) > _LONGEST_TALK:
        return None
    if not words:
        return "help"
    return next((kind for kind, pattern in _TALK if pattern.fullmatch(words)), None)


def wish_in(text: str) -> str:
    """The text without the politeness before and after it; whole, where nothing else is left."""
    wish = _CLOSING.sub("", _OPENING.sub("", text, count=1) if _OPENING.match(text) else text).strip()
    return wish if _WORD.search(wish) else text.strip()


def asks_to_see(wish: str) -> bool:
    """Whether something is to be shown, not changed, as far as the first word tells."""
    return _ASKS_TO_SEE.match(wish) is not None


def words_of(text: str, *, all_of_them: bool = False) -> list[str]:
    """The words in small letters, each once, names in any style in their parts; without those that say nothing."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    words = dict.fromkeys(map(str.lower, _WORD.findall(apart)))
    return [word for word in words if all_of_them or not is_empty(word)]


def is_empty(word: str) -> bool:
    """Whether a word says nothing of what is to be done."""
    return word.lower() in _EMPTY


def stem(word: str) -> str:
    """A word (in small letters) without its English ending, so that *searches* meets *search*."""
    return _stemmer()(word)


@functools.cache
def _stemmer() -> Callable[[str], str]:
    import Stemmer

    return Stemmer.Stemmer("english").stemWord  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def query_for(wish: str, values: Sequence[TextValue]) -> str:
    """What is searched for: at most 500 characters, the wish itself where no word of it says what is to be done."""
    places = [(value.start, value.end, _words_for(value, values, wish)) for value in values]
    for pattern, words in _PHRASES:
        for match in islice(pattern.finditer(wish), _MOST_PHRASES):
            if not any(start < match.end() and match.start() < end for start, end, _ in places):
                places.append((*match.span(), "convert time" if words == _NOW and _is_elsewhen(values) else words))
    pieces: list[str] = []
    at = 0
    for start, end, words in sorted(places):
        pieces += words_of(wish[at:start]) + words.split()
        at = end
    pieces += words_of(wish[at:])
    first = _WORD.match(wish)
    related = [RELATED_VERBS.get(first[0].lower(), "")] if first else []
    related += [_RELATED_NOUNS.get(word) or _RELATED_NOUNS.get(word.removesuffix("s"), "") for word in pieces]
    words = dict.fromkeys([*pieces, *" ".join(related).split()])
    return (" ".join(words) or wish)[:_LONGEST_QUERY]


def is_english(wish: str) -> bool:
    """Whether a wish has one of the English words that hardly any sentence does without."""
    return not _ENGLISH.isdisjoint(words_of(wish, all_of_them=True))


def words_by_values(values: Sequence[TextValue]) -> str:
    """What is searched for where only the values of a wish are understood, or ""."""
    kinds = {value.kind for value in values}
    return " ".join(words for kind, words in _SAID_BY.items() if kind in kinds)


def _words_for(value: TextValue, values: Sequence[TextValue], wish: str) -> str:
    """What a value says of the tool that is wanted: a path's ending tells that it is a file, and of what kind."""
    ending = _ending(value)
    if not ending:
        return ""
    if not asks_to_see(wish):
        return "file"
    if sum(map(bool, map(_ending, values))) > 1:
        return "multiple files"
    return next((f"file {words}" for endings, words in _ENDINGS if ending in endings), "file")


def _ending(value: TextValue) -> str:
    found = re.search(r"\.(\w{1,5})$", str(value.value)) if value.kind == "path" else None
    return found[1].lower() if found else ""


def _is_elsewhen(values: Sequence[TextValue]) -> bool:
    """Whether a wish about the time is about another than now: it names one, or two zones."""
    kinds = [value.kind for value in values]
    return "time" in kinds or kinds.count("zone") > 1
