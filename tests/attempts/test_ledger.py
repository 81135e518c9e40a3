"""What is stored about attempts survives, stays small and never crashes a try."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.ledger import STORE_KEY, Attempt, AttemptLedger, MemoryStore, Tally
from airflow_provider_pai_spot.attempts.places import Place


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
    long = {
        "key_hashes": {f"Key{index}": "0123abcd" for index in range(25)},
        "bid": "0.4 of list price",
        "ecs_spec": "ecs.gn7i-c32g1.8xlarge",
        "reason": "revocation 1000 of 1000: bids 0.9 of list price on ecs.gn7i-c32g1.8xlarge (in stock, 0.35 of it)",
        "progress": {"text": "x" * 180},
        "checkpoint": "c" * 120,
        "progressed": False,
        "place": Place("pai_dlc_of_the_team", "cn-wulanchabu", "pai-dlc-vpc.cn-wulanchabu.aliyuncs.com", "123456"),
    }
    for number in range(500):
        ledger.put(attempt(number, job_id=f"dlc{number:013d}", **long))
    assert len(json.dumps(store.get(STORE_KEY))) < 60_000
    assert AttemptLedger(store).newest == ledger.newest


def test_a_loss_is_counted_for_the_try_that_acts_on_it_and_never_uncounted() -> None:
    store = MemoryStore()
    for number in range(200):
        ledger = AttemptLedger(store)
        ledger.put(attempt(number, try_number=2, verdict="revoked"))
        ledger.count_loss(2, generation=1)
    ledger = AttemptLedger(store)
    assert ledger.tally(2, generation=1) == Tally(1, 2, losses=200, losses_in_all=200)
    assert ledger.tally(3, generation=1) == Tally(1, 3, losses_in_all=200)
    assert ledger.tally(2, generation=2) == Tally(2, 2)


def test_a_job_that_waited_in_vain_is_counted_beside_the_losses_of_its_try() -> None:
    store = MemoryStore()
    AttemptLedger(store).count_loss(1, generation=0)
    AttemptLedger(store).count_wait(2, generation=0)
    assert AttemptLedger(store).tally(2, generation=0) == Tally(0, 2, waits=1, losses_in_all=1)


def test_what_an_older_release_stored_is_read() -> None:
    store = MemoryStore()
    older = {"number": 0, "generation": 1, "request_hash": "h", "job_id": "dlc1", "bid": "0.4 of list price"}
    store.set(STORE_KEY, {"version": 1, "ledger": "l", "losses": [1, 2, 3], "attempts": [older]})
    ledger = AttemptLedger(store)
    assert ledger.tally(2, generation=1) == Tally(1, 2, losses=3, losses_in_all=3)
    [known] = ledger.attempts
    assert (known.ecs_spec, known.on_demand, known.reason, known.progress, known.progressed) == (
        "",
        False,
        "",
        None,
        None,
    )


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


class CountingStore(MemoryStore):
    writes = 0

    def set(self, key: str, value: Any) -> None:
        self.writes += 1
        super().set(key, value)


def test_a_loss_and_that_it_was_acted_upon_are_stored_together_or_not_at_all() -> None:
    store = CountingStore()
    ledger = AttemptLedger(store)
    ledger.put(attempt(0, job_id="dlc0"))
    before = store.writes
    with ledger.in_one_write():
        ledger.count_loss(1, 1)
        assert AttemptLedger(store).tally(1, 1).losses == 0
        ledger.change(0, consumed=True)
    assert store.writes == before + 1
    kept = AttemptLedger(store)
    assert (kept.tally(1, 1).losses, kept.get(0).consumed) == (1, True)
