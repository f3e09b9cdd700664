"""The ranking that the search is measured against gives the scores that MiniSearch 7.2.0 gives."""

from __future__ import annotations

import random

import pytest

from desktop.catalog_entries import CatalogEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolDefinition
from desktop.tool_names import native_name
from tests.bench._reference_ranking import ReferenceRanking, collation_key, tokens


def tool(server: str, name: str, description: str) -> ToolDefinition:
    return ToolDefinition(server, name, native_name(server, name), description, {"type": "object"}, "", "")


QUERY = tool("warehouse", "query", "Run a read-only query against analytics tables")
TOOLS: list[CatalogEntry] = [
    tool("linear", "list_teams", "List teams in the workspace"),
    tool("linear", "save_comment", "Create comments on an issue."),
    tool("linear", "listIssues", "Search issues by text"),
    tool("cloudflare", "search", "Search account settings"),
    QUERY,
]
MIXED: list[CatalogEntry] = [
    QUERY,
    PromptEntry("docs", "explain", description="Explain an authentication topic"),
    ResourceEntry("warehouse", "schema://analytics", "schema", "Analytics database schema", "Tables and columns"),
    TemplateEntry(
        "warehouse", "schema://tables/{table}", "table_schema", ("table",), description="Schema of one table"
    ),
    ResourceEntry("docs", "docs://authentication", "auth-guide", "Authentication guide", "No description supplied."),
]


@pytest.mark.parametrize(
    ("entries", "query", "expected"),
    [
        (TOOLS, "list teams", [("list_teams", 34.561260), ("listIssues", 4.947670)]),
        (TOOLS, "search issues", [("listIssues", 22.538211), ("search", 10.664817)]),
        (TOOLS, "tea", [("list_teams", 3.376262)]),
        (TOOLS, "linear", [("list_teams", 0.808495), ("listIssues", 0.808495), ("save_comment", 0.808495)]),
        (TOOLS, "query tables", [("query", 25.681485)]),
        (TOOLS, "teams teams", [("list_teams", 20.167537)]),
        (MIXED, "analytics", [("schema", 10.067412), ("query", 1.712027)]),
        (MIXED, "table schema", [("table_schema", 46.482388), ("schema", 29.786244), ("query", 0.386134)]),
        (MIXED, "authentication", [("auth-guide", 10.961645), ("explain", 2.173656)]),
        (
            MIXED,
            "schema://analytics tables",
            [("schema", 77.759283), ("table_schema", 24.690141), ("query", 5.586404)],
        ),
        (MIXED, "auth", [("auth-guide", 10.923190), ("explain", 0.671276)]),
        (MIXED, "docs", [("auth-guide", 5.082191), ("explain", 1.313203)]),
    ],
)
def test_scores_and_order(entries: list[CatalogEntry], query: str, expected: list[tuple[str, float]]) -> None:
    for _ in range(3):
        found = ReferenceRanking(entries).rank(query, 50)
        assert [entry.name for entry, _ in found] == [name for name, _ in expected]
        assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-5)
        entries = random.Random(1).sample(entries, len(entries))


def test_words() -> None:
    found = tokens("getHTTPResponse v2Beta list_teams XMLParser user-profile Größe naïve")
    assert found == ["get", "httpresponse", "v2beta", "list", "teams", "xmlparser", "user", "profile", "größe", "naïve"]


def test_order_of_names() -> None:
    assert sorted(["AB", "a.b", "ab", "a_b", "aB", "a-b", "a__b"], key=collation_key) == [
        "a__b",
        "a_b",
        "a-b",
        "a.b",
        "ab",
        "aB",
        "AB",
    ]
