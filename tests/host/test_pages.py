"""Lists read page by page: whole, and guarded against servers whose lists never end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from desktop.host.pages import all_pages

pytestmark = pytest.mark.anyio


Pages = Sequence[tuple[Sequence[str], str | None]]


async def listed(pages: Pages) -> tuple[list[str], str | None, list[str | None]]:
    """What is made of pages that come one after another, the last for ever, and the cursors they were asked with."""
    asked: list[str | None] = []

    async def fetch(cursor: str | None) -> tuple[Sequence[str], str | None]:
        asked.append(cursor)
        return pages[min(len(asked), len(pages)) - 1]

    return *await all_pages(fetch, lambda entry: entry), asked


async def test_every_cursor_is_followed_also_an_empty_one_and_an_empty_page() -> None:
    entries, reason, asked = await listed([(["a", "b"], ""), ([], "x"), ([], "y"), (["c"], None)])
    assert (entries, reason) == (["a", "b", "c"], None)
    assert asked == [None, "", "x", "y"]


async def test_a_cursor_that_comes_again_ends_the_list_with_a_warning() -> None:
    entries, reason, asked = await listed([(["a"], "x"), (["b"], "y"), (["c"], "x")])
    assert (entries, reason, len(asked)) == (["a", "b", "c"], "its pages repeat", 3)


async def test_a_page_that_comes_again_under_another_cursor_ends_the_list_with_a_warning() -> None:
    entries, reason, asked = await listed([(["a", "b"], "1"), (["c"], "2"), (["a", "b"], "3")])
    assert (entries, reason, len(asked)) == (["a", "b", "c"], "its pages repeat", 3)


async def test_entries_that_come_twice_are_kept_once_and_the_first_counts() -> None:
    entries, reason, _ = await listed([(["a", "b", "a"], "1"), (["b", "c"], None)])
    assert (entries, reason) == (["a", "b", "c"], None)


async def test_a_list_without_end_stops_after_a_hundred_pages() -> None:
    number = 0

    async def fetch(_cursor: str | None) -> tuple[Sequence[str], str | None]:
        nonlocal number
        number += 1
        return [f"tool {number}"], str(number)

    entries, reason = await all_pages(fetch, lambda entry: entry)
    assert (len(entries), number, reason) == (100, 100, "it has more than 100 pages")


async def test_a_list_of_too_many_entries_is_cut_with_a_warning() -> None:
    entries, reason, _ = await listed([([f"tool {n}" for n in range(10_001)], None)])
    assert (len(entries), reason) == (10_000, "it has more than 10000 entries")
    entries, reason, _ = await listed([([f"tool {n}" for n in range(10_000)], None)])
    assert (len(entries), reason) == (10_000, None)
