"""What holds of the search for any catalog: it answers, in one order, within the limit, and an exact name always comes first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.catalog_entries import (
    CatalogEntry,
    Kind,
    PromptArgument,
    PromptEntry,
    ResourceEntry,
    TemplateEntry,
    ToolDefinition,
)
from desktop.host.catalog_search import CatalogSearch
from desktop.tool_names import native_name

WORDS = [
    "list",
    "teams",
    "search",
    "Issues",
    "größe",
    "検索",
    "文件",
    "v2Beta",
    "tool",
    "\u202e",
    "\x00",
    "\x1f",
    "__",
    ".",
]
TEXTS = st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=5).map(" ".join)
NAMES = TEXTS.filter(bool) | st.from_regex(r"[a-z]{1,5}_[a-z]{1,5}", fullmatch=True)
SERVERS = st.sampled_from(["a", "b", "linear", "list"])


def tool(server: str, name: str, description: str = "", title: str = "", parameter: str = "p") -> ToolDefinition:
    schema: dict[str, Any] = {"type": "object", "properties": {parameter: {"description": description[::-1]}}}
    return ToolDefinition(server, name, native_name(server, name), description, schema, "", "", title)


TOOLS = st.builds(tool, SERVERS, NAMES, TEXTS, TEXTS, TEXTS)
URIS = NAMES.map("x:{}".format)
ENTRIES = st.one_of(
    TOOLS,
    st.builds(ResourceEntry, SERVERS, URIS, NAMES, TEXTS, TEXTS),
    st.builds(TemplateEntry, SERVERS, URIS.map("{}{{v}}".format), NAMES, st.just(("v",))),
    st.builds(
        PromptEntry, SERVERS, NAMES, TEXTS, TEXTS, st.builds(PromptArgument, NAMES, TEXTS).map(lambda each: (each,))
    ),
)


def key(entry: CatalogEntry) -> tuple[str, str, str]:
    """What a catalog has once: the host admits no second one."""
    match entry:
        case ToolDefinition() | PromptEntry():
            name = entry.name
        case ResourceEntry():
            name = entry.uri
        case TemplateEntry():
            name = entry.template
    return entry.kind, entry.server, name


CATALOGS = st.lists(ENTRIES, max_size=12, unique_by=key)


def search_over(entries: Sequence[CatalogEntry]) -> CatalogSearch:
    search = CatalogSearch()
    parts: dict[tuple[Kind, str], list[CatalogEntry]] = {}
    for entry in entries:
        parts.setdefault((entry.kind, entry.server), []).append(entry)
    for (kind, server), part in parts.items():
        search.replace(kind, server, part)
    return search


@settings(max_examples=20, deadline=None)
@given(CATALOGS, TEXTS | st.text(max_size=30), st.integers(1, 50), st.randoms(use_true_random=False))
def test_any_query_of_any_catalog_has_one_answer_whatever_the_order_of_the_entries(
    entries: list[CatalogEntry], query: str, limit: int, random: Any
) -> None:
    ranked = search_over(entries).rank(query, limit=limit)
    random.shuffle(entries)
    assert search_over(entries).rank(query, limit=limit) == ranked
    assert len(ranked) <= limit
    assert len({key(each.entry) for each in ranked}) == len(ranked)
    assert [each.score for each in ranked] == sorted((each.score for each in ranked), reverse=True)
    assert all(each.matched for each in ranked)
    assert not any(math.isnan(each.score) for each in ranked)


@settings(max_examples=20, deadline=None)
@given(
    CATALOGS,
    CATALOGS,
    TEXTS | st.text(max_size=30),
    st.sampled_from(["tool", "resource", "template", "prompt"]),
    SERVERS,
)
def test_a_part_that_changed_alone_is_found_as_if_all_had_been_analysed_anew(
    entries: list[CatalogEntry], others: list[CatalogEntry], query: str, kind: Kind, server: str
) -> None:
    search = search_over(entries)
    search.rank(query, limit=50)
    changed = [each for each in others if (each.kind, each.server) == (kind, server)]
    search.replace(kind, server, changed)
    rest = [each for each in entries if (each.kind, each.server) != (kind, server)]
    assert search.rank(query, limit=50) == search_over([*rest, *changed]).rank(query, limit=50)


@settings(max_examples=20, deadline=None)
@given(CATALOGS, TEXTS, SERVERS, st.sets(st.sampled_from(["tool", "resource", "template", "prompt"]), min_size=1))
def test_nothing_of_another_server_or_kind_is_found(
    entries: list[CatalogEntry], query: str, server: str, kinds: set[Kind]
) -> None:
    search = search_over(entries)
    for each in search.rank(query, server=server, kinds=kinds, limit=50):
        assert (each.entry.server, each.entry.kind in kinds) == (server, True)


@settings(max_examples=20, deadline=None)
@given(CATALOGS, TOOLS, st.booleans())
def test_the_exact_identifier_of_a_tool_comes_first_whatever_else_there_is(
    entries: list[CatalogEntry], wanted: ToolDefinition, native: bool
) -> None:
    others = [entry for entry in entries if key(entry) != key(wanted)]
    identifier = wanted.native_name if native else wanted.identifier.strip()
    found = search_over([*others, wanted]).rank(identifier, limit=50)
    selectors = {wanted.identifier.casefold(), wanted.native_name.casefold()}
    if identifier.casefold() not in selectors:  # a name that ends in a space can't be typed; its native name can
        return
    assert wanted in [each.entry for each in found]
    assert all(math.isinf(each.score) for each in found)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["list", "teams", "rotate", "invoice", "archive", "webhook"]), min_size=2, max_size=3, unique=True),
    st.integers(1, 300),
    st.integers(1, 20),
)  # fmt: skip
def test_no_number_of_stuffed_descriptions_outranks_the_tool_with_the_words_in_its_name(
    words: list[str], times: int, rivals: int
) -> None:
    wanted = tool("work", "_".join(words), "Does it.")
    stuffed = [tool("spam", f"helper{number}", f"{' '.join(words)} " * times) for number in range(rivals)]
    assert search_over([*stuffed, wanted]).rank(" ".join(words), limit=5)[0].entry == wanted


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("搜索文件", "search"),
        ("发送邮件", "send"),
        ("天気予報を調べる", "weather"),
        ("予定を作成", "schedule"),
        ("파일 검색", "find"),
    ],
)
def test_a_query_in_chinese_japanese_or_korean_finds_the_right_tool(query: str, wanted: str) -> None:
    search = search_over(
        [
            tool("zh", "search", "在目录中搜索文件"),
            tool("zh", "send", "向联系人发送电子邮件"),
            tool("ja", "weather", "天気予報を取得します"),
            tool("ja", "schedule", "カレンダーに予定を作成します"),
            tool("ko", "find", "폴더에서 파일을 검색합니다"),
            tool("en", "list_files", "Lists files"),
        ]
    )
    assert search.rank(query, limit=5)[0].entry.name == wanted
