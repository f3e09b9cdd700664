"""What a server's process inherits, and which program a command names."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from desktop import processes
from desktop.errors import AssistantError
from desktop.host import environment
from desktop.host.environment import LoginShell, check_batch_arguments, child_environment, resolve_command

ROOT = Path(__file__).parents[2]
posix = pytest.mark.skipif(sys.platform == "win32", reason="login shells")


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The login shell is asked once in a run; each test is a run of its own."""
    monkeypatch.setattr(environment, "_login_shell", LoginShell())


def program(file: Path, content: str = "#!/bin/sh\n") -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    file.chmod(0o755)
    return str(file)


def folders(variables: dict[str, str]) -> list[str]:
    return variables["PATH"].split(os.pathsep)


@pytest.mark.anyio
async def test_a_server_gets_what_programs_need_and_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = {
        "LANG": "de_DE.UTF-8",
        "LC_ALL": "C.UTF-8",
        "XDG_RUNTIME_DIR": "/run/user/7",
        "HTTPS_PROXY": "http://proxy.example:3128",
        "no_proxy": "localhost",
        "SSL_CERT_FILE": "/etc/ca.pem",
        "NODE_EXTRA_CA_CERTS": "/etc/ca.pem",
        "REQUESTS_CA_BUNDLE": "/etc/ca.pem",
        "TZ": "Europe/Berlin",
        "DISPLAY": ":7",
    }
    canaries = {
        *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AZURE_API_KEY", "HF_TOKEN", "GITHUB_TOKEN"),
        *("AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS"),
        *("DESKHAND_HOME", "VIRTUAL_ENV"),
    }
    for name, value in passed.items():
        monkeypatch.setenv(name, value)
    for name in canaries:
        monkeypatch.setenv(name, "canary")
    found = await child_environment({})
    if sys.platform != "win32":
        assert {name: found.get(name) for name in passed} == passed
        assert found["HOME"] == os.environ["HOME"]
    assert "canary" not in found.values()


@pytest.mark.anyio
async def test_what_is_configured_comes_over_the_rest_and_removes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "C")
    plain = await child_environment({})
    found = await child_environment({"LANG": "fr_FR.UTF-8", "TOKEN": "x"})
    assert found == {**plain, "LANG": "fr_FR.UTF-8", "TOKEN": "x"}
    assert (await child_environment({"PATH": "/only/this"}))["PATH"] == "/only/this"


@posix
@pytest.mark.anyio
async def test_a_shell_function_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "() { :; }; echo vulnerable")
    assert "LANG" not in await child_environment({})


@posix
@pytest.mark.anyio
async def test_the_path_of_the_login_shell_comes_first_then_ours_then_folders_of_tools(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".profile").write_text('echo "a profile that talks"\nexport PATH="/from/profile:/usr/bin:$PATH"\n')
    for folder in (".local/bin", ".nvm/versions/node/v9.9.0/bin", ".nvm/versions/node/v22.1.0/bin"):
        (home / folder).mkdir(parents=True)
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setenv("PATH", f"/of/ours{os.pathsep}/usr/bin{os.pathsep}relative{os.pathsep}{os.pathsep}.")
    found = folders(await child_environment({}))
    assert found[0] == "/from/profile"
    assert found.index("/from/profile") < found.index("/of/ours") < found.index(str(home / ".local/bin"))
    assert str(home / ".nvm/versions/node/v22.1.0/bin") in found
    assert str(home / ".nvm/versions/node/v9.9.0/bin") not in found
    assert len(found) == len(set(found))
    assert all(os.path.isabs(folder) for folder in found)


@posix
@pytest.mark.anyio
async def test_the_login_shell_is_asked_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "SHELL", program(home / "shell", f'#!/bin/sh\necho asked >> {home}/count\nexec /bin/sh -c "$2"\n')
    )
    await asyncio.gather(*(child_environment({}) for _ in range(5)))
    await child_environment({})
    assert (home / "count").read_text() == "asked\n"


@posix
@pytest.mark.anyio
async def test_a_shell_that_hangs_when_it_is_interactive_is_asked_in_the_other_way(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_INTERACTIVE_LIMIT", 0.3)
    shell = '#!/bin/sh\n[ "$1" = -ilc ] && exec sleep 600\nexport PATH="/from/login:$PATH"\nexec /bin/sh -c "$2"\n'
    monkeypatch.setenv("SHELL", program(home / "shell", shell))
    assert folders(await child_environment({}))[0] == "/from/login"


@posix
@pytest.mark.anyio
@pytest.mark.parametrize("content", ["#!/bin/sh\nexec sleep 600\n", "#!/bin/sh\nexit 1\n", "no program", None])
async def test_without_an_answer_of_the_shell_there_is_still_a_path(
    home: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    monkeypatch.setattr(environment, "_INTERACTIVE_LIMIT", 0.2)
    monkeypatch.setattr(environment, "_SHELL_LIMIT", 0.4)
    monkeypatch.setenv("SHELL", "/nowhere" if content is None else program(home / "shell", content))
    monkeypatch.setenv("PATH", "/of/ours:/usr/bin")
    started = time.monotonic()
    assert folders(await child_environment({}))[:2] == ["/of/ours", "/usr/bin"]
    await child_environment({})  # and the shell is not asked again
    assert time.monotonic() - started < 3


@posix
@pytest.mark.anyio
@pytest.mark.parametrize("session", ["setsid ", ""], ids=["in a session of its own", "in the shell's"])
async def test_what_a_profile_leaves_running_is_not_ended(
    home: Path, monkeypatch: pytest.MonkeyPatch, session: str
) -> None:
    agent = home / "agent"
    program(agent, f"#!/bin/sh\necho $$ > {home}/starting\nmv {home}/starting {home}/started\nexec sleep 600\n")
    (home / ".profile").write_text(f"{session}{agent} > /dev/null &\nexport PATH=/from/profile:$PATH\n")
    monkeypatch.setenv("SHELL", "/bin/sh")
    assert folders(await child_environment({}))[0] == "/from/profile"
    async with asyncio.timeout(10):
        while not (home / "started").exists():  # noqa: ASYNC110 - no event tells of a stranger's file
            await asyncio.sleep(0.01)
    pid = int((home / "started").read_text())
    assert processes.start_time(pid) is not None
    if sys.platform.startswith("linux"):
        assert b"DESKHAND_OWNER" not in Path(f"/proc/{pid}/environ").read_bytes()
    os.kill(pid, 9)


@posix
def test_a_tool_that_only_the_profile_names_is_found_from_a_bare_start(home: Path) -> None:
    """As from a desktop's launcher: no SHELL, no USER, a short PATH."""
    tool = program(home / "tools of mine" / "mytool")
    for profile in (".profile", ".bash_profile", ".zprofile"):
        (home / profile).write_text(f'export PATH="$PATH:{home}/tools of mine"\n')
    code = (
        "import asyncio\n"
        "from desktop.host.environment import *\n"
        "from desktop.host.environment import child_environment, resolve_command\n"
        "variables = asyncio.run(child_environment({}))\n"
        "print(resolve_command('mytool', variables, None))\n"
        "print(sorted({'HOME', 'USER', 'LOGNAME', 'SHELL'} - set(variables)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == f"{tool}\n[]\n"


@posix
def test_a_name_is_looked_for_in_the_given_path_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = program(tmp_path / "a" / "tool"), program(tmp_path / "b" / "tool")
    program(tmp_path / "here" / "tool")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", str(tmp_path / "here"))
    assert resolve_command("tool", {"PATH": f"{tmp_path}/a:{tmp_path}/b"}, tmp_path / "here") == first
    assert resolve_command("tool", {"PATH": f"{tmp_path}/b:{tmp_path}/a"}, None) == second
    for path in ("", ".", ":", "here", str(tmp_path / "nowhere")):
        with pytest.raises(AssistantError):
            resolve_command("tool", {"PATH": path}, tmp_path / "here")


@posix
def test_a_path_is_relative_to_the_server_s_folder_or_to_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = program(tmp_path / "project" / "bin" / "tool")
    assert resolve_command("bin/tool", {}, tmp_path / "project") == tool
    assert os.path.samefile(resolve_command("./bin/../bin/tool", {}, tmp_path / "project"), tool)
    assert resolve_command("~/bin/tool", {"HOME": str(tmp_path / "project")}, None) == tool
    assert resolve_command(tool, {}, None) == tool
    monkeypatch.chdir(tmp_path / "project")
    assert resolve_command("bin/tool", {}, None) == tool


@posix
@pytest.mark.parametrize(
    "command", ["", "nowhere", "./nowhere", "/nowhere/at/all", "folder", "./folder", "text", "./text"]
)
def test_what_is_no_program_is_not_found(tmp_path: Path, command: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("not executable")
    with pytest.raises(AssistantError) as raised:
        resolve_command(command, {"PATH": str(tmp_path)}, tmp_path)
    assert raised.value.diagnostic.code == "command_not_found"


def test_windows_finds_programs_by_their_endings(tmp_path: Path) -> None:
    launcher = program(tmp_path / "npx.cmd")
    script = program(tmp_path / "npx")
    variables = {"Path": str(tmp_path), "PATHEXT": ".com;.exe;.cmd"}
    assert resolve_command("npx", variables, None, windows=True) == launcher
    assert resolve_command("npx.cmd", variables, None, windows=True) == launcher
    assert resolve_command("NPX.CMD".lower(), variables, None, windows=True) == launcher
    assert script != launcher
    with pytest.raises(AssistantError):
        resolve_command("npx", {**variables, "PATHEXT": ".EXE"}, None, windows=True)


@pytest.mark.parametrize("argument", ["&calc", "a|b", "%PATH%", 'a"b', "x^y", "a>b", "!var!", "a\nb"])
@pytest.mark.parametrize("program", ["C:\\tools\\npx.cmd", "setup.BAT"])
def test_a_batch_file_takes_no_argument_that_the_interpreter_would_act_on(program: str, argument: str) -> None:
    with pytest.raises(AssistantError) as raised:
        check_batch_arguments([program, "-y", argument])
    assert raised.value.diagnostic.code == "configuration_invalid"
    check_batch_arguments([program, "-y", "@scope/package", "--root", "C:\\my folder (new)"])
    check_batch_arguments(["C:\\tools\\node.exe", argument])
