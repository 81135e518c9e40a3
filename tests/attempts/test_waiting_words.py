"""The line on an unusual wait: what it says of market, stock, quota, reasons and events, and what it leaves out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.attempts.waiting_words import Findings, newest, waiting_line, wishes_of
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.exceptions import PaiDlcRefused, PaiDlcUnavailable
from airflow_provider_pai_spot.market import read_offers

NOW = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)
TEN_MINUTES_AGO = (NOW - timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
TYPE = "ecs.gn7i-c8g1.2xlarge"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


def role(instance_type: str = TYPE, **spot: Any) -> dict[str, Any]:
    return {"Type": "Worker", "EcsSpec": instance_type, **({"SpotSpec": spot} if spot else {})}


def waiting(*roles: dict[str, Any], status: str = "Queuing", **fields: Any) -> Job:
    job = {"JobId": "dlc1", "Status": status, "GmtCreateTime": TEN_MINUTES_AGO, "JobSpecs": list(roles)}
    return Job({**job, "ResourceType": "ECS", **fields})


def offered(instance_type: str = TYPE, **fields: Any) -> Findings:
    item = {"InstanceType": instance_type, "IsAvailable": True, "SpotStockStatus": "WithStock", **fields}
    return Findings(offers=read_offers([item]))


BID_OF_40 = role(SpotDiscountLimit=0.4)


@pytest.mark.parametrize(
    ("job", "found", "said"),
    [
        (
            waiting(BID_OF_40),
            offered(NonProtectSpotDiscount=0.55),
            f"{TYPE} costs 0.55 of list price, above the bid of 0.4, spot stock is left",
        ),
        (
            waiting(BID_OF_40),
            offered(NonProtectSpotDiscount=0.4, SpotStockStatus="NoStock"),
            f"{TYPE} costs 0.4 of list price, within the bid of 0.4, there is no spot stock",
        ),
        (
            waiting(BID_OF_40),
            offered(NonProtectSpotDiscount=0.3, SpotStockStatus=None, IsAvailable=False),
            (
                f"{TYPE} costs 0.3 of list price, within the bid of 0.4, spot stock is not shown, nor is it "
                "available on demand"
            ),
        ),
        (
            waiting(role("ml.gu7xf.8xlarge-gu108", SpotDiscountLimit=0.4), status="Bidding", ResourceType="Lingjun"),
            offered("ml.gu7xf.8xlarge-gu108", NonProtectSpotDiscount=0.3),
            (
                "ml.gu7xf.8xlarge-gu108 costs 0.3 of list price now (its average decides), within the bid of 0.4, spot "
                "stock is left"
            ),
        ),
        (
            waiting(role(SpotPriceLimit=0.011)),
            offered(NonProtectSpotDiscount=0.3),
            (
                f"{TYPE} costs 0.3 of list price (the bid is 0.011 CNY per minute, and DLC shows no list price to "
                "compare with), spot stock is left"
            ),
        ),
        (
            waiting(role()),
            offered(NonProtectSpotDiscount=0.3),
            f"{TYPE} costs 0.3 of list price (DLC does not show the bid), spot stock is left",
        ),
        (waiting(BID_OF_40), offered(), f"{TYPE} shows no spot price, spot stock is left"),
        (waiting(BID_OF_40), offered("ecs.other"), f"ListEcsSpecs does not show {TYPE}"),
        (waiting({"EcsSpec": {}}), offered(), "DLC does not show its instance types"),
        (
            waiting(BID_OF_40, role("ecs.g7.xlarge")),
            offered("ecs.g7.xlarge"),
            f"ListEcsSpecs does not show {TYPE}; ecs.g7.xlarge is wanted on demand",
        ),
        (
            waiting(BID_OF_40),
            Findings(trouble=PaiDlcRefused("ListEcsSpecs: HTTP 403 Forbidden.RAM.")),
            "without prices, since ListEcsSpecs was refused (ListEcsSpecs: HTTP 403 Forbidden.RAM.)",
        ),
        (
            waiting(BID_OF_40),
            Findings(trouble=PaiDlcUnavailable("connection reset")),
            "prices could not be read (connection reset)",
        ),
        (
            waiting(BID_OF_40, ResourceId="quota1abc"),
            Findings(),
            "it queues for quota quota1abc, which the PAI console can diagnose",
        ),
        (
            waiting(BID_OF_40, ResourceId="quota1abc"),
            Findings(diagnosis={"ResourceDiagnosis": {"UserLimit": {"Status": "Failed"}}}),
            "in quota quota1abc the limit of one user is reached",
        ),
        (
            waiting(BID_OF_40, ResourceId="quota1abc"),
            Findings(quota_trouble=PaiDlcRefused("not sent: no studio_endpoint")),
            "it queues for quota quota1abc, which the PAI console can diagnose (not sent: no studio_endpoint)",
        ),
        (
            waiting(BID_OF_40, ReasonCode="JobEnqueued", ReasonMessage="PyTorchJob dlc1\n is enqueued."),
            Findings(),
            "DLC says JobEnqueued: PyTorchJob dlc1 is enqueued.",
        ),
        (
            waiting(BID_OF_40),
            Findings(events=["2026-12-01 05:50:00 created", "2026-12-01 05:51:00 spot bid too low"]),
            "newest event: 2026-12-01 05:51:00 spot bid too low",
        ),
        (
            waiting(BID_OF_40, status="EnvPreparing", ResourceId="quota1abc"),
            Findings(pod_events=["Failed to pull image: ErrImagePull"]),
            (
                "it has its machines, so what it waits for is its image, its mounts or its checks; newest pod event: "
                "Failed to pull image: ErrImagePull"
            ),
        ),
        (waiting(BID_OF_40), Findings(), None),
    ],
    ids=lambda value: "" if not isinstance(value, str) else value[:60],
)
def test_each_finding_has_its_words(job: Job, found: Findings, said: str | None) -> None:
    head = f"dlc1 has been waiting for 10 min and is {job.status}"
    assert waiting_line(job, NOW, found) == (head if said is None else f"{head}; {said}")


def test_after_a_restart_the_wait_counts_from_there() -> None:
    history = [
        {"Status": "Running", "StartTime": "2026-11-30T20:00:00Z", "EndTime": "2026-11-30T21:57:00Z"},
        {"Status": "Restarting", "StartTime": "2026-11-30T21:57:00Z", "EndTime": "2026-11-30T21:58:00Z"},
        {"Status": "Bidding", "StartTime": "2026-11-30T21:58:00Z", "EndTime": ""},
    ]
    job = waiting(BID_OF_40, status="Bidding", StatusHistory=history)
    assert waiting_line(job, NOW, Findings()) == "dlc1 has been waiting for 3 min and is Bidding"


def test_roles_that_want_the_same_are_named_once() -> None:
    assert len(wishes_of(waiting(BID_OF_40, BID_OF_40, role(SpotDiscountLimit=0.5)))) == 2


def test_a_long_text_of_dlc_is_cut() -> None:
    line = waiting_line(waiting(BID_OF_40, ReasonMessage="x" * 5000), NOW, Findings(events=["y" * 5000]))
    assert len(line) < 700
    assert "\n" not in line


def test_a_secret_that_dlc_quotes_is_masked() -> None:
    quoted = "ErrImagePull https://robot:planted@hub/x token=planted"
    line = waiting_line(waiting(BID_OF_40, ReasonMessage=quoted), NOW, Findings(events=[quoted]))
    assert line.count("ErrImagePull https://***@hub/x token=***") == 2
    assert "planted" not in line


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], ""),
        (["a", "b"], "b"),
        (["2026-12-01 05:51:00 b", "2026-12-01 05:50:00 a"], "2026-12-01 05:51:00 b"),
        (["2026-12-01 05:50:00 a", "2026-12-01 05:50:00 b"], "2026-12-01 05:50:00 b"),
        (["2026-12-01 05:51:00 b", "no time"], "no time"),
    ],
    ids=["none", "without times", "newest first", "the same second", "one without"],
)
def test_the_newest_event(lines: list[str], expected: str) -> None:
    assert newest(lines) == expected


@given(
    fields=st.dictionaries(st.sampled_from(["JobSpecs", "ResourceId", "ReasonCode", "ReasonMessage"]), JSON),
    items=st.lists(JSON),
    events=st.lists(st.text()),
)
def test_nothing_that_dlc_may_show_is_an_error(fields: dict[str, Any], items: list[Any], events: list[str]) -> None:
    line = waiting_line(waiting(**fields), NOW, Findings(offers=read_offers(items), events=events))
    assert line.startswith("dlc1 has been waiting for 10 min")
    assert len(line.splitlines()) == 1
