"""The right entry is found by what people and models write, in any order of the input, and nothing is found by nothing."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.catalog_entries import (
    CatalogEntry,
    PromptArgument,
    PromptEntry,
    ResourceEntry,
    TemplateEntry,
    ToolDefinition,
)
from desktop.host import catalog_search
from desktop.host.catalog_search import CatalogSearch, near_names
from desktop.host.search_parts import Key, Part
from desktop.host.search_words import Analyser
from desktop.tool_names import native_name


def tool(server: str, name: str, description: str = "", schema: dict[str, object] | None = None) -> ToolDefinition:
    return ToolDefinition(server, name, native_name(server, name), description, schema or {"type": "object"}, "", "")


TOOLS = [
    tool("linear", "list_teams", "List teams in the workspace"),
    tool("linear", "save_comment", "Create comments on an issue."),
    tool("linear", "listIssues", "Search issues by text"),
    tool("cloudflare", "search", "Search account settings"),
    tool("warehouse", "query", "Run a read-only query against analytics tables"),
]
OTHERS: list[CatalogEntry] = [
    PromptEntry("docs", "explain", description="Explain an authentication topic"),
    ResourceEntry("warehouse", "schema://analytics", "schema", "Analytics database schema", "Tables and columns"),
    ResourceEntry("docs", "docs://authentication", "auth-guide", "Authentication guide"),
    TemplateEntry("warehouse", "schema://tables/{table}", "table_schema", ("table",), "", "Schema of one table"),
]
KEYWORDS = (
    "properties",
    "description",
    "enum",
    "const",
    "items",
    "anyOf",
    "$defs",
    "prefixItems",
    "additionalProperties",
)


def search_over(entries: list[CatalogEntry], title: str = "") -> CatalogSearch:
    search = CatalogSearch()
    for key in dict.fromkeys((entry.kind, entry.server) for entry in entries):
        search.replace(*key, [each for each in entries if (each.kind, each.server) == key], title=title)
    return search


def names(search: CatalogSearch, query: str, **options: object) -> list[str]:
    ranked = search.rank(query, limit=options.pop("limit", 5), **options)  # type: ignore[arg-type]
    return [
        getattr(each.entry, "uri", None) or getattr(each.entry, "template", None) or each.entry.name for each in ranked
    ]


@pytest.fixture
def search() -> CatalogSearch:
    return search_over([*TOOLS, *OTHERS])


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("list teams", "list_teams"),
        ("search issues", "listIssues"),
        ("tea", "list_teams"),
        ("query tables", "query"),
        ("table schema", "schema://tables/{table}"),
        ("authentication", "docs://authentication"),
        ("auth", "docs://authentication"),
        ("analytics", "schema://analytics"),
        ("explain a topic", "explain"),
        ("commenting on issues", "save_comment"),
    ],
)
def test_the_entry_that_a_query_is_about_comes_first(search: CatalogSearch, query: str, first: str) -> None:
    assert names(search, query)[0] == first


@pytest.mark.parametrize(
    "query", ["linear.list_teams", "mcp__linear__list_teams", "LINEAR.LIST_TEAMS", " linear.list_teams "]
)
def test_an_identifier_in_any_case_finds_that_tool_alone(search: CatalogSearch, query: str) -> None:
    (found,) = search.rank(query, limit=5)
    assert found.entry == TOOLS[0]
    assert math.isinf(found.score)


def test_a_prompts_identifier_finds_it_alone(search: CatalogSearch) -> None:
    assert names(search, "Docs.Explain") == ["explain"]


def test_a_uri_finds_every_servers_resource_of_that_uri_and_minds_case() -> None:
    twins = [ResourceEntry(server, "note://One", "one") for server in ("b", "a")]
    search = search_over([*twins, *OTHERS])
    assert [each.entry.server for each in search.rank("note://One", limit=5)] == ["a", "b"]
    assert not any(math.isinf(each.score) for each in search.rank("note://one", limit=5))


def test_a_template_finds_it_alone(search: CatalogSearch) -> None:
    assert names(search, "schema://tables/{table}") == ["schema://tables/{table}"]


@pytest.mark.parametrize("query", ["list issues", "listIssues", "LIST-ISSUES", "list_issues", "ListIssues"])
def test_the_style_of_a_name_does_not_matter(query: str) -> None:
    search = search_over([tool("a", "listIssues"), tool("b", "list_issue_comments", "issues issues issues list")])
    assert names(search, query)[0] == "listIssues"


def test_a_tool_of_the_very_name_comes_before_longer_names() -> None:
    search = search_over([tool("redis", "get"), *(tool("files", f"get_{number}") for number in range(80))])
    assert names(search, "get")[0] == "get"


def test_a_prompt_of_the_same_name_does_not_hide_a_tool() -> None:
    search = search_over([tool("fetch", "fetch", "Fetches a URL"), PromptEntry("fetch", "fetch")])
    assert sorted(names(search, "fetch")) == ["fetch", "fetch"]


@pytest.mark.parametrize("query", ["", "   ", "the MCP tools", "use a tool for me, please", "xylophone", "!?"])
def test_a_query_of_nothing_or_of_what_nothing_answers_finds_nothing(search: CatalogSearch, query: str) -> None:
    assert search.rank(query, limit=5) == []


def test_an_empty_catalog_answers_every_query_with_nothing() -> None:
    assert CatalogSearch().rank("list teams", limit=5) == []
    assert CatalogSearch().rank("a.b", kinds=["tool"], server="a", limit=5) == []


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("repositry", "create_repository"),
        ("creat repo", "create_repository"),
        ("notifcations", "list_notifications"),
        ("calen", "get_calendar_events"),
        ("calendarevents", "get_calendar_events"),
        ("reposiotry", "create_repository"),
    ],
)
def test_beginnings_typing_errors_and_joined_words_find_what_was_meant(query: str, first: str) -> None:
    search = search_over(
        [tool("hub", "create_repository"), tool("hub", "list_notifications"), tool("office", "get_calendar_events")]
    )
    assert names(search, query)[0] == first


def test_words_of_parameters_are_found_at_any_depth() -> None:
    schema = {
        "type": "object",
        "properties": {
            "order": {
                "anyOf": [
                    {"$ref": "#/$defs/Order"},
                    {"type": "array", "items": {"properties": {"invoiceNumber": {"description": "as printed"}}}},
                ]
            },
            "currency": {"enum": ["EUR", "krona"]},
        },
        "$defs": {"Order": {"properties": {"discount": {"type": "number"}}}},
    }
    search = search_over([tool("shop", "submit", "Sends it", schema), tool("shop", "cancel", "Takes it back")])
    for query in ("invoice", "printed", "krona", "discount"):
        assert names(search, query) == ["submit"], query


def test_a_schema_of_any_depth_is_analysed() -> None:
    schema: dict[str, object] = {"type": "object", "description": "deep"}
    for _ in range(5000):
        schema = {"type": "object", "properties": {"x": schema}}
    assert names(search_over([tool("s", "t", "", schema)]), "deep") == ["t"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda values: (
        st.lists(values, max_size=4) | st.dictionaries(st.sampled_from(KEYWORDS) | st.text(), values, max_size=5)
    ),
    max_leaves=20,
)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.text(min_size=1), st.text(), st.dictionaries(st.sampled_from(KEYWORDS), JSON))), st.text())
def test_whatever_servers_say_and_people_ask_is_answered(
    said: list[tuple[str, str, dict[str, Any]]], query: str
) -> None:
    entries: list[CatalogEntry] = [tool("s", name, text, schema) for name, text, schema in said]
    entries += [ResourceEntry("s", f"x:{text}", name, text) for name, text, _ in said]
    search = search_over(entries)
    assert len(search.rank(query, limit=50)) <= 50
    for name, _, _ in said:
        assert name in [each.entry.name for each in search.rank(native_name("s", name), limit=50)]


def test_a_stuffed_description_does_not_beat_a_name() -> None:
    words = "list create search issue team comment query file read write message send calendar event " * 40
    search = search_over([*TOOLS, tool("spam", "do_everything", words)])
    assert names(search, "list teams")[0] == "list_teams"
    assert names(search, "search issues")[0] == "listIssues"


def test_chinese_japanese_and_korean_queries_find_words_within_text() -> None:
    search = search_over(
        [
            tool("bing", "bing_search", "使用必应搜索指定的关键词，并返回搜索结果列表"),
            tool("rail", "get_tickets", "查询12306余票信息"),
            tool("memo", "add", "メモを保存する"),
            tool("mail", "send", "이메일을 보냅니다"),
        ]
    )
    assert names(search, "搜索结果")[0] == "bing_search"
    assert names(search, "余票查询")[0] == "get_tickets"
    assert names(search, "メモ保存")[0] == "add"
    assert names(search, "이메일")[0] == "send"


def test_accents_and_full_width_letters_are_found_without() -> None:
    search = search_over([tool("fr", "créer_événement"), tool("jp", "ｆｉｌｅ")])
    assert names(search, "creer evenement") == ["créer_événement"]
    assert names(search, "file") == ["ｆｉｌｅ"]


def test_a_servers_own_title_finds_its_entries() -> None:
    search = search_over([tool("work", "create_issue")], title="GitHub MCP Server")
    assert names(search, "github") == ["create_issue"]


def test_only_the_wanted_kinds_and_server_are_ranked(search: CatalogSearch) -> None:
    assert names(search, "schema", kinds=["resource"]) == ["schema://analytics"]
    assert set(names(search, "search list query", server="linear")) <= {"list_teams", "save_comment", "listIssues"}
    assert names(search, "linear.list_teams", server="cloudflare") == []
    assert names(search, "linear.list_teams", kinds=["prompt"]) == []


def test_a_filter_leaves_room_for_what_it_keeps() -> None:
    crowd = [tool("crowd", f"list_issues_{number}") for number in range(200)]
    search = search_over([*crowd, tool("quiet", "audit", "Mentions issues once among many other words of no weight")])
    assert names(search, "list issues", server="quiet") == ["audit"]


def test_the_limit_holds_across_kinds(search: CatalogSearch) -> None:
    assert len(search.rank("schema tables authentication list", limit=3)) == 3
    assert len(search_over([tool("s", f"list_{n}") for n in range(90)]).rank("list", limit=50)) == 50


def test_equal_entries_come_by_kind_server_and_name_whatever_order_they_came_in() -> None:
    entries: list[CatalogEntry] = [tool(server, f"ping{letter}") for server in "cab" for letter in "zxy"]
    entries += [ResourceEntry(server, f"ping://{letter}", "ping") for server in "ca" for letter in "zx"]
    expected = None
    for seed in range(4):
        random.Random(seed).shuffle(entries)
        ranked = search_over(entries).rank("ping", limit=50)
        shown = [(type(each.entry).__name__, each.entry.server, each.entry.name, each.score) for each in ranked]
        expected = expected or shown
        assert shown == expected
    scores = [each.score for each in search_over(entries).rank("ping", limit=50)]
    assert scores == sorted(scores, reverse=True)


def test_what_was_replaced_is_found_by_its_new_words_alone(search: CatalogSearch) -> None:
    search.replace("tool", "linear", [tool("linear", "list_squads", "List squads")])
    assert names(search, "squads") == ["list_squads"]
    assert "list_teams" not in names(search, "list teams")
    search.replace("tool", "linear", [])
    assert "list_squads" not in names(search, "squads")


def test_only_the_texts_of_what_was_replaced_are_analysed_again(
    search: CatalogSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    search.rank("teams", limit=5)
    analysed: list[str] = []
    original = catalog_search.analyse

    def recording(texts: Mapping[Key, tuple[Sequence[CatalogEntry], str]], analyser: Analyser) -> dict[Key, Part]:
        analysed.extend(server for _, server in texts)
        return original(texts, analyser)

    monkeypatch.setattr(catalog_search, "analyse", recording)
    search.replace("tool", "cloudflare", [tool("cloudflare", "purge")])
    assert names(search, "purge") == ["purge"]
    assert analysed == ["cloudflare"]


def test_words_of_what_is_gone_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_search, "_STALE_WORDS", 50)
    search = search_over(TOOLS)
    for number in range(100):
        search.replace("tool", "new", [tool("new", f"word{number}x{letter}") for letter in "abcdefghij"])
        assert names(search, f"new.word{number}xa") == [f"word{number}xa"]
    assert names(search, "list teams")[0] == "list_teams"
    assert len(search._analyser.terms) < 300


def test_a_page_of_text_as_a_query_is_answered() -> None:
    text = "please list the teams " + " ".join(f"word{number}" for number in range(20_000))
    assert names(search_over(TOOLS), text)[0] == "list_teams"


def test_a_prompts_arguments_are_found() -> None:
    prompt = PromptEntry("travel", "plan", arguments=(PromptArgument("destination", "Where the journey goes"),))
    assert names(search_over([prompt]), "journey destination") == ["plan"]


def pairs(*identifiers: str) -> list[tuple[str, str]]:
    return [(each, each) for each in identifiers]


def test_near_names_are_at_most_three_and_only_when_near() -> None:
    choices = pairs("github.create_issue", "github.create_issues", "github.list_issues", "github.x")
    assert near_names("github.create_isue", choices) == ("github.create_issue", "github.create_issues")
    assert near_names("GitHub.Create_Issue", choices)[0] == "github.create_issue"
    assert near_names("weather.forecast", choices) == ()
    assert near_names("s.tool", pairs(*(f"s.tool_{number}" for number in range(9)))) == (
        "s.tool_0",
        "s.tool_1",
        "s.tool_2",
    )


def test_several_names_of_one_tool_count_once() -> None:
    choices = [("linear.list_teams", "linear.list_teams"), ("mcp__linear__list_teams", "linear.list_teams")]
    assert near_names("mcp__linear__list_team", choices) == ("linear.list_teams",)


def test_a_name_that_several_tools_share_is_near_to_all_of_them() -> None:
    choices = [("create_issue", "github.create_issue"), ("create_issue", "gitlab.create_issue")]
    assert near_names("create_isue", choices) == ("github.create_issue", "gitlab.create_issue")


def test_a_label_may_be_the_short_form_of_a_word_of_the_query() -> None:
    search = CatalogSearch()
    search.replace("tool", "forge", [tool("forge", "open_repo", "Opens it"), tool("forge", "rep_all", "Repeats it")])
    assert [each.entry.name for each in search.rank("repository", limit=5)] == ["open_repo"]


def test_each_result_says_which_words_of_the_query_were_found_in_which_fields() -> None:
    search = search_over(
        [tool("linear", "list_teams", "Lists all teams", {"type": "object", "properties": {"workspace": {}}})]
    )
    (found,) = search.rank("list the teams of a workspace", limit=5)
    assert found.matched == ("list: name, description", "teams: name, description", "workspace: parameters")
    (begun,) = search.rank("tea line unknown", limit=5)
    assert begun.matched == ("tea: name, description", "line: server")
    (exact,) = search.rank("linear.list_teams", limit=5)
    assert exact.matched == ("identifier",)


def test_what_a_server_calls_itself_counts_as_its_name_where_a_result_says_why() -> None:
    search = CatalogSearch()
    search.replace("tool", "gh", [tool("gh", "fork")], title="GitHub Enterprise")
    (found,) = search.rank("enterprise", limit=5)
    assert found.matched == ("enterprise: server",)


def test_of_names_that_differ_in_style_alone_the_typed_one_comes_first() -> None:
    search = CatalogSearch()
    for server, name in (("a", "list_tables"), ("b", "list-tables"), ("c", "listTables")):
        search.replace("tool", server, [tool(server, name, "Lists tables")])
    for name in ("list_tables", "list-tables", "LISTTABLES", "listTables"):
        assert search.rank(name, limit=1)[0].entry.name.casefold() == name.casefold()


def test_a_name_of_stop_words_alone_is_found_by_itself_in_any_style_and_by_nothing_less() -> None:
    search = CatalogSearch()
    search.replace(
        "tool", "a", [tool("a", "do_it", "Does it"), tool("a", "use", "Uses it"), tool("a", "print", "Prints")]
    )
    for name in ("do_it", "do it", "DoIt"):
        assert [each.entry.name for each in search.rank(name, limit=5)] == ["do_it"]
    for query in ("do", "it", "the MCP tools", "do it now please", "!!"):
        assert "do_it" not in [each.entry.name for each in search.rank(query, limit=5)]
    assert search.rank("do it", server="b", limit=5) == []
