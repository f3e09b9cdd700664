"""Light and dark: palettes of Deskhand's own, and one table of the colours that a palette has no role for.

Used by everything that draws. Widgets take colours from their palette and from `colors`, never from anywhere else, and take
them anew when Qt tells them that the palette changed (``changeEvent`` with ``PaletteChange``), or on `theme_changed`.
Qt's own switch (``setColorScheme``) does nothing where there is no platform theme, so it only accompanies ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from desktop.settings import ColorScheme

#: Pixels. All distances are this, its half or its multiples.
SPACING = 8


@dataclass(frozen=True, slots=True)
class Colors:
    """Colours by what they mean. Texts read well (contrast 4.5 or more) on every background of the same table."""

    # texts and glyphs
    ok: str
    warning: str
    error: str
    running: str
    muted: str
    """Text of less weight: times, counts, explanations."""
    # backgrounds
    card: str
    hover: str
    """A row under the pointer."""
    selected: str
    own_message: str
    """What the person wrote."""
    code: str
    info_background: str
    ok_background: str
    warning_background: str
    error_background: str
    # lines
    border: str


LIGHT = Colors(
    ok="#17692c",
    warning="#7a4b00",
    error="#b3201d",
    running="#0a4fbd",
    muted="#535b65",
    card="#ffffff",
    hover="#edf0f3",
    selected="#dfe9fb",
    own_message="#e7eefb",
    code="#f3f4f6",
    info_background="#e8f0fd",
    ok_background="#e6f4ea",
    warning_background="#fdf3dc",
    error_background="#fcebea",
    border="#d3d8df",
)
DARK = Colors(
    ok="#6fcf8b",
    warning="#e8b94a",
    error="#ff9c94",
    running="#8fb8fa",
    muted="#a5aeb9",
    card="#26292e",
    hover="#2f3339",
    selected="#2b3f61",
    own_message="#273855",
    code="#1a1c20",
    info_background="#20304a",
    ok_background="#1d3626",
    warning_background="#3a301a",
    error_background="#44272a",
    border="#3d424a",
)

_Role = QPalette.ColorRole
_LIGHT_ROLES = {
    _Role.Window: "#f5f6f8",
    _Role.WindowText: "#1b1f24",
    _Role.Base: "#ffffff",
    _Role.AlternateBase: "#f3f4f6",
    _Role.Text: "#1b1f24",
    _Role.PlaceholderText: "#636b75",
    _Role.Button: "#f9fafb",
    _Role.ButtonText: "#1b1f24",
    _Role.BrightText: "#ffffff",
    _Role.Light: "#ffffff",
    _Role.Midlight: "#e6e9ed",
    _Role.Mid: "#c4cad2",
    _Role.Dark: "#9aa2ac",
    _Role.Shadow: "#6b7480",
    _Role.Highlight: "#0b57d0",
    _Role.HighlightedText: "#ffffff",
    _Role.Accent: "#0b57d0",
    _Role.Link: "#0a4fbd",
    _Role.LinkVisited: "#6a3fb5",
    _Role.ToolTipBase: "#2b3036",
    _Role.ToolTipText: "#f5f6f8",
}
_DARK_ROLES = {
    _Role.Window: "#1f2125",
    _Role.WindowText: "#e6e8eb",
    _Role.Base: "#17191c",
    _Role.AlternateBase: "#1f2125",
    _Role.Text: "#e6e8eb",
    _Role.PlaceholderText: "#959da8",
    _Role.Button: "#2d3036",
    _Role.ButtonText: "#e6e8eb",
    _Role.BrightText: "#ffffff",
    _Role.Light: "#42474f",
    _Role.Midlight: "#363a41",
    _Role.Mid: "#3d424a",
    _Role.Dark: "#131517",
    _Role.Shadow: "#0b0c0e",
    _Role.Highlight: "#2a65c4",
    _Role.HighlightedText: "#ffffff",
    _Role.Accent: "#2a65c4",
    _Role.Link: "#8fb8fa",
    _Role.LinkVisited: "#c3a6f5",
    _Role.ToolTipBase: "#e6e8eb",
    _Role.ToolTipText: "#1b1f24",
}
_DARK_BOX = "#676e79"
_DARK_FIELD = "#33373e"
_DISABLED_TEXT = {False: "#8a929c", True: "#70767f"}


class _Theme(QObject):
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.scheme: ColorScheme = "system"
        self.platform_font: QFont | None = None

    def follow_system(self) -> None:
        if self.scheme == "system":
            apply("system", font_size=_font_size())


_theme = _Theme()
#: A Qt signal: emitted after palette or font have changed.
theme_changed = _theme.changed


def apply(scheme: ColorScheme, *, font_size: int = 0) -> None:
    """Colours and fonts of the whole application. `font_size` in points; 0: the platform's."""
    hints = QGuiApplication.styleHints()
    if _theme.platform_font is None:
        _theme.platform_font = QApplication.font()
        QApplication.setStyle("Fusion")
        hints.colorSchemeChanged.connect(_theme.follow_system)
    _theme.scheme = scheme
    wanted = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}.get(scheme, Qt.ColorScheme.Unknown)
    hints.setColorScheme(wanted)  # title bars and the platform's own dialogs
    dark = (hints.colorScheme() if scheme == "system" else wanted) == Qt.ColorScheme.Dark
    QApplication.setPalette(palette(dark=dark))
    # In dark the style's outline is darker than the window: an empty box or field would not be seen.
    for ground, kinds in ((_DARK_BOX, ("QCheckBox", "QRadioButton")), (_DARK_FIELD, ("QLineEdit", "QAbstractSpinBox"))):
        colored = palette(dark=dark)
        if dark:
            colored.setColor(_Role.Base, QColor(ground))
        for kind in kinds:
            QApplication.setPalette(colored, kind)  # type: ignore[arg-type]  # the stubs want bytes, Qt takes both
    font = QFont(_theme.platform_font)
    if font_size:
        font.setPointSize(font_size)
    if font != QApplication.font():
        QApplication.setFont(font)
    theme_changed.emit()


def colors() -> Colors:
    """The table of the palette in use."""
    return DARK if is_dark() else LIGHT


def is_dark() -> bool:
    return QGuiApplication.palette().color(_Role.Window).lightness() < 128


def palette(*, dark: bool) -> QPalette:
    result = QPalette()
    for role, color in (_DARK_ROLES if dark else _LIGHT_ROLES).items():
        result.setColor(role, QColor(color))
    for role in (_Role.WindowText, _Role.Text, _Role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, role, QColor(_DISABLED_TEXT[dark]))
    return result


def _font_size() -> int:
    size = QApplication.font().pointSize()
    return 0 if _theme.platform_font is None or size == _theme.platform_font.pointSize() else size
