"""What is sent to a server as a URI is one, whatever a model wrote."""

from __future__ import annotations

import pytest

from desktop.uris import are_template_arguments, is_template, is_uri, template_variables


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "https://example.org/a?b=c#d",
        "urn:isbn:0451450523",
        "note+v1.0-x://a%20b",
        "x:/é/漢字",
        "m:",
    ],
)
def test_absolute_uris_of_any_scheme_are_valid(uri: str) -> None:
    assert is_uri(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/etc/passwd",
        "relative/x",
        "1x://a",
        "note://a b",
        "note://a\n",
        "note://a\u3000b",
        "note://\x1b[0m",
        "note://\x85",
        "note://\u202egnp",
        "note://\u2066x",
        "note://\ud800",
        "é://a",
        "note://" + "x" * 4096,
    ],
)
def test_what_is_relative_hidden_or_too_long_is_no_uri(uri: str) -> None:
    assert not is_uri(uri)


def test_the_limit_is_4096_characters() -> None:
    assert is_uri("note:" + "x" * 4091)
    assert not is_uri("note:" + "x" * 4092)


@pytest.mark.parametrize(
    ("template", "variables"),
    [
        ("note://{id}", ("id",)),
        ("{+base}/files{/path*}{?page,size}", ("base", "path", "page", "size")),
        ("db://{table}/{table}{#part:3}", ("table", "part")),
        ("plain://text", ()),
        ("x://{a.b,c%20d}", ("a.b", "c%20d")),
    ],
)
def test_a_template_names_its_variables_once_and_in_order(template: str, variables: tuple[str, ...]) -> None:
    assert is_template(template)
    assert template_variables(template) == variables


@pytest.mark.parametrize(
    "template",
    [
        "",
        "note://{",
        "note://}",
        "note://{}",
        "note://{a b}",
        "note://{!a}",
        "note://{a,}",
        "note:// {a}",
        "x" * 4097,
        "a\u202e{b}",
    ],
)
def test_what_can_not_be_read_as_a_template_is_refused(template: str) -> None:
    assert not is_template(template)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"id": "7"}, {"path": ["a", "b"]}, {"id": ""}, {"path": []}, {f"n{number}": "v" for number in range(100)}],
)
def test_arguments_are_strings_and_lists_of_strings(arguments: object) -> None:
    assert are_template_arguments(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        [],
        {"id": 7},
        {"id": None},
        {"id": {"a": "b"}},
        {"id": ["a", 1]},
        {"id": "x" * 4097},
        {"n" * 513: "x"},
        {"path": ["x"] * 101},
        {f"n{number}": "v" for number in range(101)},
        {f"n{number}": "x" * 4096 for number in range(16)},
    ],
)
def test_arguments_beyond_the_limits_are_refused(arguments: object) -> None:
    assert not are_template_arguments(arguments)
