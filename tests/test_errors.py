"""Every code says what happened and what to do, whatever values it is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop.errors import CATALOGUE, AssistantError, Diagnostic

ROOT = Path(__file__).parents[1]
_MAKERS = {"AssistantError", "Diagnostic", "HttpFailure", "known", "self._error"}


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


def test_every_code_that_is_given_is_in_the_catalogue_and_every_code_of_it_is_given() -> None:
    catalogue = {"errors.py", "messages.py"}
    modules = [module for module in (ROOT / "desktop").rglob("*.py") if module.name not in catalogue]
    texts = {module: module.read_text() for module in modules}
    given = {code for text in texts.values() for code in _codes_given(ast.parse(text))}
    assert given <= set(CATALOGUE)
    assert {code for code in CATALOGUE if not any(f'"{code}"' in text for text in texts.values())} == set()


def _codes_given(tree: ast.AST) -> Iterator[str]:
    """The literals that stand where errors and diagnostics take their code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in _MAKERS:
            yield from (str(each.value) for each in ast.walk(node.args[0]) if isinstance(each, ast.Constant))
