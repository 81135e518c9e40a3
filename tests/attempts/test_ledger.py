"""What is stored about attempts survives, stays small and never crashes a try."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.ledger import STORE_KEY, Attempt, AttemptLedger, MemoryStore


def attempt(number: int, **changes: Any) -> Attempt:
    return Attempt(number=number, generation=1, request_hash="ab", **changes)


def test_attempts_are_read_back_in_order() -> None:
    store = MemoryStore()
    ledger = AttemptLedger(store)
    ledger.put(attempt(1, job_id="dlc2"))
    ledger.put(attempt(0, job_id="dlc1", bid="0.4 of list price"))
    again = AttemptLedger(store)
    assert [one.job_id for one in again.attempts] == ["dlc1", "dlc2"]
    assert again.attempts[0].bid == "0.4 of list price"


def test_an_intent_has_no_job_and_can_be_dropped() -> None:
    store = MemoryStore()
    ledger = AttemptLedger(store)
    ledger.put(attempt(0, job_id="dlc1"))
    ledger.put(attempt(1))
    assert AttemptLedger(store).newest == attempt(1)
    ledger.drop(1)
    assert AttemptLedger(store).newest == attempt(0, job_id="dlc1")


def test_changes_are_stored_at_once() -> None:
    store = MemoryStore()
    AttemptLedger(store).put(attempt(0))
    AttemptLedger(store).change(0, job_id="dlc1", consumed=True)
    found = AttemptLedger(store).find("dlc1")
    assert found is not None
    assert found.consumed


@pytest.mark.parametrize(
    "stored",
    [None, "text", 7, [], {}, {"attempts": "no"}, {"attempts": [{"number": 0}]}, {"attempts": [None]}],
    ids=repr,
)
def test_what_somebody_edited_beyond_recognition_counts_as_lost(stored: Any) -> None:
    store = MemoryStore()
    store.set(STORE_KEY, stored)
    assert AttemptLedger(store).newest is None


def test_keys_of_a_newer_release_are_ignored() -> None:
    store = MemoryStore()
    AttemptLedger(store).put(attempt(0, job_id="dlc1"))
    value = store.get(STORE_KEY)
    value["attempts"][0]["a_key_of_tomorrow"] = 1
    assert AttemptLedger(store).newest == attempt(0, job_id="dlc1")


def test_the_stored_value_stays_below_airflow_s_limit() -> None:
    store = MemoryStore()
    ledger = AttemptLedger(store)
    hashes = {f"Key{index}": "0123abcd" for index in range(25)}
    for number in range(500):
        ledger.put(attempt(number, job_id=f"dlc{number:013d}", key_hashes=hashes, bid="0.4 of list price"))
    assert len(json.dumps(store.get(STORE_KEY))) < 40_000
    assert AttemptLedger(store).newest == ledger.newest


def test_a_loss_is_counted_for_the_try_that_acts_on_it_and_never_uncounted() -> None:
    store = MemoryStore()
    for number in range(200):
        ledger = AttemptLedger(store)
        ledger.put(attempt(number, try_number=2, verdict="revoked"))
        ledger.count_loss(2, generation=1)
    ledger = AttemptLedger(store)
    assert ledger.revocations_in_try(2, generation=1) == 200
    assert ledger.revocations_in_try(3, generation=1) == 0
    assert ledger.revocations_in_try(2, generation=2) == 0


def test_a_ledger_keeps_its_id_and_another_one_has_another() -> None:
    store = MemoryStore()
    ledger = AttemptLedger(store)
    ledger.put(attempt(0))
    assert AttemptLedger(store).ledger_id == ledger.ledger_id
    assert AttemptLedger(MemoryStore()).ledger_id != ledger.ledger_id


@pytest.mark.parametrize(
    "change",
    [
        {"submitting_at": "yesterday"},
        {"stop_reason": "bogus"},
        {"number": None},
        {"number": "0"},
        {"job_id": 5},
        {"job_id": ""},
        {"key_hashes": None},
        {"generation": True},
    ],
    ids=str,
)
def test_an_attempt_that_we_would_not_have_written_makes_the_store_count_as_lost(change: dict[str, Any]) -> None:
    store = MemoryStore()
    AttemptLedger(store).put(attempt(0, job_id="dlc1"))
    store.get(STORE_KEY)["attempts"][0].update(change)
    assert AttemptLedger(store).is_blank
