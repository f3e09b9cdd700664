"""How fast the catalog's search is, against bm25s. Used by ``search.py``.

Times are those that the processor spent on the work, the best of some rounds: what else runs on the machine counts little.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import Stemmer

from desktop.catalog_entries import CatalogEntry, Kind, ToolDefinition
from desktop.host.catalog_search import CatalogSearch
from tests.bench._search_engines import Ranking, deskhand, split, split_texts
from tests.bench._search_sets import Catalog, load, own_catalog, sets, tool
from tests.bench._verdicts import Verdicts

ROUNDS = 3


def speed(folder: Path | None, verdicts: Verdicts) -> None:
    wide = folder / "mcp_wide_catalog.jsonl" if folder else None
    real = load(wide).entries if wide is not None and wide.exists() else own_catalog().entries
    queries = [query.text for _, _, some in sets(folder) for query in some]
    queries = random.Random(1).sample(queries, min(150, len(queries)))
    for size, budgets in (
        (1000, {"p99_retrieve": 2}),
        (10_000, {"p99_retrieve": 0.8, "refresh": 60}),
        (100_000, {"p99_retrieve": 0.15, "p99_top_k": 7}),
    ):
        entries = _widened(real, size)
        catalog = Catalog(entries, [], {})
        build = min(_seconds(partial(deskhand, catalog)) for _ in range(ROUNDS))
        build_bm25s = min(_seconds(partial(_bm25s, catalog)) for _ in range(ROUNDS))
        times = _times(deskhand(catalog), _bm25s(catalog), queries)
        for what, share in (("p50", 50), ("p99", 99)):
            figures = {engine: _percentile(some, share) for engine, some in times.items()}
            for other in ("retrieve", "top_k"):
                verdicts.report(
                    f"search_{what}_{other}_{size}",
                    figures["deskhand"] / figures[other],
                    "ratio",
                    against=f"bm25s {other}",
                    budget=budgets.get(f"{what}_{other}"),
                    milliseconds={engine: round(1000 * each, 3) for engine, each in figures.items()},
                )
        verdicts.report(
            f"search_build_{size}",
            build / build_bm25s,
            "ratio",
            against="bm25s",
            budget=0.6,
            seconds={"deskhand": round(build, 3), "bm25s": round(build_bm25s, 3)},
        )
        verdicts.report(
            f"search_refresh_{size}",
            _refresh(entries),
            "ms",
            against="100 tools of one server",
            budget=budgets.get("refresh"),
        )


def _times(ranking: Ranking, index: Any, queries: Sequence[str]) -> dict[str, list[float]]:
    """Seconds of each query, from its text to the ten best: the best of some rounds, in each of which the engines take turns."""
    stem = Stemmer.Stemmer("english").stemWords

    def words(query: str) -> list[str]:
        return [word for word in stem(split(query).split()) if word in index.vocab_dict]

    def retrieved(query: str) -> None:
        if known := words(query):
            index.retrieve([known], k=10, show_progress=False)

    def scored(query: str) -> None:
        if known := words(query):
            _top_k(index.get_scores(known))

    engines = {"deskhand": lambda query: ranking(query, 10), "retrieve": retrieved, "top_k": scored}
    rounds: defaultdict[str, list[list[float]]] = defaultdict(list)
    for _ in range(ROUNDS):
        for engine in engines:
            rounds[engine].append([])
        for query in queries:
            for name, engine in engines.items():
                rounds[name][-1].append(_seconds(partial(engine, query)))
    return {name: [min(times) for times in zip(*some, strict=True)] for name, some in rounds.items()}


def _bm25s(catalog: Catalog) -> Any:
    index = bm25s.BM25()
    stemmer = Stemmer.Stemmer("english")
    texts = [" ".join(split_texts(each)) for each in catalog.entries]
    index.index(bm25s.tokenize(texts, stemmer=stemmer, show_progress=False), show_progress=False)
    return index


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
    started = time.process_time()
    work()
    return time.process_time() - started


def _percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(values, share))
