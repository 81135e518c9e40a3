"""
Reading a listing to its end.

DLC's pages shift while one reads them: a job may be on two pages, and the total may change or be absent. So
pages are read until one is empty (or short, with nothing announced beyond it), and what was seen before is
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_pai_spot.exceptions import PaiDlcRefused

PAGE_SIZE = 100
"""The largest page ListJobs allows; its default is 10."""
IDS_AT_ONCE = 100
"""Ids in one ListJobs: the URL stays below 2 kB. No limit is documented, so a refusal splits the batch."""
_TOO_LARGE = (400, 414)

FetchPage = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def read_all(fetch: FetchPage, *, items_key: str, identity: str, max_pages: int) -> tuple[list[dict[str, Any]], bool]:
    """
    Return every distinct item, and whether `max_pages` cut the listing short.

    :param fetch: sends one request with the given paging parameters.
    :param items_key: where the answer keeps its items.
    :param identity: the item's key that tells one from another; items without it are dropped.
    """
    found: dict[str, dict[str, Any]] = {}
    received = 0
    for number in range(1, max_pages + 1):
        answer = fetch({"PageNumber": number, "PageSize": PAGE_SIZE})
        items = answer[items_key]
        received += len(items)
        for item in items:
            if isinstance(item, dict) and isinstance(item.get(identity), str):
                found.setdefault(item[identity], item)
        if not items or (len(items) < PAGE_SIZE and received >= _total(answer)):
            return list(found.values()), False
    return list(found.values()), True


def batches(ids: Sequence[str]) -> Iterator[list[str]]:
    """Return distinct ids in batches that fit one request."""
    distinct = list(dict.fromkeys(ids))
    for start in range(0, len(distinct), IDS_AT_ONCE):
        yield distinct[start : start + IDS_AT_ONCE]


def read_splitting(ids: list[str], read: Callable[[list[str]], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return `read(ids)`; a batch refused as too large (400, 414) is read as two halves."""
    try:
        return read(ids)
    except PaiDlcRefused as refusal:
        if refusal.status_code not in _TOO_LARGE or len(ids) == 1:
            raise
    middle = len(ids) // 2
    return read_splitting(ids[:middle], read) + read_splitting(ids[middle:], read)


def _total(answer: Mapping[str, Any]) -> int:
    total = answer.get("TotalCount")
    return total if isinstance(total, int) else 0
