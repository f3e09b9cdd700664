"""What stands below a server's row when it needs the person: why it failed, or the command that waits to be allowed.

Used by the servers panel. Next steps are buttons; a block only says which one was pressed.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from desktop.errors import Diagnostic
from desktop.host.server_config import ServerDefinition
from desktop.host.server_state import Failure, ServerState
from desktop.ui import messages, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.fixed_text import FixedText
from desktop.ui.flow_layout import FlowLayout
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible, visible_line

#: Codes that connecting again can't mend before the definition is changed.
_MENDED_BY_EDITING = frozenset(
    {
        "command_not_found",
        "configuration_invalid",
        "variable_missing",
        "secret_missing",
        "certificate_refused",
        "permission_denied",
    }
)
_SHOWN_LINES = 8


class Block(QWidget):
    """Signals:
    step_chosen: The name of the step whose button was pressed: ``reconnect``, ``allow``, ``edit``, ``log``.
    """

    step_chosen = Signal(str)

    def __init__(self, texts: Sequence[QWidget], steps: Sequence[tuple[str, str]]) -> None:
        """`steps` are names and labels of buttons, the first the one that is suggested."""
        super().__init__()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, theme.SPACING, 0, 0)
        layout.setSpacing(theme.SPACING)
        for text in texts:
            layout.addWidget(text)
        buttons = FlowLayout()
        for number, (step, label) in enumerate(steps):
            button = PrimaryButton(label) if number == 0 else QPushButton(label)
            button.setObjectName(step)
            button.clicked.connect(lambda _=False, step=step: self.step_chosen.emit(step))
            buttons.addWidget(button)
        layout.addLayout(buttons)


class FailureBlock(Block):
    def __init__(self, state: ServerState, failure: Failure) -> None:
        words = messages.words(failure.diagnostic)
        texts: list[QWidget] = [
            PlainLabel(f"{_stage(failure)} {words.detail}", tone="error", selectable=True),
        ]
        if failure.exit_status is not None and failure.diagnostic.code != "server_exited":  # whose words say it
            texts.append(PlainLabel(_exit(failure.exit_status), selectable=True))
        if failure.error_output:
            lines = failure.error_output.strip("\n").splitlines()[-_SHOWN_LINES:]
            name = tr("Last lines of the server's error output")
            texts.append(FixedText(visible("\n".join(lines)), name, most_lines=_SHOWN_LINES, at_end=True))
        if words.remedy:
            texts.append(PlainLabel(words.remedy, tone="muted", selectable=True))
        if state.retry_in is not None:
            texts.append(
                PlainLabel(tr("Next attempt in {seconds} s.").format(seconds=round(state.retry_in)), tone="muted")
            )
        steps = [("reconnect", tr("Reconnect")), ("log", tr("Log")), ("edit", tr("Edit"))]
        if failure.diagnostic.code in _MENDED_BY_EDITING:
            steps = [steps[2], steps[0], steps[1]]
        super().__init__(texts, steps)


class ConsentBlock(Block):
    """The whole command as it would run, one argument a line, and the commands that print values for it; nothing of them is left
    out or can hide."""

    def __init__(self, definition: ServerDefinition) -> None:
        texts: list[QWidget] = []
        if definition.kind == "stdio":
            warning = tr(
                "This server is a program on your computer. It can do there whatever you can do. "
                "Allow it only if you trust where this command comes from."
            )
            texts += [PlainLabel(warning), FixedText(command_lines(definition), tr("Command"), most_lines=16)]
        else:
            warning = tr(
                "Connecting runs a command on your computer and sends what it prints to {url}. It can do whatever you can do. "
                "Allow it only if you trust where it comes from."
            )
            texts.append(PlainLabel(warning.format(url=visible_line(definition.url, 4000))))
        for name, command in definition.secret_commands.items():
            told = tr("Command for the value of {name}").format(name=visible_line(name, 4000))
            texts += [PlainLabel(told, tone="muted"), FixedText(visible(command), told, most_lines=16)]
        if definition.cwd:
            texts.append(
                PlainLabel(tr("Folder: {folder}").format(folder=visible_line(definition.cwd, 4000)), tone="muted")
            )
        if definition.env:
            names = ", ".join(visible_line(name, 4000) for name in sorted(definition.env))
            texts.append(PlainLabel(tr("Environment: {names}").format(names=names), tone="muted"))
        super().__init__(texts, [("allow", tr("Allow to start")), ("edit", tr("Edit"))])


class WarningBlock(Block):
    """What was wrong with the lists of a server that is connected all the same."""

    def __init__(self, warnings: Sequence[Diagnostic]) -> None:
        texts = [PlainLabel(messages.message(each), tone="warning", selectable=True) for each in warnings]
        super().__init__(texts, [])


class FaultBlock(Block):
    """Why an entry of the configuration was left out: the field and the reason."""

    def __init__(self, fault: Diagnostic) -> None:
        words = messages.words(fault)
        texts = [PlainLabel(words.detail, tone="error", selectable=True), PlainLabel(words.remedy, tone="muted")]
        super().__init__(texts, [("edit", tr("Edit"))] if fault.server else [("open", tr("Open file"))])


def command_lines(definition: ServerDefinition) -> str:
    """A command with each argument on a line of its own: each line is exactly one argument, and no two commands look alike.

    An argument that is empty or holds space, quotation marks or hidden characters stands in quotation marks, with escapes.
    """
    return "\n".join(_argument(each) for each in (definition.command, *definition.args))


def _argument(text: str) -> str:
    if text and text == visible(text) and not re.search(r"[\s\"]", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{visible(escaped)}"'


def _stage(failure: Failure) -> str:
    match failure.stage:
        case "start":
            return tr("It did not start.")
        case "handshake":
            return tr("No connection came about.")
        case "list":
            return tr("It is there, but its list could not be read.")
        case "running":
            return tr("It was connected and stopped working.")


def _exit(status: int) -> str:
    if status >= 0:
        return tr("Exit status {status}").format(status=status)
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return tr("Ended by signal {signal}").format(signal=name)
