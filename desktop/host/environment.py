"""What a server's process gets of the person's environment, and which program its command names.

Used by the connection. A program that was started from a desktop has not the PATH that the person's terminal has, so the login
shell is asked for it once. Beyond what every program needs a server gets locale, proxies and certificates; never the keys that
are in Deskhand's own environment.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from desktop import processes
from desktop.errors import AssistantError
from desktop.host.runtimes import runtime_of

WINDOWS = sys.platform == "win32"
#: The SDK's list, and what command interpreters, windows, browsers and keyrings need; then what networks need.
_INHERITED = re.compile(
    (
        r"APPDATA|COMSPEC|HOMEDRIVE|HOMEPATH|LOCALAPPDATA|PATH|PATHEXT|PROCESSOR_ARCHITECTURE|PROGRAMDATA|PROGRAMFILES"
        r"|PROGRAMFILES\(X86\)|SYSTEMDRIVE|SYSTEMROOT|TEMP|TMP|USERNAME|USERPROFILE|WINDIR"
        if WINDOWS
        else r"HOME|LOGNAME|PATH|SHELL|TERM|TMPDIR|TZ|USER|LANG|LANGUAGE|LC_[A-Z]+|XDG_[A-Z_]+"
        r"|DBUS_SESSION_BUS_ADDRESS|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY"
    )
    + r"|(?:HTTP|HTTPS|ALL|NO)_PROXY|(?:http|https|all|no)_proxy|SSL_CERT_(?:FILE|DIR)|(?:REQUESTS|CURL)_CA_BUNDLE"
    r"|NODE_EXTRA_CA_CERTS|NODE_USE_SYSTEM_CA|PIP_CERT|GIT_SSL_CAINFO"
)
#: Where installers of tools put them; a leading ~ is the home folder, a * the newest of several versions.
_TOOL_FOLDERS_OF_WINDOWS = ("~/AppData/Roaming/npm", "~/.local/bin", "~/scoop/shims")
_TOOL_FOLDERS = (
    "~/.local/bin",
    "~/bin",
    "~/.volta/bin",
    "~/.local/share/mise/shims",
    "~/.asdf/shims",
    "~/.nvm/versions/node/*/bin",
    "~/.local/share/fnm/aliases/default/bin",
    "~/.bun/bin",
    "~/.deno/bin",
    "~/.cargo/bin",
    "~/.pyenv/shims",
    "~/.nix-profile/bin",
    "/opt/homebrew/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/usr/local/bin",
    "/snap/bin",
    "/usr/bin",
    "/bin",
)
#: Seconds for the login shell, with what the person's profile starts; of them for the interactive one, which reads more files.
_SHELL_LIMIT = 5.0
_INTERACTIVE_LIMIT = 3.5
_LONGEST_ANSWER = 1024 * 1024
#: What the command interpreter of Windows gives a meaning to, also within quotation marks.
_BATCH_CHARACTERS = re.compile(r'[&|<>^%!"\r\n]')


class LoginShell:
    """The PATH of the person's login shell, asked for once in a run."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._question: asyncio.Task[str] | None = None

    async def path(self) -> str:
        """Empty where there is no such shell or it doesn't answer within 5 seconds; that is not asked again either."""
        if self._path is not None:
            return self._path
        if self._question is None or self._question.get_loop() is not asyncio.get_running_loop():
            self._question = asyncio.create_task(_ask_login_shell())
        answer = await asyncio.shield(self._question)
        self._path = answer
        return answer


_login_shell = LoginShell()


async def child_environment(configured: Mapping[str, str]) -> dict[str, str]:
    """The whole environment for a server: what it inherits, the PATH of a terminal, and the `configured` variables over both."""
    environment = _inherited()
    folders = [await _login_shell.path(), environment.get("PATH", ""), os.pathsep.join(_tool_folders(environment))]
    path = os.pathsep.join(folders).split(os.pathsep)
    environment["PATH"] = os.pathsep.join(dict.fromkeys(folder for folder in path if os.path.isabs(folder)))
    if WINDOWS:  # names there don't depend on case
        given = {name.upper() for name in configured}
        environment = {name: value for name, value in environment.items() if name.upper() not in given}
    return {**environment, **configured}


def resolve_command(
    command: str, environment: Mapping[str, str], folder: str | Path | None, *, windows: bool = WINDOWS
) -> str:
    """The full path of the program that a command names: a path (relative to `folder`, or with a leading ~), or a name that is
    looked for in the environment's PATH alone, never in the current folder.

    Raises AssistantError ``command_not_found``, or ``runtime_missing`` where it is known what would bring the program.
    """
    variables = {name.upper(): value for name, value in environment.items()} if windows else environment
    endings = [""]
    if windows:
        known = [ending for ending in variables.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";") if ending]
        endings = ["", *known] if command.upper().endswith(tuple(each.upper() for each in known)) else known
    if command.startswith(("~/", "~\\")):
        home = variables.get("USERPROFILE" if windows else "HOME") or os.path.expanduser("~")
        command = os.path.join(home, command[2:])
    if "/" in command or (windows and "\\" in command):
        folders = [os.path.abspath(folder or ".")]
    else:
        path = variables.get("PATH", "").split(";" if windows else os.pathsep)
        folders = [each for each in path if os.path.isabs(each)]
    for each in folders if command else ():
        for ending in endings:
            program = os.path.join(each, f"{command}{ending}")
            if os.path.isfile(program) and os.access(program, os.X_OK):
                return os.path.normpath(program) if windows else program
    runtime = runtime_of(command)
    if runtime is None:
        raise AssistantError("command_not_found", operation="connect")
    raise AssistantError(
        "runtime_missing", operation="connect", program=command, runtime=runtime.title, site=runtime.site
    )


def check_batch_arguments(command: Sequence[str]) -> None:
    """Refuses arguments of a batch file that Windows' command interpreter would take for commands or variables.

    Raises AssistantError ``configuration_invalid``. Windows hands such a file to the interpreter, and no quoting is safe there.
    """
    program, *arguments = command
    if program.lower().endswith((".cmd", ".bat")) and any(map(_BATCH_CHARACTERS.search, arguments)):
        raise AssistantError(
            "configuration_invalid",
            operation="connect",
            where=" at args",
            reason='a batch file (.cmd, .bat) takes no arguments with & | < > ^ % ! " or line ends',
        )


def _inherited() -> dict[str, str]:
    found = {
        name: value
        for name, value in os.environ.items()
        # A value that begins so is a shell function, which old shells run.
        if _INHERITED.fullmatch(name) and not value.startswith("()")
    }
    if not WINDOWS:
        import pwd

        try:
            person = pwd.getpwuid(os.getuid())
        except KeyError:  # a user without an entry, as in some containers
            return found
        defaults = {"HOME": person.pw_dir, "LOGNAME": person.pw_name, "USER": person.pw_name, "SHELL": person.pw_shell}
        found = {**defaults, **found}
    return found


def _tool_folders(environment: Mapping[str, str]) -> Iterator[str]:
    home = environment.get("USERPROFILE" if WINDOWS else "HOME", "")
    for folder in _TOOL_FOLDERS_OF_WINDOWS if WINDOWS else _TOOL_FOLDERS:
        path = f"{home}{folder[1:]}" if folder.startswith("~") else folder
        parent, star, rest = path.partition("*")
        if star:
            with suppress(OSError, ValueError):
                newest = max(os.listdir(parent), key=lambda name: [int(number) for number in re.findall(r"\d+", name)])
                path = f"{parent}{newest}{rest}"
        if os.path.isdir(path):
            yield path


async def _ask_login_shell() -> str:
    environment = _inherited()
    shell = environment.get("SHELL", "")
    if WINDOWS or not os.path.isabs(shell):
        return ""
    # A mark around the answer: a profile may print what it likes. A program prints it: shells differ in how they would.
    mark = secrets.token_hex(8)
    question = f"echo {mark}; printenv PATH; echo {mark}"
    loop = asyncio.get_running_loop()
    end = loop.time() + _SHELL_LIMIT
    for options, limit in (("-ilc", _INTERACTIVE_LIMIT), ("-lc", _SHELL_LIMIT)):
        try:
            finished = await processes.run(
                [shell, options, question],
                environment={**environment, "TERM": "dumb"},
                folder=environment.get("HOME"),
                time_limit=min(limit, end - loop.time()),
                output_limit=_LONGEST_ANSWER,
                owned=False,  # an agent that a profile starts is the person's, not ours
            )
        except (OSError, ValueError):
            continue
        answer = finished.output.decode(errors="replace").split(f"{mark}\n")
        if len(answer) == 3 and answer[1].strip():
            return answer[1].strip()
    return ""
