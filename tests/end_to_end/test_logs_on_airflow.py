"""Copied logs on a real Airflow: the triggerer is killed while it copies, then the job is lost, and nothing with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from airflow_provider_pai_spot.cli.demo.airflow_processes import LocalAirflow
from airflow_provider_pai_spot.emulator import DlcEmulator, JobPlan

DAG_ID, RUN_ID = "log_copying", "logs"
PATIENCE = 600.0
LOST = tuple(f"lost {n // 2}" for n in range(1_200))  # two equal lines a second
KEPT = tuple(f"kept {n // 2}" for n in range(40))
WATCHING = tuple(f"watching {n}" for n in range(20))
_COPIED = re.compile(r"\[(worker-0|worker-1|aimaster-0)\] (\S+Z)  (.*)")


def copied(log: str) -> dict[str, list[str]]:
    pods: dict[str, list[str]] = {}
    for pod, _, text in _COPIED.findall(log):
        pods.setdefault(pod, []).append(text)
    return pods


def test_each_line_is_there_once_after_a_killed_triggerer_and_a_loss(
    airflow_server: LocalAirflow, scripted_cloud: DlcEmulator, eventually: Callable[..., bool]
) -> None:
    client, control = airflow_server.client, scripted_cloud.control
    secret = scripted_cloud.access_key_secret
    control.plan(JobPlan(run_seconds=600, logs=LOST, aimaster_logs=("watching",)), match={"display_name": RUN_ID})
    control.plan(
        JobPlan(run_seconds=20, logs=(*KEPT, f"the key is {secret}"), aimaster_logs=WATCHING),
        match={"display_name": RUN_ID},
    )
    client.wait_for_dag(DAG_ID)
    client.trigger(DAG_ID, run_id=RUN_ID)

    def note() -> Any:
        return client.xcom(DAG_ID, RUN_ID, "train", "pai_spot_log")

    def lines() -> int:
        return len(copied(client.task_log(DAG_ID, RUN_ID, "train")).get("worker-1", []))

    def jobs() -> list[dict[str, Any]]:
        return [job for job in control.jobs() if job["DisplayName"] == RUN_ID]

    def just_noted() -> bool:
        """A look is over, its lines have arrived, and the next look is seconds away."""
        before = note()
        return eventually(lambda: note() != before and note()["copying"] is None)

    assert eventually(lambda: lines() >= 20)
    assert just_noted()
    airflow_server.kill_component("triggerer")
    before = lines()
    airflow_server.start_component("triggerer")
    assert eventually(lambda: lines() >= before + 20)
    control.revoke(jobs()[0]["JobId"])
    assert client.wait_for_run(DAG_ID, RUN_ID, PATIENCE) == "success"

    log = client.task_log(DAG_ID, RUN_ID, "train")
    lost, kept = jobs()
    ran = datetime.fromisoformat(lost["GmtFinishTime"]) - datetime.fromisoformat(lost["GmtRunningTime"])
    shown = copied(log)
    for pod in ("worker-0", "worker-1"):
        of_lost = [text for text in shown[pod] if text.startswith("lost")]
        assert of_lost == [*LOST[: len(of_lost)]]
        assert abs(len(of_lost) - 2 * ran.total_seconds()) <= 3
        assert shown[pod][len(of_lost) :] == [*KEPT, "the key is ***"]
    assert shown["aimaster-0"] == ["watching", *WATCHING]
    assert log.count("Airflow keeps no lines of") == 1
    assert "here twice" not in log
    assert (kept["Status"], "cannot" in log) == ("Succeeded", False)
