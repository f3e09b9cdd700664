"""Every text can be read on every background it may stand on, and a change of theme reaches what is on the screen."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import pytest
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from desktop.ui import icons, theme
from desktop.ui.labels import PlainLabel

Role = QPalette.ColorRole
TEXTS = ("ok", "warning", "error", "running", "muted")
BACKGROUNDS = tuple(each.name for each in dataclasses.fields(theme.Colors) if each.name not in (*TEXTS, "border"))


@pytest.fixture(autouse=True)
def platform_theme() -> Iterator[None]:
    yield
    theme.apply("system")


def contrast(one: QColor, other: QColor) -> float:
    """WCAG 2.2, success criterion 1.4.3."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: QColor) -> float:
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (color.redF(), color.greenF(), color.blueF())
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_contrast_is_computed_as_wcag_says() -> None:
    assert contrast(QColor("black"), QColor("white")) == pytest.approx(21)
    assert contrast(QColor("#777777"), QColor("white")) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("text", "background"),
    [
        (Role.WindowText, Role.Window),
        (Role.Text, Role.Base),
        (Role.Text, Role.AlternateBase),
        (Role.PlaceholderText, Role.Base),
        (Role.ButtonText, Role.Button),
        (Role.HighlightedText, Role.Highlight),
        (Role.Link, Role.Window),
        (Role.Link, Role.Base),
        (Role.LinkVisited, Role.Base),
        (Role.ToolTipText, Role.ToolTipBase),
    ],
    ids=lambda role: role.name,
)
def test_texts_of_the_palette_are_readable(dark: bool, text: Role, background: Role) -> None:
    palette = theme.palette(dark=dark)
    assert contrast(palette.color(text), palette.color(background)) >= 4.5


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_of_the_table_are_readable_on_every_background(dark: bool) -> None:
    colors, palette = theme.DARK if dark else theme.LIGHT, theme.palette(dark=dark)
    grounds = [QColor(getattr(colors, name)) for name in BACKGROUNDS]
    grounds += [palette.color(role) for role in (Role.Window, Role.Base, Role.AlternateBase)]
    texts = [QColor(getattr(colors, name)) for name in TEXTS] + [palette.color(Role.Text), palette.color(Role.Link)]
    poor = [
        (text.name(), ground.name(), round(contrast(text, ground), 2))
        for text, ground in itertools.product(texts, grounds)
        if contrast(text, ground) < 4.5
    ]
    assert poor == []


def test_applying_a_scheme_changes_what_is_on_the_screen(qtbot: QtBot) -> None:
    theme.apply("light")
    window = QWidget()
    qtbot.addWidget(window)
    label, button = PlainLabel("failed", window, tone="error"), QToolButton(window)
    icons.set_icon(button, "add")
    window.show()
    light_icon = button.icon().pixmap(16, 16).toImage()
    assert not theme.is_dark()
    assert label.palette().color(Role.WindowText).name() == theme.LIGHT.error
    with qtbot.waitSignal(theme.theme_changed, timeout=1000):
        theme.apply("dark")
    assert theme.is_dark()
    qtbot.waitUntil(lambda: label.palette().color(Role.WindowText).name() == theme.DARK.error)
    assert button.icon().pixmap(16, 16).toImage() != light_icon


def test_the_font_size_changes_labels_too_and_back(qtbot: QtBot) -> None:
    theme.apply("light")
    normal = QApplication.font().pointSizeF()
    window = QWidget()
    qtbot.addWidget(window)
    plain, title = PlainLabel("text", window), PlainLabel("title", window, scale=1.5)
    window.show()
    theme.apply("light", font_size=20)
    qtbot.waitUntil(lambda: plain.font().pointSizeF() == 20)
    qtbot.waitUntil(lambda: title.font().pointSizeF() == 30)
    theme.apply("light", font_size=0)
    qtbot.waitUntil(lambda: plain.font().pointSizeF() == normal)


@pytest.mark.parametrize("background", [Role.Window, Role.Base])
def test_a_tone_holds_on_every_background(qtbot: QtBot, background: Role) -> None:
    theme.apply("dark")
    ground = QWidget()
    qtbot.addWidget(ground)
    ground.setBackgroundRole(background)
    label = PlainLabel("muted", ground, tone="muted")
    assert label.palette().color(label.foregroundRole()).name() == theme.DARK.muted


def test_a_label_shows_markup_as_it_is(qtbot: QtBot) -> None:
    label = PlainLabel("<b>bold</b><img src='file:///etc/passwd'>", wrap=False)
    qtbot.addWidget(label)
    plain = PlainLabel("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", wrap=False)
    qtbot.addWidget(plain)
    assert label.sizeHint().width() > plain.sizeHint().width() * 0.7
    assert label.sizeHint().height() == plain.sizeHint().height()


@pytest.mark.parametrize("name", sorted(file.stem for file in icons.FOLDER.glob("*.svg") if file.stem != "deskhand"))
def test_an_icon_is_drawn_in_the_text_s_colour_at_both_scales(qtbot: QtBot, name: str) -> None:
    theme.apply("dark")
    drawn = icons.icon(name)
    assert {(size.width(), size.height()) for size in drawn.availableSizes()} >= {(16, 16), (32, 32)}
    image = drawn.pixmap(32, 32).toImage()
    expected = theme.palette(dark=True).color(Role.ButtonText)
    strong = [color for x in range(32) for y in range(32) if (color := image.pixelColor(x, y)).alpha() == 255]
    assert strong
    for color in strong:
        assert abs(color.red() - expected.red()) + abs(color.green() - expected.green()) <= 4


def test_the_application_icon_has_the_sizes_that_desktops_ask_for(qtbot: QtBot) -> None:
    sizes = {size.width() for size in icons.application_icon().availableSizes()}
    assert {16, 32, 48, 256} <= sizes
