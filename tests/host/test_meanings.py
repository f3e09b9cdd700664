"""With the extra ``semantic`` the search finds by meaning, too; without it, and until all is encoded, by words as ever."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from desktop.catalog_entries import CatalogEntry, ResourceEntry, ToolDefinition
from desktop.host import meanings, sentence_encoder
from desktop.host.catalog_search import CatalogSearch
from desktop.host.meanings import Meanings
from desktop.host.sentence_encoder import SentenceEncoder
from desktop.tool_names import native_name

BOUND = 60  # seconds; the encoder takes one


def tool(name: str, description: str) -> ToolDefinition:
    return ToolDefinition("desk", name, native_name("desk", name), description, {"type": "object"}, "", "")


TOOLS = [
    tool("remove_file", "Deletes a document from the disk for good."),
    tool("send_mail", "Sends a letter to somebody by electronic mail, with documents attached."),
    tool("play_song", "Plays music on the loudspeakers of the room."),
    tool("weather_forecast", "Tells temperature and rain of the coming days for a place."),
]
#: It shares "room" with the wrong tool, and no word with the right one.
PARAPHRASE = "will it be cold and wet outside my room tomorrow"


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[Meanings]:
    made = Meanings(tmp_path / "meanings")
    yield made
    made.close()


def search(vectors: Meanings | None, entries: list[CatalogEntry] | None = None) -> CatalogSearch:
    made = CatalogSearch(vectors)
    made.replace("tool", "desk", [*TOOLS] if entries is None else entries)
    return made


def names(found: CatalogSearch, query: str, **filters: str) -> list[str]:
    return [each.entry.name for each in found.rank(query, limit=5, **filters)]  # type: ignore[arg-type]


def encoded(found: CatalogSearch, vectors: Meanings) -> CatalogSearch:
    found.rank("anything", limit=1)  # has what is new encoded
    assert vectors.ready.wait(BOUND)
    return found


def test_texts_of_like_meaning_have_like_vectors() -> None:
    vectors = SentenceEncoder().encode(
        ["Delete a file", "remove a document", "play some music", "\ud83d half a character"]
    )
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 1], abs=1e-5)
    assert vectors[0] @ vectors[1] > 0.6 > 0.3 > vectors[0] @ vectors[2]


def test_a_text_has_the_same_vector_whatever_it_is_encoded_with() -> None:
    encoder = SentenceEncoder()
    texts = [f"{'long ' * number}text number {number}" for number in range(20)]
    assert np.allclose(encoder.encode(texts)[3], encoder.encode(texts[3:4])[0], atol=0.02)


def test_what_shares_no_word_with_a_query_is_found_by_its_meaning(vectors: Meanings) -> None:
    assert names(search(None), PARAPHRASE)[0] == "play_song"
    assert names(encoded(search(vectors), vectors), PARAPHRASE)[0] == "weather_forecast"


def test_until_all_is_encoded_the_ranking_is_that_of_the_words(
    vectors: Meanings, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = encoded(search(vectors), vectors)
    monkeypatch.setattr(vectors, "want", lambda texts: None)  # the new one is never encoded
    found.replace("resource", "desk", [ResourceEntry("desk", "note:///1", "room", "", "Which room is whose.")])
    by_words = search(None)
    by_words.replace("resource", "desk", [ResourceEntry("desk", "note:///1", "room", "", "Which room is whose.")])
    assert names(found, PARAPHRASE) == names(by_words, PARAPHRASE) == ["room", "play_song"]


def test_what_is_like_a_query_in_neither_words_nor_meaning_is_not_found(vectors: Meanings) -> None:
    assert names(encoded(search(vectors), vectors), "delete") == ["remove_file"]


@pytest.mark.parametrize("query", ["play_song", "playSong", "desk.play_song", "plai song", "wether"])
def test_a_typed_name_stays_first(vectors: Meanings, query: str) -> None:
    assert names(encoded(search(vectors), vectors), query)[0] == names(search(None), query)[0]


def test_a_last_word_that_begins_a_longer_label_is_not_taken_for_what_it_means(vectors: Meanings) -> None:
    entries: list[CatalogEntry] = [*TOOLS, tool("call_family", "Rings up a daughter or a son.")]
    by_words = search(None, entries)
    found = encoded(search(vectors, entries), vectors)
    assert found.rank("play son", limit=5) == by_words.rank("play son", limit=5)
    assert found.rank("daughter son play day", limit=5) != by_words.rank("daughter son play day", limit=5)


def test_a_word_that_the_catalog_has_not_is_what_meaning_is_for(vectors: Meanings) -> None:
    assert names(search(None), "snow outside my room") == ["play_song"]
    assert "weather_forecast" in names(encoded(search(vectors), vectors), "snow outside my room")


def test_filters_hold_for_what_is_found_by_meaning(vectors: Meanings) -> None:
    found = encoded(search(vectors), vectors)
    found.replace("tool", "other", [ToolDefinition("other", "room", "mcp__other__room", "A room.", {}, "", "")])
    encoded(found, vectors)
    assert names(found, PARAPHRASE, server="other") == ["room"]


def test_vectors_are_kept_for_the_next_run(vectors: Meanings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded(search(vectors), vectors)
    vectors.close()
    (file,) = (tmp_path / "meanings").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    texts: list[str] = []
    encode = SentenceEncoder.encode
    monkeypatch.setattr(SentenceEncoder, "encode", lambda self, some: texts.extend(some) or encode(self, some))
    again = Meanings(tmp_path / "meanings")
    try:
        assert names(encoded(search(again), again), PARAPHRASE)[0] == "weather_forecast"
    finally:
        again.close()
    assert texts == [PARAPHRASE]


@pytest.mark.parametrize("content", [b"", b"no vectors" * 1000, bytes(784 * 3)], ids=["empty", "other", "zeros"])
def test_a_file_that_holds_no_vectors_does_no_harm(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / f"vectors-{sentence_encoder.MODEL_HASH[:12]}.bin"
    file.write_bytes(content)
    made = Meanings(tmp_path)
    try:
        assert names(encoded(search(made), made), PARAPHRASE)[0] == "weather_forecast"
    finally:
        made.close()
    assert file.stat().st_size % 784 == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files here")
@pytest.mark.parametrize("make", [lambda path: os.symlink("/dev/zero", path), os.mkfifo], ids=["link", "pipe"])
def test_what_is_no_file_of_ours_is_neither_read_nor_written(tmp_path: Path, make: object) -> None:
    make(tmp_path / f"vectors-{sentence_encoder.MODEL_HASH[:12]}.bin")  # type: ignore[operator]
    made = Meanings(tmp_path)
    try:
        assert names(encoded(search(made), made), PARAPHRASE)[0] == "weather_forecast"
    finally:
        made.close()


def test_another_model_than_the_published_one_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoder, "MODEL_HASH", "0" * 64)
    made = Meanings(tmp_path / "meanings")
    try:
        assert names(search(made), PARAPHRASE)[0] == "play_song"
    finally:
        made.close()
    assert not (tmp_path / "meanings").exists()


def test_a_catalog_that_is_too_large_is_ranked_by_words(vectors: Meanings, monkeypatch: pytest.MonkeyPatch) -> None:
    found = encoded(search(vectors), vectors)
    monkeypatch.setattr(meanings, "MOST_ENTRIES", 3)
    assert names(found, PARAPHRASE)[0] == "play_song"
