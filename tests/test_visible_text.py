"""Nothing hidden in untrusted text stays hidden, and nothing that people write is damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.visible_text import one_line, plain, visible, visible_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ok\x1b[8mhidden\x1b[0m", "ok\\x1B[8mhidden\\x1B[0m"),
        ("name\u202egnp.exe", "name\\u202Egnp.exe"),
        ("tag\U000e0041", "tag\\U000E0041"),
        ("zero\u200bwidth\ufeff", "zero\\u200Bwidth\\uFEFF"),
        ("pass\u200dword", "pass\\u200Dword"),
        ("tab\tline\n", "tab\tline\n"),
        ("windows\r\nline", "windows\nline"),
        ("bare\rreturn", "bare\\x0Dreturn"),
    ],
)
def test_hidden_characters_become_marks(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["שלום עולם", "مرحبا بالعالم", "👩‍👩‍👧‍👦 family", "naïve Größe 漢字", "❤️", "नमस्ते क्‍ष"])
def test_scripts_and_emoji_stay_as_they_are(text: str) -> None:
    assert visible(text) == text
    assert plain(text) == text


def test_plain_text_for_a_model_carries_no_escape_sequence() -> None:
    assert plain("ok\x1b[8mhidden\x1b[0m\u202e\U000e0041 \x1b]8;;http://evil\x07link") == "okhidden link"


def test_every_hidden_character_is_seen_between_letters_of_any_script() -> None:
    hidden = [*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x200B, 0x200E, 0x200F, 0xFEFF, 0xFFF9, 0xFFFA, 0xFFFB]
    hidden += [*range(0x202A, 0x202F), *range(0x2060, 0x2065), *range(0x2066, 0x2070), 0xD800, 0xDFFF]
    hidden += range(0xE0000, 0xE0080)
    for neighbour in ("a", "é", "Ж", "狐", "👩"):
        for code in hidden:
            text = f"{neighbour}{chr(code)}"
            assert plain(text) == neighbour, hex(code)
            assert visible(text) != text, hex(code)


def test_one_line_is_cut_with_an_ellipsis() -> None:
    assert one_line("a\n  b\tc", 160) == "a b c"
    assert one_line("x" * 200, 160) == "x" * 159 + "…"
    assert visible_line("\u202e" * 100, 20) == ("\\u202E" * 100)[:19] + "…"


@given(st.text())
def test_no_control_is_left_in_either_form(text: str) -> None:
    for form in (visible(text), plain(text)):
        assert not any(ord(character) < 32 and character not in "\t\n" for character in form)
        assert not any(0x202A <= ord(character) <= 0x202E or 0x2066 <= ord(character) <= 0x2069 for character in form)
