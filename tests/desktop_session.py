"""Parts of a real desktop for tests: a screen (Xvfb), a session bus, a keyring (GNOME's Secret Service)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def display(size: str = "1280x800") -> Iterator[str]:
    """A screen of its own; the value for ``DISPLAY``."""
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{size}x24", "-nolisten", "tcp"]
    process = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    try:
        with os.fdopen(read) as numbers:
            number = numbers.readline().strip()  # written when the screen is ready; empty when Xvfb ended instead
        assert number, "Xvfb did not start"
        yield f":{number}"
    finally:
        end(process)


@contextmanager
def session_bus() -> Iterator[str]:
    """A session bus of its own; the value for ``DBUS_SESSION_BUS_ADDRESS``."""
    command = ["dbus-daemon", "--session", "--nofork", "--print-address=1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "dbus-daemon did not start"
        yield address
    finally:
        end(process)


@contextmanager
def keyring(home: Path, *, unlocked: bool = True) -> Iterator[Mapping[str, str]]:
    """A bus with GNOME's keyring on it, its default collection made; the environment to reach it.

    Locked: the collection exists, and nobody is there to type its password.
    """
    home.mkdir(parents=True, exist_ok=True)
    runtime = home / "runtime"
    for folder in (home / ".cache", home / ".local/share/keyrings", runtime):
        folder.mkdir(parents=True, exist_ok=True)
    runtime.chmod(0o700)
    with session_bus() as address:
        variables = {"DBUS_SESSION_BUS_ADDRESS": address, "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime)}
        environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"} | variables
        command = ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"]
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            assert process.stdin is not None
            process.stdin.write(b"test")
            process.stdin.close()
            _wait_for_secrets(environment)
            if not unlocked:
                lock = "org.freedesktop.Secret.Service.Lock"
                collection = "array:objpath:/org/freedesktop/secrets/collection/login"
                _send(environment, lock, collection)
            yield variables
        finally:
            end(process)


def _wait_for_secrets(environment: Mapping[str, str]) -> None:
    subprocess.run(
        ["gdbus", "wait", "--session", "--timeout", "10", "org.freedesktop.secrets"], env=environment, check=True
    )


def _send(environment: Mapping[str, str], method: str, *arguments: str) -> None:
    command = ["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets", "/org/freedesktop/secrets"]
    subprocess.run([*command, method, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)


def end(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None and not stream.closed:
            stream.close()
