"""The log tells what happened and never a secret."""

from __future__ import annotations

import logging
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop import log


@pytest.fixture
def logger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[logging.Logger]:
    """The root logger with Deskhand's handlers, put back as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    monkeypatch.setattr(log, "_secrets", {})
    log.start(tmp_path / "logs")
    yield root
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)
            handler.close()
    root.setLevel(level)


def written(tmp_path: Path) -> str:
    return "".join(file.read_text() for file in sorted((tmp_path / "logs").iterdir()))


def test_a_registered_secret_is_in_no_line_argument_or_traceback(
    logger: logging.Logger, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    secret = "sk-canary-'0123'\n9"
    log.redact(secret)
    logger.info("the key is %s", secret)
    logger.info("in a list: %r", [secret])
    try:
        raise ValueError(f"refused {secret}")
    except ValueError:
        logger.exception("it failed")
    caplog.clear()
    text = written(tmp_path) + capsys.readouterr().err
    assert "canary" not in text
    assert text.count("[redacted]") >= 3
    assert "Traceback" in text


@pytest.mark.parametrize(
    "line",
    [
        "Authorization: Bearer canary-token-123",
        "GET /callback?code=canary123&state=7",
        '{"access_token": "canary-1234", "n": 1}',
        "client_secret=canary-xyz",
        "API_KEY='canary-key'",
    ],
)
def test_what_looks_like_a_secret_is_not_written(logger: logging.Logger, tmp_path: Path, line: str) -> None:
    logger.info("%s", line)
    assert "canary" not in written(tmp_path)


def test_ordinary_text_stays_as_it_is() -> None:
    log.redact("abc")  # too short to be a secret: it would blank out ordinary words
    text = "exit status 1: the basics of the code of conduct, abc"
    assert log.redacted(text) == text


def test_files_are_private_rotated_and_bounded(logger: logging.Logger, tmp_path: Path) -> None:
    for _ in range(60):
        logger.info("x" * 100_000)
    files = list((tmp_path / "logs").iterdir())
    assert len(files) == 4
    assert all(file.stat().st_size <= 1024 * 1024 for file in files)
    if sys.platform != "win32":
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_libraries_that_log_addresses_and_arguments_are_quiet(logger: logging.Logger, tmp_path: Path) -> None:
    logging.getLogger("httpx2").info("GET https://example.org/?token=x")
    logging.getLogger("mcp.client.streamable_http").debug("arguments")
    assert written(tmp_path) == ""


def test_the_command_line_shows_no_secret_either(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    root = logging.getLogger()
    before = list(root.handlers)
    log.redact("sk-canary-7777")
    log.start_console()
    try:
        logging.getLogger("desktop.test").warning("refused: %s", "sk-canary-7777")
    finally:
        for handler in root.handlers[:]:
            if handler not in before:
                root.removeHandler(handler)
    caplog.clear()
    assert "deskhand: refused: [redacted]" in capsys.readouterr().err


def test_a_model_is_sent_no_certain_secret_and_everything_else_as_it_is(logger: logging.Logger) -> None:
    log.redact('sk-canary-"0123"')
    log.redact("sk-canary", certain=True)
    log.redact("perhaps-canary", certain=False)
    text = 'It said sk-canary-"0123", "sk-canary-\\"0123\\"" and perhaps-canary; password=abcdefgh.'
    assert log.without_secrets(text) == 'It said [redacted], "[redacted]" and perhaps-canary; password=abcdefgh.'
    assert "canary" not in log.redacted(text)
    log.redact("sk-canary", certain=False)  # certain it stays
    assert log.without_secrets("sk-canary") == "[redacted]"
