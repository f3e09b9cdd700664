"""Icons that servers bring along: which are taken, and how they are drawn."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from mcp_types import Tool
from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QColor, QImage

from desktop.assistant import stored_definitions
from desktop.catalog_entries import ToolDefinition
from desktop.host.admission import admit_tools
from desktop.host.server_config import ServerDefinition
from desktop.ui import list_rows, server_icons
from desktop.ui.panels.catalog_rows import CatalogModel

pytestmark = pytest.mark.anyio


def image(format_: str = "PNG", side: int = 8) -> str:
    """Base64 of a red picture."""
    picture = QImage(side, side, QImage.Format.Format_RGB32)
    picture.fill(QColor("red"))
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    picture.save(buffer, format_)  # type: ignore[arg-type, call-overload]  # the stubs want bytes, Qt a text
    return base64.b64encode(content.data()).decode()


def tool(*icons: dict[str, Any]) -> ToolDefinition:
    listed = Tool.model_validate({"name": "t", "inputSchema": {"type": "object"}, "icons": list(icons)})
    (entry,) = admit_tools(ServerDefinition("s", "stdio", command="x"), [listed]).entries
    assert isinstance(entry, ToolDefinition)
    return entry


async def test_the_first_icon_that_comes_with_the_list_is_drawn_in_the_row() -> None:
    data = image()
    entry = tool({"src": "https://example.org/a.png"}, {"src": f"data:image/png;base64,{data}"})
    assert entry.icon == data
    model = CatalogModel()
    model.show_entries([entry])
    row = model.index(0).data(list_rows.ROW)
    assert row.picture.pixmap(8, 8).toImage().pixelColor(4, 4) == QColor("red")


@pytest.mark.parametrize(
    "src",
    [
        "https://example.org/a.png",
        "file:///etc/passwd",
        "data:image/svg+xml;base64,PHN2Zy8+",
        "data:text/html;base64,PGI+",
        "data:image/png,abc",
        "data:image/png;base64," + "A" * 50_000,
        "",
    ],
)
async def test_other_icons_are_none(src: str) -> None:
    assert tool({"src": src}).icon == ""


@pytest.mark.parametrize(
    "data", ["", "no base64", "PHN2Zy8+", image(side=257), base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()]
)
async def test_what_is_no_small_image_is_not_drawn(data: str) -> None:
    assert server_icons.icon_of(data) is None


@pytest.mark.parametrize("format_", ["JPG", "WEBP"])
async def test_other_formats_are_told_by_what_they_are(format_: str) -> None:
    assert server_icons.icon_of(image(format_)) is not None


async def test_a_definition_is_kept_without_its_icon() -> None:
    entry = tool({"src": f"data:image/png;base64,{image()}"})
    kept = stored_definitions.to_json(entry)
    assert "icon" not in kept
    assert stored_definitions.from_json({**kept, "icon": 5}).icon == ""
