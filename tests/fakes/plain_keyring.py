"""A keyring backend that would write secrets to a plain file: what ``credentials.py`` must not trust."""

from __future__ import annotations

from pathlib import Path

from keyring.backend import KeyringBackend


class PlainKeyring(KeyringBackend):
    priority = 99

    def get_password(self, service: str, username: str) -> str | None:
        raise AssertionError("asked for a secret")

    def set_password(self, service: str, username: str, password: str) -> None:
        Path("plain.txt").write_text(password)
        raise AssertionError("given a secret")

    def delete_password(self, service: str, username: str) -> None:
        raise AssertionError("asked to delete a secret")
