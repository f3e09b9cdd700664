"""Deskhand's icons: strokes in ``resources/icons/*.svg``, drawn in the palette's colours at the sizes that screens ask for.

Used by buttons, menus and labels. An icon set with `set_icon` is drawn anew when the theme changes. Icons grow with the
application's font: `size` is the one place that says how large they are.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QAction, QFontMetrics, QGuiApplication, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QApplication

from desktop.ui import theme

FOLDER = Path(__file__).parents[2] / "resources" / "icons"
#: Pixels beside text of the usual size.
_USUAL = 16
#: Of the ascent of a font, beside which an icon looks as high as the text.
_SHARE = 1.2
_NAME, _TONE = "deskhand_icon", "deskhand_icon_tone"


def size() -> int:
    """Pixels of an icon beside text in the application's font."""
    return max(_USUAL, round(QFontMetrics(QGuiApplication.font()).ascent() * _SHARE))


def scaled(pixels: int) -> int:
    """A length that goes with an icon of the usual size, as it is beside icons of the present size."""
    return round(pixels * size() / _USUAL)


def icon(name: str, tone: str = "") -> QIcon:
    """An icon by its file's name, in the colour of text, or in that of `theme.Colors` that `tone` names.

    Selected, it is drawn for the accent's ground. It keeps its colours: where the theme may change meanwhile, use `set_icon`.
    Raises FileNotFoundError.
    """
    colors = QGuiApplication.palette()
    normal = getattr(theme.colors(), tone) if tone else colors.color(QPalette.ColorRole.ButtonText).name()
    disabled = colors.color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.ButtonText).name()
    selected = colors.color(QPalette.ColorRole.HighlightedText).name()
    return _icon(name, normal, disabled, selected, size())


def set_icon(target: QAbstractButton | QAction, name: str, tone: str = "") -> None:
    """Gives a button or an action an icon that follows the theme; a button's grows with the font, too."""
    target.setProperty(_NAME, name)
    target.setProperty(_TONE, tone)
    _draw_on(target)


def pixmap(name: str, pixels: int, tone: str = "", *, scale: float = 1) -> QPixmap:
    """An icon of so many pixels for a screen of that scale."""
    color = getattr(theme.colors(), tone) if tone else QGuiApplication.palette().color(QPalette.ColorRole.Text).name()
    result = _draw(_renderer(name, color), round(pixels * scale))
    result.setDevicePixelRatio(scale)
    return result


def application_icon() -> QIcon:
    result, renderer = QIcon(), _renderer("deskhand", "")
    for pixels in (16, 24, 32, 48, 64, 128, 256):
        result.addPixmap(_draw(renderer, pixels))
    return result


def redraw() -> None:
    """Draws every icon that was set with `set_icon` in the present colours; called when the theme has changed."""
    for widget in QApplication.allWidgets():
        for target in (widget, *widget.actions()):
            if target.property(_NAME) and isinstance(target, QAbstractButton | QAction):
                _draw_on(target)


def _draw_on(target: QAbstractButton | QAction) -> None:
    if isinstance(target, QAbstractButton):
        target.setIconSize(QSize(size(), size()))
    target.setIcon(icon(target.property(_NAME), target.property(_TONE)))


@lru_cache(maxsize=256)
def _icon(name: str, normal: str, disabled: str, selected: str, size_: int) -> QIcon:
    """With pixmaps for the scales 1, 1.25, 1.5 and 2 of a screen."""
    result = QIcon()
    modes = (QIcon.Mode.Normal, normal), (QIcon.Mode.Disabled, disabled), (QIcon.Mode.Selected, selected)
    for mode, color in modes:
        renderer = _renderer(name, color)
        for scale in (1, 1.25, 1.5, 2):
            result.addPixmap(_draw(renderer, round(size_ * scale)), mode)
    return result


@lru_cache(maxsize=128)
def _svg(name: str) -> bytes:
    return (FOLDER / f"{name}.svg").read_bytes()


def _renderer(name: str, color: str) -> QSvgRenderer:
    return QSvgRenderer(QByteArray(_svg(name).replace(b"currentColor", color.encode())))


def _draw(renderer: QSvgRenderer, pixels: int) -> QPixmap:
    result = QPixmap(pixels, pixels)
    result.fill(Qt.GlobalColor.transparent)
    painter = QPainter(result)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    renderer.render(painter, QRectF(0, 0, pixels, pixels))
    painter.end()
    return result


theme.theme_changed.connect(redraw)
