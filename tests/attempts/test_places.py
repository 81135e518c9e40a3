"""What is stored of where a job was sent to, and when that is not here."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.attempts.ledger import STORE_KEY, Attempt, AttemptLedger, MemoryStore
from airflow_provider_pai_spot.attempts.places import NOWHERE, Place, hook_at
from airflow_provider_pai_spot.exceptions import PaiDlcError

HERE = Place("pai", "cn-hangzhou", "", "1")
VPC = "pai-dlc-vpc.cn-hangzhou.aliyuncs.com"


def sent(**place: Any) -> Attempt:
    return Attempt(number=0, generation=1, request_hash="h", job_id="dlc1", **place)


@pytest.mark.parametrize("attempt", [sent(place=HERE), sent()], ids=["a place", "none"])
def test_a_place_is_read_back(attempt: Attempt) -> None:
    store = MemoryStore()
    AttemptLedger(store).put(attempt)
    assert AttemptLedger(store).newest == attempt


def test_an_attempt_that_an_older_release_stored_has_no_place() -> None:
    stored = sent().to_dict()
    del stored["place"]
    assert Attempt.from_dict(stored).place == NOWHERE
    assert not NOWHERE.is_known


@pytest.mark.parametrize(
    "place", ["pai", None, [1, "", "", ""], ["a", "b", "c", "d", "e"], {"conn_id": "pai"}], ids=str
)
def test_a_place_that_somebody_edited_makes_the_store_count_as_lost(place: Any) -> None:
    store = MemoryStore()
    AttemptLedger(store).put(sent(place=HERE))
    store.get(STORE_KEY)["attempts"][0]["place"] = place
    assert AttemptLedger(store).is_blank


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (HERE, True),
        (HERE._replace(workspace_id="2"), True),
        (HERE._replace(endpoint=VPC), True),
        (HERE._replace(region_id="cn-beijing"), False),
        (HERE._replace(conn_id="other"), False),
        (Place("pai", "", VPC), False),
    ],
    ids=str,
)
def test_where_a_job_id_means_the_same(other: Place, same: bool) -> None:
    assert HERE.has_same_jobs_as(other) is other.has_same_jobs_as(HERE) is same


@pytest.mark.parametrize(
    ("connection", "place", "reached"),
    [
        ("pai-dlc://?region_id=cn-beijing", HERE, True),
        (f"pai-dlc://{VPC}", HERE, True),
        (f"pai-dlc://{VPC}", Place("pai", "", VPC), True),
        ("pai-dlc://pai-dlc.cn-beijing.aliyuncs.com", HERE, False),
        ("pai-dlc://?region_id=cn-beijing", Place("pai", "", VPC), False),
        ("pai-dlc://10.0.0.1:8080", Place("pai", "cn-hangzhou", "10.0.0.1:8080"), True),
        ("pai-dlc://10.0.0.2:8080", Place("pai", "cn-hangzhou", "10.0.0.1:8080"), False),
    ],
)
def test_a_place_is_reached_only_if_the_connection_leads_there(
    monkeypatch: pytest.MonkeyPatch, connection: str, place: Place, reached: bool
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PAI", connection)
    if reached:
        assert hook_at(place).region_id in (place.region_id, "cn-hangzhou")
    else:
        with pytest.raises(PaiDlcError, match="speaks to"):
            hook_at(place)
