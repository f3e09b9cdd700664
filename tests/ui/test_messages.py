"""Every code that the assistant and the host can give is said in words, with its values, and nothing hidden in them."""

from __future__ import annotations

import re
import string

import pytest

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


def test_values_stand_in_the_sentence_with_hidden_characters_visible() -> None:
    said = messages.words(Diagnostic("variable_missing", values={"variable": "TOK\u202eEN"}))
    assert said.detail == "The environment variable TOK\\u202EEN that the definition names is not set."


def test_a_missing_value_is_left_out_and_one_that_begins_with_a_space_keeps_it() -> None:
    assert messages.message(Diagnostic("server_exited", values={"status": " with status 1"})) == (
        "The server's process ended with status 1."
    )
    assert messages.message(Diagnostic("server_exited")) == "The server's process ended."
    assert messages.hint(Diagnostic("cancelled")) == ""
