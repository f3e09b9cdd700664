"""The command ``deskhand``: opens the window, or does one thing on the terminal.

Exit status: 0 done, 1 a turn or a result failed, 2 usage. Standard output holds the answer, standard error the rest.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from desktop import __version__, exit_codes, log

if TYPE_CHECKING:
    from desktop.assistant.conversation import ToolCall
    from desktop.assistant.events import TurnEvent
    from desktop.core import Core

Approve = Literal["ask", "rules", "all"]


def main(arguments: Sequence[str] | None = None) -> int:
    if arguments is None and sys.argv[1:2] == ["--large-message"]:
        # An installed program starts itself as the reader of large messages: there is no Python beside it.
        from desktop.assistant import large_message

        large_message.main(sys.argv[2:])
    if arguments is None and sys.argv[1:] == ["--check-window"]:  # for `doctor`
        from desktop.ui import window_check

        window_check.main()
        return exit_codes.DONE
    options = _parser().parse_args(arguments)
    if getattr(options, "config", None) is not None and not options.config.is_file():
        print(f"deskhand: {options.config}: no such file", file=sys.stderr)
        return exit_codes.USAGE
    if getattr(options, "workspace", None) is not None and not options.workspace.is_dir():
        print(f"deskhand: {options.workspace}: no such folder", file=sys.stderr)
        return exit_codes.USAGE
    # Before litellm is imported anywhere: it would ask the network for a table of prices.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    if options.command is None:
        from desktop import app
        from desktop.paths import Paths

        return app.run(Paths.for_user(), options.config, options.workspace)
    log.start_console()
    try:
        match options.command:
            case "doctor":
                from desktop.doctor import doctor

                return asyncio.run(doctor(as_json=options.json))
            case "mcp-tools":
                return asyncio.run(mcp_tools(options.arguments, options.config, options.workspace))
            case _:
                return asyncio.run(ask(options))
    except KeyboardInterrupt:
        print("deskhand: stopped", file=sys.stderr)
        return exit_codes.FAILED
    except BrokenPipeError:  # the reader of our output has had enough
        sys.stdout = None
        return exit_codes.FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="deskhand", description="A desktop assistant for the Model Context Protocol.")
    parser.add_argument("--version", action="version", version=f"Deskhand {__version__}")
    servers = argparse.ArgumentParser(add_help=False)
    for each in (parser, servers):
        each.add_argument(
            "--config", type=Path, metavar="FILE", help="servers of this file instead of your own; they may be started"
        )
        each.add_argument(
            "--workspace",
            type=Path,
            metavar="FOLDER",
            help="open this folder: servers run there, and its own count if you have trusted it in the window",
        )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    doctor_parser = commands.add_parser("doctor", help="say what works here and what to do about the rest")
    doctor_parser.add_argument("--json", action="store_true", help="one JSON object")
    tools = commands.add_parser("mcp-tools", parents=[servers], help="print exactly what a model would get")
    tools.add_argument("arguments", metavar="JSON", help="""such as '{"query": "open invoices"}'""")
    ask_parser = commands.add_parser("ask", parents=[servers], help="run one turn here")
    ask_parser.add_argument("prompt", help="what you want; - reads it from standard input")
    ask_parser.add_argument("--model", help="as litellm names it; guide: no language model; default: your choice")
    ask_parser.add_argument("--api-base", default="", metavar="URL", help="address of an OpenAI-compatible server")
    ask_parser.add_argument(
        "--approve",
        choices=("ask", "rules", "all"),
        default="ask",
        help="who allows calls: you (without a terminal: nobody), your standing rules alone, or no one needs to",
    )
    ask_parser.add_argument("--json", action="store_true", help="one JSON object a line for each event")
    return parser


async def ask(options: argparse.Namespace) -> int:
    """One turn in the terminal; the conversation is kept like any other."""
    from desktop.assistant.conversation import Conversation, Text
    from desktop.assistant.guide import Guide
    from desktop.errors import AssistantError

    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    if not prompt.strip():
        print("deskhand: say what you want", file=sys.stderr)
        return exit_codes.USAGE
    approver, asker = _person(options.approve, reads_prompt=options.prompt == "-")
    core = _core(options.config, options.workspace, approver, asker)
    printer = _print_json if options.json else _Printer().print
    failed = True
    try:
        await core.start()
        _tell_faults(core)
        if options.model == "guide":
            model = Guide(asker)
        elif options.model or options.api_base:
            model = await core.model_named(options.model or core.settings.values.model, options.api_base)
        else:
            model = await core.language_model()
        conversation = Conversation()
        async with aclosing(core.assistant.turn(conversation, model, [Text(prompt)])) as events:
            async for event in events:
                printer(event)
                if type(event).__name__ == "TurnFinished":
                    failed = event.reason != "done"  # type: ignore[union-attr]
    except AssistantError as error:
        print(f"deskhand: {error.diagnostic}", file=sys.stderr)
    finally:
        await core.close()
    return exit_codes.FAILED if failed else exit_codes.DONE


async def mcp_tools(text: str, config: Path | None, workspace: Path | None) -> int:
    """What the model would get from ``mcp_tools`` for these arguments."""
    from desktop.assistant.approval import DenyAll
    from desktop.assistant.asking import NobodyToAsk
    from desktop.assistant.conversation import Conversation, ToolCall

    core = _core(config, workspace, DenyAll(), NobodyToAsk())
    try:
        await core.start()
        _tell_faults(core)
        conversation = Conversation()
        call = ToolCall("1", "mcp_tools", text)
        output = await core.assistant.mcp_tools.execute(call, conversation.id, core.assistant.toolbox(conversation))
        print(log.without_secrets(output.text))
        for image in output.images:
            print(f"[image {image.mime_type}, {len(image.data)} characters of base64]")
        return exit_codes.FAILED if output.diagnostic else exit_codes.DONE
    finally:
        await core.close()


def _core(config: Path | None, workspace: Path | None, approver: Any, asker: Any) -> Core:
    from desktop.core import Core
    from desktop.paths import Paths

    core = Core(Paths.for_user(), approver=approver, asker=asker, config=config)
    core.first_folder = workspace
    return core


def _tell_faults(core: Core) -> None:
    """What of the configuration is not used, a line each."""
    faults = (*core.host.faults, core.folder_fault, core.workspace.ignored)
    for fault in filter(None, faults):
        print(f"deskhand: {fault}", file=sys.stderr)


def _person(approve: Approve, *, reads_prompt: bool) -> tuple[Any, Any]:
    """Who approves calls and who is asked: the terminal where there is one that standard input is free for."""
    from desktop.assistant.approval import AllowAll, DenyAll
    from desktop.assistant.asking import NobodyToAsk
    from desktop.terminal import Terminal

    terminal = Terminal() if sys.stdin.isatty() and not reads_prompt else None
    asker = terminal or NobodyToAsk()
    match approve:
        case "all":
            return AllowAll(), asker
        case "rules":
            return DenyAll(), asker
        case _:
            return terminal or DenyAll(), asker


def _print_json(event: TurnEvent) -> None:
    from desktop.assistant.events import event_to_json

    print(json.dumps(event_to_json(event), ensure_ascii=False), flush=True)


class _Printer:
    """Events as a person reads them: the answer on standard output, what happens meanwhile on standard error."""

    def __init__(self) -> None:
        self._at_line_start = True

    def print(self, event: TurnEvent) -> None:
        from desktop.assistant import events
        from desktop.assistant.conversation import Notice
        from desktop.terminal import say, say_row
        from desktop.visible_text import visible, visible_line

        match event:
            case events.TextDelta(text):
                print(visible(text), end="", flush=True)
                self._at_line_start = text.endswith("\n")
            case events.ToolCallStarted(call):
                self._end_line()
                say_row(f"▶ {_title(call)} {visible_line(call.arguments, 200)}")
            case events.ToolCallFinished(call):
                glyph = {"done": "✔", "stopped": "■"}.get(call.state, "✘")
                self._end_line()
                say_row(f"{glyph} {_title(call)}")
                if call.output and call.output.diagnostic:
                    say(f"  {call.output.diagnostic}")
            case events.PartAdded(Notice() as notice):
                self._end_line()
                say(str(notice.diagnostic))
            case events.TurnFinished():
                self._end_line()
            case _:
                pass

    def _end_line(self) -> None:
        if not self._at_line_start:
            print(flush=True)
            self._at_line_start = True


def _title(call: ToolCall) -> str:
    from desktop.visible_text import visible_line

    return visible_line(f"{call.server}.{call.tool}" if call.server else call.name)
