"""Settings survive a restart; a file that can't be read is never lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desktop.settings import Settings


def test_a_change_is_kept_and_told(tmp_path: Path) -> None:
    file = tmp_path / "config" / "settings.json"
    settings = Settings(file)
    told: list[frozenset[str]] = []
    settings.changed.connect(told.append)
    settings.change(model="openai/x", font_size=0)
    assert told == [frozenset({"model"})]
    assert Settings(file).values.model == "openai/x"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_unknown_keys_are_kept_and_wrong_types_ignored(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"newer": {"a": 1}, "font_size": "big", "color_scheme": "pink", "model": "m"}')
    settings = Settings(file)
    assert (settings.values.font_size, settings.values.color_scheme, settings.values.model) == (0, "system", "m")
    settings.change(font_size=14)
    assert json.loads(file.read_text())["newer"] == {"a": 1}


@pytest.mark.parametrize("content", ["{", "[]", "\x00"])
def test_a_file_that_cannot_be_read_is_never_overwritten(tmp_path: Path, content: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(content)
    settings = Settings(file)
    assert settings.fault
    settings.change(model="m")
    assert settings.values.model == "m"
    assert file.read_text() == content


def test_a_change_that_cannot_be_written_holds_for_this_run(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    settings = Settings(folder / "settings.json")
    folder.write_text("a file in the way")
    told: list[frozenset[str]] = []
    settings.changed.connect(told.append)
    with pytest.raises(OSError, match=r"."):
        settings.change(model="m")
    assert settings.values.model == "m"
    assert told
