"""Deskhand's search and those it is measured against, each as a ranking of a catalog. Used by ``search.py``."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Sequence

import bm25s
import tantivy

from desktop.catalog_entries import CatalogEntry, Kind
from desktop.host.catalog_search import CatalogSearch
from desktop.host.meanings import Meanings
from desktop.host.search_words import texts_of
from tests.bench._reference_ranking import ReferenceRanking
from tests.bench._search_sets import Catalog

Ranking = Callable[[str, int], Sequence[int]]
"""Places of the best entries for a query, best first."""


def deskhand(catalog: Catalog, meanings: Meanings | None = None) -> Ranking:
    search = CatalogSearch(meanings)
    parts: defaultdict[tuple[Kind, str], list[CatalogEntry]] = defaultdict(list)
    for entry in catalog.entries:
        parts[entry.kind, entry.server].append(entry)
    for (kind, server), entries in parts.items():
        search.replace(kind, server, entries, title=catalog.titles.get(server, ""))
    places = {id(entry): place for place, entry in enumerate(catalog.entries)}
    search.rank("x", limit=1)
    if meanings is not None and not meanings.ready.wait(600):
        raise TimeoutError("the entries were not encoded")
    return lambda query, limit: [places[id(each.entry)] for each in search.rank(query, limit=limit)]


def reference(catalog: Catalog) -> Ranking:
    ranking = ReferenceRanking(catalog.entries)
    places = {id(entry): place for place, entry in enumerate(catalog.entries)}
    return lambda query, limit: [places[id(entry)] for entry, _ in ranking.rank(query, limit)]


def bm25s_default(catalog: Catalog) -> Ranking:
    index = bm25s.BM25()
    index.index(bm25s.tokenize(_texts(catalog), show_progress=False), show_progress=False)

    def rank(query: str, limit: int) -> Sequence[int]:
        words = bm25s.tokenize([query], show_progress=False)
        found, scores = index.retrieve(words, k=min(limit, len(catalog.entries)), show_progress=False)
        return [int(place) for place, score in zip(found[0], scores[0], strict=True) if score > 0]

    return rank


def fts5(catalog: Catalog) -> Ranking:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE entries USING fts5(a, b, c, d, e, f, tokenize='porter unicode61')")
    database.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", map(split_texts, catalog.entries))

    def rank(query: str, limit: int) -> Sequence[int]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", split(query)))
        sql = "SELECT rowid - 1 FROM entries WHERE entries MATCH ? ORDER BY bm25(entries, 8, 4, 3, 1, 1, 0.5) LIMIT ?"
        return [place for (place,) in database.execute(sql, (words, limit))] if words else []

    return rank


def tantivy_one_field(catalog: Catalog) -> Ranking:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("place", stored=True)
    builder.add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(builder.build())
    writer = index.writer(50_000_000, 1)
    for place, entry in enumerate(catalog.entries):
        name, *others = split_texts(entry)
        writer.add_document(tantivy.Document(place=place, text=" ".join([*[name] * 4, *others])))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def rank(query: str, limit: int) -> Sequence[int]:
        words = " ".join(re.findall(r"\w+", split(query)))
        parsed = index.parse_query(words, ["text"])
        return [searcher.doc(address)["place"][0] for _, address in searcher.search(parsed, limit).hits]

    return rank


def split(text: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ").lower()


def split_texts(entry: CatalogEntry) -> tuple[str, ...]:
    return tuple(map(split, texts_of(entry)))


def _texts(catalog: Catalog) -> list[str]:
    return [" ".join(texts_of(entry)) for entry in catalog.entries]
