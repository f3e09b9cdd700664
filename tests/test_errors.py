"""Every code says what happened and what to do, whatever values it is given."""

from __future__ import annotations

import pytest

from desktop.errors import CATALOGUE, AssistantError, Diagnostic


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_code_makes_a_sentence_without_any_value(code: str) -> None:
    diagnostic = Diagnostic(code)
    assert diagnostic.message.endswith(".")
    assert "{" not in diagnostic.message or code == "usage"
    assert not diagnostic.hint or diagnostic.hint.endswith((".", "}."))


def test_values_take_their_places_and_are_never_formats_themselves() -> None:
    error = AssistantError("configuration_invalid", server="git", where=" (field args)", reason="{server} {0}")
    assert "(field args)" in str(error)
    assert "{server} {0}" in str(error)
    assert str(error).startswith("git: [configuration_invalid] ")


def test_a_server_name_that_is_no_name_is_left_out() -> None:
    assert str(Diagnostic("timeout", server="a\nb")).startswith("[timeout]")
