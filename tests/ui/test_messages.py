"""Every code that the assistant and the host can give is said in words, with its values, and nothing hidden in them."""

from __future__ import annotations

import re
import shutil
import string
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QTranslator
from PySide6.QtWidgets import QApplication

from desktop import processes
from desktop.errors import CATALOGUE, Diagnostic
from desktop.ui import messages


def test_every_code_has_its_sentences_and_no_sentence_is_without_a_code() -> None:
    assert set(messages._sentences()) == set(CATALOGUE)


@pytest.mark.parametrize("code", CATALOGUE)
def test_sentences_use_the_values_that_the_code_has(code: str) -> None:
    def fields(texts: tuple[str, ...]) -> set[str]:
        return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}

    assert fields(messages._sentences()[code]) <= fields(CATALOGUE[code])
    assert fields(messages._sentences()[code]) >= fields(CATALOGUE[code][:1])


@pytest.mark.parametrize("code", CATALOGUE)
def test_a_title_is_short_and_the_rest_are_sentences(code: str) -> None:
    title, detail, remedy = messages._sentences()[code]
    assert 0 < len(title) <= 32
    assert title[-1] not in ".:"
    assert detail.endswith(".")
    assert not remedy or remedy.endswith(".")
    assert not re.search(r"`|\bmcp_tools\b", title + detail + remedy)  # the model's words, not a person's


@pytest.mark.parametrize("code", [code for code in CATALOGUE if code.startswith("model_")])
def test_what_is_said_of_a_model_is_not_its_title_once_more(code: str) -> None:
    title, detail = (set(re.findall(r"[^\W_]{4,}", text.lower())) for text in messages._sentences()[code][:2])
    assert not title <= detail


@pytest.mark.anyio
async def test_sentences_are_found_by_qt_s_tools_and_translated(tmp_path: Path, qapp: QApplication) -> None:
    async def tool(name: str, *arguments: str) -> None:
        command = shutil.which(f"pyside6-{name}", path=str(Path(sys.executable).parent))
        assert command is not None
        finished = await processes.run([command, *arguments], time_limit=60, output_limit=0)
        assert finished.status == 0

    source, compiled = tmp_path / "de.ts", tmp_path / "de.qm"
    await tool("lupdate", str(messages.__file__), "-ts", str(source))
    text = source.read_text()
    entry = re.search(r"<source>Server disabled</source>\s*<translation type=\"unfinished\"></translation>", text)
    assert entry is not None
    german = "<source>Server disabled</source><translation>Server abgeschaltet</translation>"
    source.write_text(text.replace(entry[0], german))
    await tool("lrelease", str(source), "-qm", str(compiled))
    translator = QTranslator()
    assert translator.load(str(compiled))
    qapp.installTranslator(translator)
    try:
        assert messages.words(Diagnostic("server_disabled")).title == "Server abgeschaltet"
        assert messages.words(Diagnostic("timeout")).title == "No answer in time"
    finally:
        qapp.removeTranslator(translator)


def test_values_stand_in_the_sentence_with_hidden_characters_visible() -> None:
    said = messages.words(Diagnostic("variable_missing", values={"variable": "TOK\u202eEN"}))
    assert said.detail == "The environment variable TOK\\u202EEN that the definition names is not set."


def test_a_missing_value_is_left_out_and_one_that_begins_with_a_space_keeps_it() -> None:
    assert messages.message(Diagnostic("server_exited", values={"status": " with status 1"})) == (
        "The server's process ended with status 1."
    )
    assert messages.message(Diagnostic("server_exited")) == "The server's process ended."
    assert messages.hint(Diagnostic("cancelled")) == ""
