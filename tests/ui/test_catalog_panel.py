"""The catalog panel on the real host and real servers: search, filters, details, what is not listed, the keyboard."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from desktop.catalog_entries import ToolDefinition
from desktop.core import Core
from desktop.host.server_lists import Freshness
from desktop.ui.dialogs.run_tool import RunToolDialog
from desktop.ui.panels.catalog_details import EntryDetails
from desktop.ui.panels.catalog_panel import CatalogPanel
from desktop.ui.panels.catalog_rows import found_in, identifier
from tests.servers.running import friendly, http_server
from tests.ui.person import click, opened, seen, until, write_servers

pytestmark = pytest.mark.anyio


async def panel_with(core: Core, *, width: int = 260, **servers: Mapping[str, Any]) -> CatalogPanel:
    write_servers(core.servers_file, **servers)
    panel = CatalogPanel(core)
    panel.resize(width, 800)
    panel.show()
    await core.start()
    await until(lambda: "Starting" not in seen(panel))
    return panel


def names(panel: CatalogPanel) -> list[str]:
    return [panel.model.index(number).data() for number in range(panel.model.rowCount())]


async def types(panel: CatalogPanel, text: str) -> None:
    """Types into the search box and waits for the answer."""
    panel.focus_search()
    QTest.keyClicks(panel.search_box, text)
    await until(lambda: panel._searching is not None and panel._searching.done())


async def test_nothing_is_asked_before_the_person_wants_the_servers_listed(core: Core) -> None:
    async with http_server(friendly()) as url:
        panel = await panel_with(core, docs={"url": url})
        await types(panel, "sum of numbers")
        assert core.host.connections["docs"].state.status == "idle"
        assert "Not listed: deskhand, docs" in seen(panel)
        panel.search_box.clear()
        click(panel, "List all servers")
        await until(lambda: {"echo", "travel"} <= {*names(panel)} and "Not listed" not in seen(panel))
        docs = [
            panel.model.entry(panel.model.index(number)).server  # type: ignore[union-attr]
            for number in range(panel.model.rowCount())
        ]
        assert docs == sorted(docs)
        assert names(panel)[docs.index("docs") :] == [
            *("add", "echo", "fail", "forget", "look", "now_nothing", "picture", "rows", "slow"),
            *("picture", "today", "city", "greeting", "summary", "travel"),
        ]


async def test_the_search_ranks_as_it_does_for_the_model_and_filters_by_kind_and_server(core: Core) -> None:
    async with http_server(friendly()) as url:
        panel = await panel_with(core, docs={"url": url})
        await core.catalog.refresh("docs")
        await until(lambda: "echo" in names(panel))
        await types(panel, "deletes an entry")
        expected = await core.catalog.search_known("deletes an entry", limit=50)
        await until(lambda: names(panel) == [each.title or each.name for each in expected.candidates])
        assert names(panel)[0] == "forget"
        assert f"{len(expected.candidates)} of " in panel._count.text()
        panel.search_box.clear()
        panel.kind_box.setCurrentIndex(panel.kind_box.findData("prompts"))
        await until(lambda: names(panel) == ["greeting", "summary", "travel"])
        panel.server_box.setCurrentIndex(panel.server_box.findData("deskhand"))
        await until(lambda: names(panel) == [] and "Nothing of this kind is known here." in seen(panel))


async def test_a_server_that_cannot_be_listed_is_named_with_the_reason(core: Core) -> None:
    panel = await panel_with(core, broken={"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]})
    click(panel, "List all servers")
    await until(lambda: "broken: " in seen(panel))
    assert "broken" in panel._faults
    assert panel._faults["broken"].code == "consent_required"


async def test_details_show_parameters_claims_and_the_schema_and_copy_the_identifier(core: Core) -> None:
    async with http_server(friendly()) as url:
        panel = await panel_with(core, docs={"url": url})
        await core.catalog.refresh("docs")
        await until(lambda: "forget" in names(panel))
        await types(panel, "docs.forget")
        await until(lambda: names(panel) == ["forget"])
        await until(lambda: "Tool of docs" in seen(panel.details))
        text = seen(panel.details)
        assert "Deletes an entry." in text
        assert "Listed by the server at " in text
        assert "• id (string, required)" in text
        assert "The server says: it may delete or overwrite" in text
        click(panel.details, "Copy identifier")
        assert QGuiApplication.clipboard().text() == "docs.forget"
        click(panel.details, "Show the schema")
        assert '"required": [' in seen(panel.details)


async def test_details_say_by_which_words_and_fields_an_entry_was_found(core: Core) -> None:
    async with http_server(friendly()) as url:
        panel = await panel_with(core, docs={"url": url})
        await core.catalog.refresh("docs")
        await until(lambda: "forget" in names(panel))
        await types(panel, "forget entries")
        await until(lambda: "Found by “forget” (name), “entries” (description)" in seen(panel.details))
        await types(panel, "docs.forget")
        panel.search_box.clear()
        await types(panel, "docs.forget")
        await until(lambda: "Found by its identifier" in seen(panel.details))
        panel.search_box.clear()
        await until(lambda: "Found by" not in seen(panel.details))


@pytest.mark.parametrize(
    ("name", "reasons", "words"),
    [
        ("list_open_invoices", ["invoice: name, description", "open: name"], ["open", "invoices"]),
        ("listOpenInvoices", ["opened: name"], ["Open"]),
        ("List HTTP requests", ["http: title", "requesting: name"], ["HTTP", "requests"]),
        ("list", ["identifier"], []),
        ("list", ["meaning"], []),
        ("inventory", ["inv: name"], ["inventory"]),
        ("naïve_plan", ["naïve: name"], ["naïve"]),
        ("list", [], []),
    ],
)
def test_the_words_of_a_name_that_were_searched_are_marked(name: str, reasons: list[str], words: list[str]) -> None:
    assert [name[start:end] for start, end in found_in(name, reasons)] == words


async def test_a_chosen_entry_far_down_stays_chosen_and_in_view_when_the_search_is_cleared(core: Core) -> None:
    panel = await panel_with(core)
    tools = [ToolDefinition("s", f"tool {number:04}", "", "", {"type": "object"}, "", "") for number in range(4000)]
    core.catalog.entries = lambda: list(tools)  # type: ignore[method-assign]  # what the panel shows; the ranking gets the same below
    core.catalog._search.replace("tool", "s", tools)
    await types(panel, "s.tool 3456")
    await until(lambda: names(panel) == ["tool 3456"])
    panel.search_box.clear()
    await until(lambda: panel.model.rowCount() == 4000)
    await until(
        lambda: panel.view.viewport().rect().contains(panel.view.visualRect(panel.view.currentIndex()).center())
    )
    assert panel.view.currentIndex().data() == "tool 3456"
    assert f"{QLocale().toString(4000)} entries" in seen(panel)


async def test_a_resource_is_attached_from_its_details_and_a_template_too(core: Core) -> None:
    async with http_server(friendly()) as url:
        panel = await panel_with(core, docs={"url": url})
        attached: list[str] = []
        panel.attach_requested.connect(lambda entry: attached.append(identifier(entry)))
        await core.catalog.refresh("docs")
        await until(lambda: "today" in names(panel))
        await types(panel, "notes://today")
        await until(lambda: "Attach" in seen(panel.details))
        click(panel.details, "Attach")
        panel.search_box.clear()
        await types(panel, "cities://{country}/{city}")
        await until(lambda: "Attach…" in seen(panel.details))
        click(panel.details, "Attach…")
        assert attached == ["notes://today", "cities://{country}/{city}"]


async def test_arrows_in_the_search_box_move_in_the_list_and_enter_goes_to_the_details(core: Core) -> None:
    async with http_server(friendly()) as url:
        panel = await panel_with(core, docs={"url": url})
        await core.catalog.refresh("docs")
        await until(lambda: "add" in names(panel))
        await types(panel, "entry")
        await until(lambda: panel.view.currentIndex().row() == 0)
        QTest.keyClick(panel.search_box, Qt.Key.Key_Down)
        assert panel.view.currentIndex().row() == 1
        assert QApplication.focusWidget() is panel.search_box
        QTest.keyClick(panel.search_box, Qt.Key.Key_Return)
        assert QApplication.focusWidget() is panel.details


@pytest.mark.parametrize(
    ("live", "said"), [(True, "Listed by the server at "), (False, "Kept from an earlier run, listed at ")]
)
def test_an_entry_says_since_when_it_is_known_and_from_where(qtbot: Any, live: bool, said: str) -> None:
    details = EntryDetails()
    qtbot.addWidget(details)
    details.show_entry(ToolDefinition("docs", "x", "x", "", {"type": "object"}, "", ""), Freshness(live, 0.0))
    details.show()
    assert said in seen(details)


def test_parameters_stop_at_depth_two_and_forty_and_nothing_hides_in_them(qtbot: Any) -> None:
    deep = {"type": "object", "properties": {"b": {"type": "object", "properties": {"c": {"type": "string"}}}}}
    many = {f"p{number:02}": {"type": "string"} for number in range(60)}
    schema = {"type": "object", "properties": {"a\u202eb": {"type": "string"}, "a": deep, **many}}
    details = EntryDetails()
    qtbot.addWidget(details)
    details.show_entry(ToolDefinition("docs", "x", "x", "\u202eevil", schema, "", ""), Freshness(True, None))
    details.show()
    text = seen(details)
    assert "\\u202Eevil" in text
    assert "• a\\u202Eb (string)" in text
    assert "• a.b (object)\na.b.…" in text
    assert "• p35 (string)\n…" in text
    assert "p36" not in text


async def test_a_tool_is_reached_and_run_without_a_mouse(core: Core) -> None:
    async with http_server(friendly()) as url:
        panel = await panel_with(core, docs={"url": url})
        QPushButton("Beyond", panel).show()  # made before the details' controls, as the rest of the window is
        await core.catalog.refresh("docs")
        await until(lambda: "echo" in names(panel))
        for query, tool in (("docs.echo", "echo"), ("docs.forget", "forget")):  # the second one's controls are newer
            panel.search_box.clear()
            await types(panel, query)
            await until(lambda tool=tool: names(panel) == [tool] and "Run…" in seen(panel.details))
            QTest.keyClick(panel.search_box, Qt.Key.Key_Return)
            reached: list[str] = []
            for _ in range(3):
                QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
                focused = QApplication.focusWidget()
                assert panel.details.isAncestorOf(focused)
                reached.append(focused.text() or focused.accessibleName())
            assert reached == ["Copy identifier", "Run…", "Schema"]
            panel.search_box.setFocus()


async def run_dialog(core: Core, url: str, tool: str) -> RunToolDialog:
    """The dialog that the panel opens for a tool."""
    panel = await panel_with(core, docs={"url": url})
    await core.catalog.refresh("docs")
    await until(lambda: tool in names(panel))
    await types(panel, f"docs.{tool}")
    await until(lambda: names(panel) == [tool] and "Run…" in seen(panel.details))
    click(panel.details, "Run…")
    return await opened(RunToolDialog)


async def test_a_tool_that_is_run_by_hand_shows_its_result_or_the_error_it_reports(core: Core) -> None:
    async with http_server(friendly()) as url:
        dialog = await run_dialog(core, url, "fail")
        click(dialog, "Run")
        QTest.keyClicks(QApplication.focusWidget(), "out of paper")
        click(dialog, "Run")
        await until(lambda: "The tool reports an error:" in seen(dialog))
        assert "out of paper" in seen(dialog)
        dialog.reject()


async def test_a_tool_that_claims_to_delete_says_so_on_the_button_and_runs_all_the_same(core: Core) -> None:
    async with http_server(friendly()) as url:
        dialog = await run_dialog(core, url, "forget")
        QTest.keyClicks(QApplication.focusWidget(), "7")
        click(dialog, "Run, though it may delete")
        await until(lambda: "forgot 7" in seen(dialog))
        dialog.reject()


async def test_a_run_that_is_stopped_says_so_and_can_be_started_again(core: Core) -> None:
    async with http_server(friendly()) as url:
        dialog = await run_dialog(core, url, "slow")
        click(dialog, "Edit as JSON")
        dialog.form._json.set_value({"steps": 200, "seconds": 60})
        click(dialog, "Run")
        await until(lambda: "step 1 of 200" in seen(dialog))
        click(dialog, "Stop")
        await until(lambda: "Stopped. It may have taken effect." in seen(dialog))
        assert dialog.form.isEnabled()
        dialog.reject()


async def test_a_run_whose_server_is_gone_leads_to_the_server_and_gives_the_keyboard_back(core: Core) -> None:
    requested: list[str] = []
    async with http_server(friendly()) as url:
        dialog = await run_dialog(core, url, "echo")
        panel = next(each for each in QApplication.topLevelWidgets() if isinstance(each, CatalogPanel))
        panel.server_requested.connect(requested.append)
    QTest.keyClicks(QApplication.focusWidget(), "hello")
    click(dialog, "Run")
    await until(lambda: "Show the server" in seen(dialog))
    click(dialog, "Show the server")
    await until(lambda: panel.focusWidget() in (panel.details, panel.search_box))
    assert requested == ["docs"]
