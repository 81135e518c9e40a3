"""Listings that shift while they are read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.exceptions import PaiDlcNotFound, PaiDlcRefused
from airflow_provider_pai_spot.hooks.listing import (
    IDS_AT_ONCE,
    PAGE_SIZE,
    batches,
    read_all,
    read_splitting,
)


def job(number: int) -> dict[str, str]:
    return {"JobId": f"dlc{number}"}


def read(pages: list[list[object]], *, totals: list[object] | None = None, max_pages: int = 50) -> Any:
    """Read scripted pages; returns the ids, whether it was cut, and how many requests it took."""
    asked = []

    def fetch(paging: Any) -> Any:
        asked.append(paging["PageNumber"])
        index = paging["PageNumber"] - 1
        total = (totals or [None] * 99)[index]
        return {"Jobs": pages[index] if index < len(pages) else [], "TotalCount": total}

    found, cut = read_all(fetch, items_key="Jobs", identity="JobId", max_pages=max_pages)
    return [item["JobId"] for item in found], cut, len(asked)


FULL = [job(n) for n in range(PAGE_SIZE)]


def test_a_short_page_ends_the_listing() -> None:
    assert read([[job(1), job(2)]], totals=[2]) == (["dlc1", "dlc2"], False, 1)


def test_a_full_page_is_followed_by_another_even_if_the_total_denies_it() -> None:
    ids, cut, requests = read([FULL, [job(100)]], totals=[PAGE_SIZE, PAGE_SIZE + 1])
    assert (len(ids), cut, requests) == (PAGE_SIZE + 1, False, 2)


def test_a_short_page_below_the_announced_total_is_followed_by_another() -> None:
    """A server that caps the page size below what was asked."""
    pages = [[job(n) for n in range(start, start + 10)] for start in (0, 10, 20)]
    assert read(pages, totals=[30, 30, 30])[0] == [f"dlc{n}" for n in range(30)]


def test_an_empty_page_ends_the_listing_whatever_the_total_says() -> None:
    assert read([[job(1)], []], totals=[99, 99]) == (["dlc1"], False, 2)


def test_a_job_on_two_pages_is_one_job() -> None:
    shifted = [job(n) for n in range(PAGE_SIZE - 1, PAGE_SIZE + 4)]
    assert len(read([FULL, shifted])[0]) == PAGE_SIZE + 4


def test_the_page_limit_is_reported() -> None:
    assert read([FULL] * 9, max_pages=3)[1:] == (True, 3)


def test_items_without_an_id_do_not_spoil_the_others() -> None:
    assert read([[job(1), None, "text", {"JobId": 5}, {}, job(2)]])[0] == ["dlc1", "dlc2"]


@given(
    count=st.integers(min_value=0, max_value=450),
    new_jobs=st.lists(st.integers(min_value=0, max_value=30), max_size=6),
)
def test_every_job_that_was_there_is_found_though_new_ones_push_it_back(count: Any, new_jobs: Any) -> None:
    """Newest first: each submission between two requests moves all others towards the end."""
    jobs = [job(n) for n in range(count)]
    arrivals = iter(new_jobs)
    born = iter(range(10_000, 99_999))

    def fetch(paging: Any) -> Any:
        start = (paging["PageNumber"] - 1) * paging["PageSize"]
        page = jobs[start : start + paging["PageSize"]]
        jobs[:0] = [job(next(born)) for _ in range(next(arrivals, 0))]
        return {"Jobs": page, "TotalCount": len(jobs)}

    found, cut = read_all(fetch, items_key="Jobs", identity="JobId", max_pages=50)
    assert {item["JobId"] for item in found} >= {f"dlc{n}" for n in range(count)}
    assert len(found) == len({item["JobId"] for item in found})
    assert not cut


@given(st.lists(st.integers(min_value=0, max_value=400).map(str), max_size=600))
def test_batches_hold_each_id_once_and_fit_one_request(ids: list[str]) -> None:
    made = list(batches(ids))
    assert [one for batch in made for one in batch] == list(dict.fromkeys(ids))
    assert all(0 < len(batch) <= IDS_AT_ONCE for batch in made)


@pytest.mark.parametrize("status", [400, 414])
def test_a_batch_refused_as_too_large_is_halved_until_it_fits(status: Any) -> None:
    sizes = []

    def reader(ids: list[str]) -> Any:
        sizes.append(len(ids))
        if len(ids) > 3:
            raise PaiDlcRefused("too large", status_code=status)
        return [{"JobId": one} for one in ids]

    ids = [str(n) for n in range(8)]
    assert [item["JobId"] for item in read_splitting(ids, reader)] == ids
    assert sizes == [8, 4, 2, 2, 4, 2, 2]


@pytest.mark.parametrize(
    "error", [PaiDlcRefused("no", status_code=403), PaiDlcNotFound("no", status_code=404)], ids=["403", "404"]
)
def test_any_other_refusal_is_not_about_size(error: Any) -> None:
    def reader(_ids: list[str]) -> None:
        raise error

    with pytest.raises(type(error)):
        read_splitting(["a", "b"], reader)


def test_one_id_that_is_refused_is_refused() -> None:
    def reader(_ids: list[str]) -> None:
        raise PaiDlcRefused("bad id", status_code=400)

    with pytest.raises(PaiDlcRefused, match="bad id"):
        read_splitting(["a", "b"], reader)
