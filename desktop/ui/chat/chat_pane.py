"""The chat: header, messages, composer. Used by the main window.

Looking at another conversation does not stop a turn (``turns.py``); coming back shows it as it is. The events of a turn only say
what to draw anew; what is drawn is the conversation itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QFocusEvent, QKeyEvent, QPalette
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from desktop.assistant.conversation import Choice, Conversation, Form, Notice, Prompt, ToolCall
from desktop.assistant.events import MessageStarted, PartAdded, ToolsActivated, TurnEvent, TurnFinished
from desktop.catalog_entries import ToolDefinition
from desktop.errors import Diagnostic
from desktop.ui import model_menu, tasks, theme
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.chat_header import ChatHeader
from desktop.ui.chat.commands import Commands
from desktop.ui.chat.composer import Composer
from desktop.ui.chat.draft import Attached, Content, Draft
from desktop.ui.chat.empty_state import EmptyState
from desktop.ui.chat.message_list import MessageList
from desktop.ui.chat.message_parts import GUIDE, NoticeView, Surroundings, model_label
from desktop.ui.chat.resource_offers import ResourceOffers
from desktop.ui.chat.strips import Attention, Unsent
from desktop.ui.chat.tool_call_card import ToolCallCard
from desktop.ui.chat.turns import Run, Turns
from desktop.ui.chat.widgets import clear, order_tab_stops

if TYPE_CHECKING:
    from desktop.catalog_entries import ResourceEntry, ServerEntry, TemplateEntry
    from desktop.core import Core

_WIDEST_COMPOSER = 800
#: States of a server that is not asked about: it could not answer.
_NOT_USABLE = frozenset({"failed", "needs_consent", "disabled"})


class ChatPane(QWidget):
    """Signals:
    conversation_changed(str): The shown conversation is another one now, or has another title; its id.
    running_changed(object, object): The ids of conversations whose turn runs, and of those that wait for the person.
    model_menu_requested: The person wants to choose who answers.
    settings_requested: The remedy for what went wrong is in the settings.
    server_requested(str): It is at a server, by name.
    prompt_requested(str, str, object): The prompt picker is to open, with a server, a name and arguments, all perhaps empty.
    """

    conversation_changed = Signal(str)
    running_changed = Signal(object, object)
    model_menu_requested = Signal()
    settings_requested = Signal()
    server_requested = Signal(str)
    prompt_requested = Signal(str, str, object)

    def __init__(self, core: Core, answers: PersonAnswers, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._core = core
        self._answers = answers
        self._conversation = Conversation()
        self._turns = Turns(core, self)
        self._turns.began.connect(self._began)
        self._turns.changed.connect(self._take)
        self._turns.ended.connect(self._ended)
        self._drafts: dict[str, Draft] = {}
        self._faults: dict[str, Diagnostic] = {}
        self._resources = ResourceOffers(core, self)
        self._resources.chosen.connect(self.attach)
        self._offered: set[str] = set()  # questions that had the focus
        self._is_ready = False

        self._header = ChatHeader()
        self._header.model_menu_requested.connect(self.model_menu_requested)
        self._header.renamed.connect(self._rename)
        self._header.unload_requested.connect(self._unload)
        line = QFrame()
        line.setFixedHeight(1)
        line.setBackgroundRole(QPalette.ColorRole.Mid)
        line.setAutoFillBackground(True)
        self._messages = MessageList()
        self._messages.grown.connect(self._show_attention)
        self._messages.verticalScrollBar().valueChanged.connect(self._show_attention)
        self._empty = EmptyState()
        self._empty.suggested.connect(self._suggest)
        self._middle = QStackedWidget()
        self._middle.addWidget(self._empty)
        self._middle.addWidget(self._messages)
        self._strip = QVBoxLayout()
        self._attention = Attention()
        self._attention.show_requested.connect(self.show_waiting_call)
        self._composer = Composer()
        self._composer.sent.connect(self._send_draft)
        self._composer.stopped.connect(self.stop)
        self._composer.completions.add_source(self._resources.source)
        self._commands = Commands(core)
        self._commands.prompt_requested.connect(self.prompt_requested)
        self._composer.completions.add_source(self._commands.source)
        self._composer.resource_requested.connect(lambda: self._composer.begin_completion("@"))
        self._resources.changed.connect(self._composer.completions.refresh)
        below = QVBoxLayout()
        below.setSpacing(theme.SPACING)
        below.addWidget(self._attention)
        below.addWidget(self._commands)
        below.addLayout(self._strip)
        below.addWidget(self._composer)
        self._below = QWidget()
        self._below.setMaximumWidth(_WIDEST_COMPOSER)
        self._below.setLayout(below)
        below.setContentsMargins(0, 0, 0, 0)
        middle = QHBoxLayout()
        middle.setContentsMargins(2 * theme.SPACING, theme.SPACING, 2 * theme.SPACING, 2 * theme.SPACING)
        middle.addStretch(1)
        middle.addWidget(self._below, 1000)
        middle.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._header)
        layout.addWidget(line)
        layout.addWidget(self._middle, 1)
        layout.addLayout(middle)
        self.setBackgroundRole(QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self.setAcceptDrops(True)

        answers.waiting_changed.connect(self._waiting_changed)
        answers.server_allowed.connect(self._allow_server)
        core.settings.changed.connect(lambda _: self._show_model())
        self._show_model()
        self._show_conversation()
        if hasattr(core, "assistant"):
            self._core_started()
        else:
            core.started.connect(self._core_started)

    @property
    def conversation(self) -> Conversation:
        """The conversation that is shown; a new one is not in the history before something is sent."""
        return self._conversation

    @property
    def model_button(self) -> QWidget:
        """Where the menu of models belongs."""
        return self._header.model_button

    @property
    def busy(self) -> bool:
        """Whether a turn of the shown conversation runs."""
        return self._turns.of(self._conversation.id) is not None

    def open_conversation(self, conversation: Conversation) -> None:
        """Shows a conversation; one whose turn runs is shown as it is, whatever was loaded."""
        run = self._turns.of(conversation.id)
        self._switch(run.conversation if run is not None else conversation)

    def new_conversation(self) -> None:
        if self._conversation.messages or self.busy:
            self._switch(Conversation())
        self._composer.setFocus()

    def forget(self, conversation_id: str) -> None:
        """A conversation is deleted: its turn stops, and it is not shown any more."""
        self._turns.stop(conversation_id)
        self._drafts.pop(conversation_id, None)
        if self._conversation.id == conversation_id:
            self._switch(Conversation())

    def attach(self, content: Content) -> None:
        """Attaches something to the message that is being written."""
        self._composer.attach(content)
        self._composer.setFocus()

    def attach_entry(self, entry: ResourceEntry | TemplateEntry) -> None:
        """Attaches a resource of the catalog; a template is filled in first."""
        self._resources.take(entry)

    def use_prompt(self, prompt: Prompt) -> None:
        """Sends a server's prompt as it was shown; while an answer comes, it is attached to what is being written instead."""
        if self.busy:
            self.attach(prompt)
        else:
            self._send(Draft(attached=[Attached(prompt)]))
            self._composer.setFocus()

    def send(self, text: str) -> None:
        """Runs a turn of the shown conversation with what the person says; nothing while one runs, or for blank text."""
        self._send(Draft(text))

    def _send_draft(self) -> None:
        draft = self._composer.draft
        self._composer.clear()
        if draft.attached or not self._commands.take(draft.text):
            self._send(draft)

    def _send(self, draft: Draft) -> None:
        if self.busy or draft.is_empty:
            return
        self._faults.pop(self._conversation.id, None)
        self._commands.close_answer()
        self._turns.start(self._conversation, draft)
        self._messages.follow()
        self._runs_changed()
        self._show_state()

    def stop(self) -> None:
        """Stops the shown conversation's turn."""
        self._turns.stop(self._conversation.id)

    def _began(self, run: Run) -> None:
        if run.conversation is self._conversation:
            self._show_state()

    def _take(self, run: Run, event: TurnEvent) -> None:
        conversation = run.conversation
        if conversation is not self._conversation:
            return
        match event:
            case MessageStarted(message):
                self._messages.add(message)
                if len(conversation.messages) <= 2:
                    self._title_changed()
                return
            case ToolsActivated():
                self._show_tools()
            case TurnFinished():
                self._header.show_conversation(conversation)
            case PartAdded(part) if not isinstance(part, Notice):
                self._messages.touch(conversation.messages[-1])
                self._messages.draw_now()  # the card is there before its question is open
                return
            case _:
                pass
        self._messages.touch(conversation.messages[-1])

    def _ended(self, run: Run) -> None:
        self._runs_changed()
        if run.fault is not None:
            self._faults[run.conversation.id] = run.fault
        if not run.began:
            self._set_draft(run.conversation.id, run.draft.before(self._draft(run.conversation.id)))  # nothing is lost
        if run.conversation is self._conversation:
            for message in run.messages:
                self._messages.touch(message)
            self._messages.draw_now()
            self._header.show_conversation(run.conversation)
            self._show_state()

    def _draft(self, conversation_id: str) -> Draft:
        shown = conversation_id == self._conversation.id
        return self._composer.draft if shown else self._drafts.get(conversation_id, Draft())

    def _set_draft(self, conversation_id: str, draft: Draft) -> None:
        if conversation_id == self._conversation.id:
            self._composer.set_draft(draft)
        else:
            self._drafts[conversation_id] = draft

    def _switch(self, conversation: Conversation) -> None:
        if conversation is self._conversation:
            return
        self._drafts[self._conversation.id] = self._composer.draft
        if self._composer.draft.is_empty:
            del self._drafts[self._conversation.id]
        self._conversation = conversation
        self._composer.set_draft(self._drafts.pop(conversation.id, Draft()))
        self._show_conversation()
        self.conversation_changed.emit(conversation.id)

    def _show_conversation(self) -> None:
        self._messages.show_conversation(self._conversation, self._surroundings())
        self._header.show_conversation(self._conversation)
        self._show_tools()
        self._show_state()

    def _surroundings(self) -> Surroundings:
        conversation = self._conversation
        return Surroundings(
            conversation,
            self._answers,
            self._remedy,
            self._send_again,
            is_running=lambda: self._turns.of(conversation.id) is not None,
            width=self._messages.content_width,
            run_command=self._commands.take,
        )

    def _show_state(self) -> None:
        """Which of the parts are there: a greeting or messages, what keeps a message from being sent, Send or Stop."""
        run = self._turns.of(self._conversation.id)
        empty = not self._conversation.messages
        self._middle.setCurrentWidget(self._empty if empty else self._messages)
        if empty:
            self._empty.show_what_is_there(self._usable_servers(), guide=self._is_guide, starting=not self._is_ready)
        clear(self._strip)
        fault = self._faults.get(self._conversation.id)
        if run is not None and not run.began:
            self._strip.addWidget(Unsent(run.draft, ready=self._is_ready))
        elif fault is not None:
            self._strip.addWidget(NoticeView(Notice(fault), self._surroundings()))
        self._composer.set_busy(run is not None)
        self._show_placeholder()

    def _usable_servers(self) -> list[ServerEntry]:
        """Those of which something can be asked, as far as is known."""
        if not self._is_ready:
            return []
        states = {name: connection.state.status for name, connection in self._core.host.connections.items()}
        return [each for each in self._core.catalog.servers() if states.get(each.name) not in _NOT_USABLE]

    def _show_placeholder(self) -> None:
        if self.busy and self._waiting_calls():
            placeholder = self.tr("A call waits: Ctrl+J goes to it, Esc stops")
        elif self.busy and self._waits_for_person(self._conversation):
            placeholder = self.tr("A question waits for your answer above; Esc stops")
        elif self.busy:
            placeholder = self.tr("An answer is coming; Esc stops it")
        elif self._is_guide:
            placeholder = self.tr("Say what you need")
        else:
            placeholder = self.tr("Ask anything")
        self._composer.set_placeholder(placeholder)

    @property
    def _is_guide(self) -> bool:
        return not self._core.settings.values.model

    def _show_model(self) -> None:
        values = self._core.settings.values
        self._composer.set_reads_attached(not self._is_guide)
        if self._is_guide:
            self._header.show_model(model_label(GUIDE), self.tr("Guide · no language model"))
        else:
            self._header.show_model(model_menu.title(values.model, values.api_base))
        self._show_state()

    def _show_tools(self) -> None:
        self._header.show_tools(self._core.assistant.toolbox(self._conversation).tools if self._is_ready else ())

    def _core_started(self) -> None:
        self._is_ready = True
        self._core.host.servers_changed.connect(self._show_state)
        self._core.host.state_changed.connect(self._server_state_changed)
        self._show_tools()
        self._show_state()

    def _server_state_changed(self, _name: str) -> None:
        if not self._conversation.messages:
            self._show_state()

    def _allow_server(self, server: str) -> None:
        entries = self._core.catalog.entries()
        tools = [each for each in entries if isinstance(each, ToolDefinition) and each.server == server]
        self._core.approvals.allow_server(server, tools)

    def _waiting_changed(self) -> None:
        self._keep_focus()
        self._runs_changed()
        QTimer.singleShot(0, self, self._offer_question)  # when the cards have heard of it as well

    def _keep_focus(self) -> None:
        """What was answered goes away: the focus that is in it goes to the composer, not to whatever Qt finds."""
        focused, last = QApplication.focusWidget(), self._messages.last
        if focused is None or last is None:
            return
        answered = [card for card in last.questions if not self._answers.waits_for(card.part_id)]
        decided = [card for card in last.waiting_calls if not card.pending_request()]
        if any(card.isAncestorOf(focused) for card in (*answered, *decided)):
            self._composer.setFocus()

    def _offer_question(self) -> None:
        """Gives a new question of Guide's the focus where the person is waiting for it, not writing."""
        self._show_attention()
        last = self._messages.last
        for card in last.questions if last is not None else ():
            if card.is_open and card.part_id not in self._offered:
                self._offered.add(card.part_id)
                focused = QApplication.focusWidget()
                if focused is None or (self._composer.has_focus() and not self._composer.text):
                    card.focus_question()

    def _runs_changed(self) -> None:
        running = [run.conversation for run in self._turns.running]
        waiting = {each.id for each in running if self._waits_for_person(each)}
        self.running_changed.emit({each.id for each in running}, waiting)

    def _waits_for_person(self, conversation: Conversation) -> bool:
        answers = self._answers
        return any(
            (isinstance(part, Choice | Form) and answers.waits_for(part.id))
            or (isinstance(part, ToolCall) and answers.approval(conversation.id, part.id) is not None)
            for message in conversation.messages[-1:]
            for part in message.parts
        )

    def _waiting_calls(self) -> list[ToolCallCard]:
        return self._messages.last.waiting_calls if self._messages.last is not None else []

    def _show_attention(self) -> None:
        self._show_placeholder()
        calls = self._waiting_calls() if self.busy else []
        self._attention.show_count(len(calls) if not any(map(self._messages.in_view, calls)) else 0)

    def show_waiting_call(self) -> None:
        """Gives the keyboard to the first call that waits for a decision. Never by itself: a letter that is being typed
        would decide."""
        for card in self._waiting_calls()[:1]:
            self._messages.show_widget(card)
            card.setFocus()

    def _title_changed(self) -> None:
        self._header.show_conversation(self._conversation)
        self.conversation_changed.emit(self._conversation.id)

    def _rename(self, title: str) -> None:
        self._conversation.title = title
        if self._conversation.messages:
            tasks.start(self._core.history.rename(self._conversation.id, title), on_error=self)
        self._title_changed()

    def _unload(self, native_name: str) -> None:
        self._core.assistant.unload(self._conversation, native_name)
        self._show_tools()

    def _suggest(self, text: str) -> None:
        self._composer.set_text(text)
        self._composer.setFocus()

    def _send_again(self) -> None:
        said = next((message for message in reversed(self._conversation.messages) if message.role == "user"), None)
        if said is not None:
            self._send(Draft.of(said))

    def _remedy(self, diagnostic: Diagnostic) -> None:
        if diagnostic.server:
            self.server_requested.emit(diagnostic.server)
        else:
            self.settings_requested.emit()

    def focusNextPrevChild(self, next: bool) -> bool:
        order_tab_stops((self._header, self._messages, *self._messages.places(), self._empty, self._below))
        moved = super().focusNextPrevChild(next)
        focused = QApplication.focusWidget()
        if focused is not None:
            self._messages.keep_in_view(focused)
        return moved

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        self._composer.dragEnterEvent(event)  # what is dropped on the messages is meant for the next one

    def dropEvent(self, event: QDropEvent) -> None:
        self._composer.dropEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._composer.setFocus(event.reason())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.busy:
            self.stop()
        elif event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self._messages.page(1 if event.key() == Qt.Key.Key_PageDown else -1)
        else:
            super().keyPressEvent(event)
