"""The catalog's search against others: what it finds, what it makes of typed names, and how fast it is.

``--data FOLDER`` names catalogs with labelled queries (by default ``../shared/data`` beside the repository, where it is); a small
set made here is always there. ``--quality`` or ``--speed`` measures one half. Recall at k is the share of a query's needs that
the first k results meet.
"""

# ruff: noqa: E402  # the number of threads is set before numpy is imported

from __future__ import annotations

import argparse
import math
import os
import random
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before numpy: the others take no second thread either

import bm25s
import numpy as np
import Stemmer
import tantivy

from desktop.catalog_entries import CatalogEntry, Kind, ToolDefinition
from desktop.host.catalog_search import CatalogSearch
from desktop.host.meanings import Meanings
from desktop.host.search_words import name_words, texts_of
from desktop.host.sentence_encoder import is_installed
from tests.bench._measuring import report
from tests.bench._reference_ranking import ReferenceRanking
from tests.bench._search_sets import DATA, Catalog, Query, load, own_catalog, sets, tool

#: Of a set, by its name: what recall at 1, 5 and 10 should be at least.
FLOORS: dict[str, tuple[float, float, float]] = {
    "livemcp_route_judged": (57, 87, 91),
    "desk K": (0, 97, 0),
    "desk P": (0, 52, 0),
}
FLOORS_BY_MEANING: dict[str, tuple[float, float, float]] = {"livemcp_route_judged": (0, 92, 95.5), "desk P": (0, 68, 0)}
#: Of a way of typing: recall at 1 and 5.
TYPING_FLOORS = {
    "exact": (100, 0),
    "other style": (98, 0),
    "1 edit": (0, 96),
    "2 edits": (0, 93),
    "last word cut": (0, 97),
}
TYPED = 400
DRAWS = 2000

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
    database.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", map(_split_texts, catalog.entries))

    def rank(query: str, limit: int) -> Sequence[int]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", _split(query)))
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
        name, *others = _split_texts(entry)
        writer.add_document(tantivy.Document(place=place, text=" ".join([*[name] * 4, *others])))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def rank(query: str, limit: int) -> Sequence[int]:
        words = " ".join(re.findall(r"\w+", _split(query)))
        parsed = index.parse_query(words, ["text"])
        return [searcher.doc(address)["place"][0] for _, address in searcher.search(parsed, limit).hits]

    return rank


def _split(text: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ").lower()


def _split_texts(entry: CatalogEntry) -> tuple[str, ...]:
    return tuple(map(_split, texts_of(entry)))


def _texts(catalog: Catalog) -> list[str]:
    return [" ".join(texts_of(entry)) for entry in catalog.entries]


def recalls(found: Sequence[str], query: Query, depths: Iterable[int]) -> list[float]:
    return [sum(bool(set(found[:k]) & set(need)) for need in query.needs) / len(query.needs) for k in depths]


def scores(ranking: Ranking, catalog: Catalog, queries: Sequence[Query]) -> list[list[float]]:
    """For each query: recall at 1, 5 and 10, reciprocal rank, nDCG at 10."""
    lines: list[list[float]] = []
    for query in queries:
        found = [catalog.keys[place] for place in ranking(query.text, 50)]
        right = {key for need in query.needs for key in need}
        first = next((1 / place for place, key in enumerate(found, 1) if key in right), 0.0)
        gains = sum(1 / math.log2(place + 1) for place, key in enumerate(found[:10], 1) if key in right)
        most = sum(1 / math.log2(place + 1) for place in range(1, min(10, len(right)) + 1))
        lines.append([*recalls(found, query, (1, 5, 10)), first, gains / most])
    return lines


def quality(folder: Path | None, cache: Path) -> None:
    meanings = Meanings(cache) if is_installed() else None
    try:
        for name, catalog, queries in sets(folder):
            engines: dict[str, Callable[[Catalog], Ranking]] = {
                "deskhand": deskhand,
                "reference": reference,
                "bm25s": bm25s_default,
                "fts5": fts5,
                "tantivy": tantivy_one_field,
            }
            if meanings is not None:
                engines["deskhand by meaning"] = partial(deskhand, meanings=meanings)
            measured = {engine: np.array(scores(make(catalog), catalog, queries)) for engine, make in engines.items()}
            for engine, lines in measured.items():
                r1, r5, r10, mrr, ndcg = (100 * lines.mean(axis=0)).round(1)
                floors = {"deskhand": FLOORS, "deskhand by meaning": FLOORS_BY_MEANING}.get(engine, {})
                more = {"r1": r1, "r10": r10, "mrr": mrr, "ndcg10": ndcg, "queries": len(queries)}
                floor = floors.get(name)
                report(
                    f"search_{name.replace(' ', '_')}",
                    r5,
                    "% recall at 5",
                    against=engine,
                    **more,
                    **({"floors": floor} if floor else {}),
                )
            for engine in ("deskhand", "deskhand by meaning"):
                if engine in measured:
                    _compare(name, engine, measured[engine][:, 1] - measured["reference"][:, 1])
        names = folder / "desk_catalog.jsonl" if folder else None
        typing(load(names) if names is not None and names.exists() else own_catalog(), meanings)
    finally:
        if meanings is not None:
            meanings.close()


def _compare(name: str, engine: str, differences: Any) -> None:
    """A paired bootstrap of recall at 5 against the reference's ranking."""
    draws = np.random.default_rng(1).integers(0, len(differences), (DRAWS, len(differences)))
    low, high = np.percentile(100 * differences[draws].mean(axis=1), [2.5, 97.5])
    report(
        f"search_{name.replace(' ', '_')}_gain",
        100 * float(differences.mean()),
        "points of recall at 5",
        against=f"{engine} less reference",
        interval=[round(float(low), 1), round(float(high), 1)],
        worse=bool(high < 0),
    )


def typing(catalog: Catalog, meanings: Meanings | None) -> None:
    """Names of tools as people type them."""
    named = [place for place, entry in enumerate(catalog.entries) if isinstance(entry, ToolDefinition)]
    rankings = {"deskhand": deskhand(catalog), "reference": reference(catalog), "bm25s": bm25s_default(catalog)}
    if meanings is not None:
        rankings["deskhand by meaning"] = deskhand(catalog, meanings)
    for way in ("exact", "other style", "1 edit", "2 edits", "last word cut", "every word cut"):
        drawn = random.Random(way)
        cases: list[tuple[str, str]] = []
        while len(cases) < TYPED:
            name = catalog.entries[drawn.choice(named)].name
            if typed := _typed(name, way, drawn):
                cases.append((typed, name))
        for engine, ranking in rankings.items():
            hits: list[tuple[bool, bool]] = []
            for typed, name in cases:
                names = [catalog.entries[place].name for place in ranking(typed, 5)]
                hits.append((name in names[:1], name in names))
            r1, r5 = (100 * np.array(hits).mean(axis=0)).round(1)
            more = {"floors": TYPING_FLOORS[way]} if engine.startswith("deskhand") and way in TYPING_FLOORS else {}
            report(f"search_typed_{way.replace(' ', '_')}", r5, "% recall at 5", against=engine, r1=r1, **more)


def _typed(name: str, way: str, drawn: random.Random) -> str | None:
    """A name as it may be typed; None where it can't be typed that way."""
    words = name_words(name)
    long = [place for place, word in enumerate(words) if len(word) >= 4]
    match way:
        case "exact":
            return name
        case "other style":
            return drawn.choice([" ".join(words), "-".join(words), "".join(word.title() for word in words)])
        case "1 edit" | "2 edits":
            count = int(way[0])
            if len(long) < count:
                return None
            for place in drawn.sample(long, count):
                words[place] = _edited(words[place], drawn)
            return " ".join(words)
        case "last word cut":
            return " ".join([*words[:-1], words[-1][:3]]) if len(words[-1]) > 3 else None
        case _:
            return " ".join(word[:4] for word in words)


def _edited(word: str, drawn: random.Random) -> str:
    place, letter = drawn.randrange(len(word) - 1), drawn.choice("abcdefghijklmnopqrstuvwxyz")
    return drawn.choice(
        [
            word[:place] + word[place + 1 :],
            word[:place] + letter + word[place:],
            word[:place] + letter + word[place + 1 :],
            word[:place] + word[place + 1] + word[place] + word[place + 2 :],
        ]
    )


def speed(folder: Path | None) -> None:
    wide = folder / "mcp_wide_catalog.jsonl" if folder else None
    real = load(wide).entries if wide is not None and wide.exists() else own_catalog().entries
    queries = [query.text for _, _, some in sets(folder) for query in some]
    queries = random.Random(1).sample(queries, min(150, len(queries)))
    for size, p99_budget, budgets in ((1000, 2, {}), (10_000, 0.8, {}), (100_000, 0.15, {"p99_top_k": 7})):
        entries = _widened(real, size)
        catalog = Catalog(entries, [], {})
        started = time.perf_counter()
        ranking = deskhand(catalog)
        build = {"deskhand": time.perf_counter() - started}
        index, build["bm25s"] = _bm25s(catalog)
        times = _times(ranking, index, queries)
        figures = {
            f"{what}_{other}": _percentile(times["deskhand"], share) / _percentile(times[other], share)
            for what, share in (("p50", 50), ("p99", 99))
            for other in ("retrieve", "top_k")
        }
        milliseconds = {
            f"{what}_ms": round(1000 * _percentile(times["deskhand"], share), 2)
            for what, share in (("p50", 50), ("p99", 99))
        }
        for what, figure in figures.items():
            budget = p99_budget if what == "p99_retrieve" else budgets.get(what)
            report(f"search_{what}_{size}", figure, "ratio", against="bm25s", budget=budget, **milliseconds)
        report(f"search_build_{size}", build["deskhand"] / build["bm25s"], "ratio", against="bm25s", budget=0.6)
        report(
            f"search_refresh_{size}",
            _refresh(entries),
            "ms",
            against="100 tools of one server",
            budget=60 if size == 10_000 else None,
        )


def _times(ranking: Ranking, index: Any, queries: Sequence[str]) -> dict[str, list[float]]:
    """Seconds of each query, from its text to the ten best, the engines one after the other so that all see the same machine."""
    stem = Stemmer.Stemmer("english").stemWords

    def words(query: str) -> list[str]:
        return [word for word in stem(_split(query).split()) if word in index.vocab_dict]

    def retrieved(query: str) -> None:
        if known := words(query):
            index.retrieve([known], k=10, show_progress=False)

    def scored(query: str) -> None:
        if known := words(query):
            _top_k(index.get_scores(known))

    engines = {"deskhand": lambda query: ranking(query, 10), "retrieve": retrieved, "top_k": scored}
    times: defaultdict[str, list[float]] = defaultdict(list)
    for query in [*queries] * 3:
        for name, engine in engines.items():
            times[name].append(_seconds(partial(engine, query)))
    return times


def _bm25s(catalog: Catalog) -> tuple[Any, float]:
    started = time.perf_counter()
    index = bm25s.BM25()
    stemmer = Stemmer.Stemmer("english")
    words = bm25s.tokenize(
        [" ".join(_split_texts(each)) for each in catalog.entries], stemmer=stemmer, show_progress=False
    )
    index.index(words, show_progress=False)
    return index, time.perf_counter() - started


def _top_k(found: Any) -> Any:
    best = np.argpartition(-found, 9)[:10]
    return best[np.argsort(-found[best])]


def _refresh(entries: Sequence[CatalogEntry]) -> float:
    """Milliseconds to take in that one server's 100 tools changed, until the next search is answered."""
    search = CatalogSearch()
    parts: defaultdict[tuple[Kind, str], list[CatalogEntry]] = defaultdict(list)
    for entry in entries:
        parts[entry.kind, entry.server].append(entry)
    for (kind, server), some in parts.items():
        search.replace(kind, server, some)
    search.rank("x", limit=1)
    measured: list[float] = []
    for turn in range(5):
        tools = [tool("changing", f"tool_{turn}_{n}", f"Does thing {n} of turn {turn}.", ["id"]) for n in range(100)]

        def change(tools: list[ToolDefinition] = tools) -> None:
            search.replace("tool", "changing", tools)
            search.rank("thing", limit=10)

        measured.append(1000 * _seconds(change))
    return statistics.median(measured)


def _widened(real: Sequence[CatalogEntry], size: int) -> list[CatalogEntry]:
    """So many entries: real ones, then copies in which every sixth word is another."""
    drawn = random.Random(1)
    vocabulary = [word for entry in real[:2000] for word in entry.description.split()]
    entries = list(real[:size])
    while len(entries) < size:
        entry = drawn.choice(real)
        words = [drawn.choice(vocabulary) if drawn.random() < 0.15 else word for word in entry.description.split()]
        schema = entry.input_schema if isinstance(entry, ToolDefinition) else {"type": "object"}
        server = f"{entry.server}{len(entries) // len(real)}"
        native = f"{server}_{entry.name}"
        entries.append(ToolDefinition(server, entry.name, native, " ".join(words), schema, str(len(entries)), ""))
    return entries


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(values, share))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA if DATA.is_dir() else None)
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        if not options.speed:
            quality(options.data, Path(cache))
        if not options.quality:
            speed(options.data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
