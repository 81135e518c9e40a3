from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_pai_spot.cli.jobs.command import COLUMNS, job_statuses, time_span
from airflow_provider_pai_spot.cli.tables import aligned
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan

Call = Callable[..., Any]
endless = pytest.mark.dlc_emulator(default_plan=JobPlan(run_seconds=None))


def _listed(said: Any) -> list[dict[str, Any]]:
    assert said.code == 0, said.err
    return json.loads(said.out)


@endless
def test_each_job_is_a_line_that_says_whose_it_is(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    job_id = submitted("train", map_index=3)
    cloud.control.wait_for(job_id, "Running")
    said = pai_spot("jobs")
    header, line, total = said.out.splitlines()
    assert header.split() == [name.upper() for name in COLUMNS]
    assert line.split()[:7] == [job_id, "Running", "nightly", "manual__1", "train", "3", "0"]
    assert "0.4 of list price" in line
    assert line.endswith("task")
    assert total.startswith("1 job: 1 Running;")
    assert "namespace 'team-a'" in total


@endless
def test_json_has_numbers_and_units_in_its_names(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    job_id = submitted("train")
    cloud.control.wait_for(job_id, "Running")
    (job,) = _listed(pai_spot("jobs", "--json"))
    assert {key: job[key] for key in ("job_id", "map_index", "attempt", "bids", "owner", "dag_id")} == {
        "job_id": job_id,
        "map_index": -1,
        "attempt": 0,
        "bids": ["0.4 of list price"],
        "owner": "task",
        "dag_id": "nightly",
    }
    assert isinstance(job["seconds_running"], float)


@pytest.mark.dlc_emulator(clock="manual")
def test_the_newest_job_comes_first(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    older = submitted("one")
    cloud.control.advance(90)
    newer = submitted("two")
    assert [job["job_id"] for job in _listed(pai_spot("jobs", "--json"))] == [newer, older]


@pytest.mark.parametrize(
    ("options", "expected"),
    [((), {"train"}), (("--all-namespaces",), {"train", "others"})],
    ids=["this installation", "every installation"],
)
def test_jobs_of_other_installations_show_only_on_request(
    pai_spot: Call, submitted: Call, options: tuple[str, ...], expected: set[str]
) -> None:
    submitted("train")
    submitted("others", namespace="team-b")
    assert {job["task_id"] for job in _listed(pai_spot("jobs", "--json", *options))} == expected


def test_jobs_that_airflow_did_not_make_never_show(pai_spot: Call, cloud: DlcEmulator, submitted: Call) -> None:
    from airflow_provider_pai_spot.dlc.job_request import build_job_request
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

    ours = submitted("train")
    by_hand = {"image": "i", "user_command": "c", "ecs_spec": "ecs.g7.xlarge", "spot_discount_limit": 0.4}
    PaiDlcHook().create_job(build_job_request({**by_hand, "display_name": "mine", "workspace_id": "1"}).body)
    assert len(cloud.control.jobs()) == 2
    assert [job["job_id"] for job in _listed(pai_spot("jobs", "--json", "--all-namespaces"))] == [ours]


@endless
@pytest.mark.parametrize("wanted", ["Stopped", "stopped", "Stopped,Failed"])
def test_only_the_wanted_statuses_show(pai_spot: Call, cloud: DlcEmulator, submitted: Call, wanted: str) -> None:
    over, _running = submitted("one"), submitted("two")
    cloud.control.set_status(over, "Stopped")
    assert [job["job_id"] for job in _listed(pai_spot("jobs", "--json", "--status", wanted))] == [over]


@pytest.mark.dlc_emulator(behaviours={"settings_in_list": False, "echo_spot_spec": False})
def test_what_a_list_leaves_out_is_asked_of_the_job_itself(pai_spot: Call, submitted: Call) -> None:
    """ListJobs is not documented to fill Settings."""
    job_id = submitted("train")
    (job,) = _listed(pai_spot("jobs", "--json"))
    assert (job["job_id"], job["task_id"], job["attempt"], job["bids"]) == (job_id, "train", 0, [])


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["table", "json"])
def test_variables_and_keys_are_never_printed(
    pai_spot: Call, cloud: DlcEmulator, submitted: Call, options: tuple[str, ...]
) -> None:
    submitted(envs={"API_TOKEN": "planted-token-value", "AIRFLOW_CTX_OTHER": "planted-other-value"})
    said = pai_spot("jobs", *options)
    assert said.code == 0
    for secret in ("planted-token-value", "planted-other-value", cloud.access_key_secret, "API_TOKEN"):
        assert secret not in said.out + said.err


def test_no_jobs_is_said_in_words_and_an_empty_list_in_json(pai_spot: Call, cloud: DlcEmulator) -> None:
    assert cloud.control.jobs() == []
    assert pai_spot("jobs").out == "No jobs (namespace 'team-a', created within 7 d).\n"
    assert _listed(pai_spot("jobs", "--json")) == []


def test_a_refusal_of_dlc_is_one_line(pai_spot: Call, cloud: DlcEmulator) -> None:
    cloud.control.fault("ListJobs", "server_error", times=None, status=403, code="Forbidden.RAM")
    said = pai_spot("jobs")
    assert (said.code, said.out) == (1, "")
    assert "Forbidden.RAM" in said.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("7d", timedelta(days=7)),
        ("4w", timedelta(weeks=4)),
    ],
)
def test_spans_are_minutes_hours_days_and_weeks(text: str, expected: timedelta) -> None:
    assert time_span(text) == expected


def test_a_span_that_no_job_is_old_enough_for_is_refused(pai_spot: Call) -> None:
    said = pai_spot("jobs", "--since", "99999w")
    assert said.code == 2
    assert "five years at most" in said.err


def test_statuses_are_read_in_any_case_and_spelled_as_dlc_does() -> None:
    assert job_statuses(" running,ENVPREPARING ") == {"Running", "EnvPreparing"}


def test_a_table_off_the_terminal_is_aligned_and_never_cut() -> None:
    assert aligned(("a", "b"), [("x" * 200, "1"), ("y", "22")]).splitlines() == [
        "A" + " " * 201 + "B",
        "x" * 200 + "  1",
        "y" + " " * 201 + "22",
    ]
