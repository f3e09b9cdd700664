"""Deskhand's folders and files are their owner's alone, and a file is replaced whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from desktop import paths as paths_module
from desktop.paths import Paths, private_folder, write_private
from tests.fakes.full_disk import no_space_left


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestPaths:
    def test_one_variable_puts_everything_below_one_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DESKHAND_HOME", str(tmp_path / "all"))
        paths = Paths.for_user()
        assert all(
            folder.parent == tmp_path / "all"
            for folder in (paths.config, paths.data, paths.cache, paths.logs, paths.results)
        )
        assert paths.history_file == tmp_path / "all" / "data" / "history.db"
        assert paths.servers_file == tmp_path / "all" / "config" / "mcp.json"
        assert not (tmp_path / "all").exists()

    def test_without_it_the_platforms_folders_are_used(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("DESKHAND_HOME")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        monkeypatch.setattr(paths_module.tempfile, "gettempdir", lambda: str(tmp_path))
        paths = Paths.for_user()
        assert paths.results.parent == tmp_path, (
            "whose a folder in a shared one is can be told only of the folder itself"
        )
        assert paths.settings_file.name == "settings.json"
        assert len({paths.config, paths.data, paths.cache, paths.logs, paths.results}) == 5


class TestPrivateFolder:
    def test_it_and_its_new_parents_are_the_owners_alone(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o755)
        folder = private_folder(tmp_path / "a" / "b")
        assert folder == tmp_path / "a" / "b"
        assert (mode(folder), mode(folder.parent), mode(tmp_path)) == (0o700, 0o700, 0o755)

    def test_one_that_others_may_enter_is_closed_to_them(self, tmp_path: Path) -> None:
        folder = tmp_path / "open"
        folder.mkdir(mode=0o755)
        assert mode(private_folder(folder)) == 0o700

    def test_a_link_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(PermissionError):
            private_folder(tmp_path / "link")

    def test_another_users_folder_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = private_folder(tmp_path / "theirs")
        monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
        with pytest.raises(PermissionError):
            private_folder(folder)


class TestWritePrivate:
    def test_a_new_file_is_private_and_so_is_its_new_folder(self, tmp_path: Path) -> None:
        file = tmp_path / "new" / "file"
        write_private(file, b"content")
        assert file.read_bytes() == b"content"
        assert (mode(file), mode(file.parent)) == (0o600, 0o700)

    def test_an_old_file_keeps_its_mode_and_a_link_its_place(self, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.write_bytes(b"old")
        file.chmod(0o640)
        link = tmp_path / "link"
        link.symlink_to(file)
        write_private(link, b"new")
        assert link.is_symlink()
        assert (file.read_bytes(), mode(file)) == (b"new", 0o640)

    def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(self, tmp_path: Path) -> None:
        file = tmp_path / "file"
        write_private(file, b"old")
        with no_space_left(), pytest.raises(OSError):
            write_private(file, b"new")
        assert file.read_bytes() == b"old"
        assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["file"]
