"""What stands below a server's row when it needs the person: why it failed, or the command that waits to be allowed.

Used by the servers panel. Next steps are buttons; a block only says which one was pressed.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Sequence

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from desktop import links
from desktop.errors import Diagnostic
from desktop.host.command_risks import Risk, risks
from desktop.host.programs import find_program
from desktop.host.runtimes import runtime_of
from desktop.host.server_config import ServerDefinition
from desktop.host.server_state import Failure, ServerState
from desktop.ui import messages, tasks, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.fixed_text import FixedText
from desktop.ui.flow_layout import FlowLayout
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible, visible_line

#: The steps for each code of a failure, the one that is suggested first. Connecting again can't mend what is wrong with a
#: definition; of what is not here nobody knows better than to try again and to look.
_STEPS: dict[str, tuple[str, ...]] = {
    "secret_missing": ("secrets", "edit", "log"),
    "runtime_missing": ("install", "reconnect", "edit"),
    "certificate_refused": ("certificates", "edit", "log"),
    **dict.fromkeys(
        (
            "command_not_found",
            "configuration_invalid",
            "variable_missing",
            "secret_lookup_failed",
            "authentication_required",
            "permission_denied",
        ),
        ("edit", "reconnect", "log"),
    ),
    **dict.fromkeys(("protocol_error", "protocol_unsupported", "capability_required"), ("log", "reconnect", "edit")),
}
_OTHER_STEPS = ("reconnect", "log", "edit")
_SHOWN_LINES = 8
_SECOND = 1000


class Block(QWidget):
    """Signals:
    step_chosen: The name of the step whose button was pressed: a key of `_labels`.
    """

    step_chosen = Signal(str)

    def __init__(self, texts: Sequence[QWidget], steps: Sequence[str]) -> None:
        """`steps` are the buttons, the first the one that is suggested."""
        super().__init__()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, theme.SPACING, 0, 0)
        layout.setSpacing(theme.SPACING)
        for text in texts:
            layout.addWidget(text)
        buttons = FlowLayout()
        labels = _labels()
        for number, step in enumerate(steps):
            button = PrimaryButton(labels[step]) if number == 0 else QPushButton(labels[step])
            button.setObjectName(step)
            button.clicked.connect(lambda _=False, step=step: self.step_chosen.emit(step))
            buttons.addWidget(button)
        layout.addLayout(buttons)


class FailureBlock(Block):
    """Why a server is not connected, what it said last, what is done next by itself, and what the person can do."""

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
        self._program = PlainLabel(tone="muted", selectable=True)
        self._program.hide()
        code = tr("Code: {code}").format(code=failure.diagnostic.code)
        self._countdown = PlainLabel(tone="muted")
        texts += [self._program, PlainLabel(code, tone="muted", selectable=True)]
        if state.retry_in is not None:
            texts.append(self._countdown)
        super().__init__(texts, _STEPS.get(failure.diagnostic.code, _OTHER_STEPS))
        if state.retry_in is not None:
            self._due = time.monotonic() + state.retry_in
            self._ticks = QTimer(self, interval=_SECOND)
            self._ticks.timeout.connect(self._count_down)
            self._ticks.start()
            self._count_down()

    def look_for_program(self, definition: ServerDefinition) -> None:
        """Tells, as soon as it is known, which program the command names: many a failure is that of an old version."""
        if definition.kind == "stdio":
            tasks.start(self._tell_program(definition), on_error=self)

    async def _tell_program(self, definition: ServerDefinition) -> None:
        program = await find_program(definition.command, definition.env, definition.cwd)
        if program.path:  # else the failure says so
            self._program.setText(tr("Program: {program}").format(program=program))
            self._program.show()

    def _count_down(self) -> None:
        seconds = max(0, round(self._due - time.monotonic()))
        self._countdown.setText(tr("Next attempt in {seconds} s.").format(seconds=seconds))
        if not seconds:
            self._ticks.stop()


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
        texts += [PlainLabel(risk_text(each), tone="warning") for each in risks(definition)]
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
        super().__init__(texts, ("allow", "edit"))


class WarningBlock(Block):
    """What is wrong with a server that is connected all the same: its lists, or lines that are no messages."""

    def __init__(self, state: ServerState) -> None:
        texts = [PlainLabel(messages.message(each), tone="warning", selectable=True) for each in state.warnings]
        if state.strays:
            said = tr("It prints lines that are no messages. They are left out and stand in its log.")
            texts.append(PlainLabel(said, tone="muted"))
        super().__init__(texts, ())


class FaultBlock(Block):
    """Why an entry of the configuration was left out: the field and the reason."""

    def __init__(self, fault: Diagnostic) -> None:
        words = messages.words(fault)
        texts = [PlainLabel(words.detail, tone="error", selectable=True), PlainLabel(words.remedy, tone="muted")]
        super().__init__(texts, ("edit", "file") if fault.server else ("file",))


async def show_installation(command: str) -> None:
    """Opens the page that says how the program of a command is installed, where that is known."""
    runtime = runtime_of(command)
    link = links.check(runtime.site) if runtime is not None else None
    if link is not None:
        await links.open_in_browser(link)


def _labels() -> dict[str, str]:
    """What the button of a step says."""
    return {
        "allow": tr("Allow to start"),
        "reconnect": tr("Reconnect"),
        "edit": tr("Edit"),
        "log": tr("Log"),
        "secrets": tr("Enter it…"),
        "install": tr("How to install it"),
        "certificates": tr("Choose certificates…"),
        "file": tr("Open file"),
    }


def risk_text(risk: Risk) -> str:
    """What a person should know of a command, in a sentence."""
    match risk:
        case "shell":
            return tr("It runs a shell: what stands behind it may be several commands.")
        case "inline_code":
            return tr("It runs program code that stands in the command itself.")
        case "whole_disk":
            return tr("It gives a container all of your disk or your home folder.")
        case "privileged":
            return tr("It gives a container the rights of the whole computer.")
        case "latest_version":
            return tr("It fetches the package's newest version each time: another one may run tomorrow.")


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
