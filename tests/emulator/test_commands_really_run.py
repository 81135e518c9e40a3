"""With `execute`, commands run as local processes and their exit code is the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator, Phases

QUICK = Phases(creating=0.01, queuing=0.01, bidding=0.01, env_preparing=0.01, restarting=0.01, stopping=0.01)
WAIT_FOR_TERM = "trap 'sleep 0.4; echo saved; exit 143' TERM; echo ready; while :; do sleep 0.05; done"


@pytest.fixture
def running(tmp_path: Path) -> Any:
    with DlcEmulator(execute=True, root=tmp_path / "root", phases=QUICK) as emulator:
        yield emulator


@pytest.fixture
def remote(running: Any, sdk_for: Any) -> Any:
    return sdk_for(running)


def logs(remote: Any, pod: Any) -> list[str]:
    job_id = pod["PodId"].split("-")[0]
    request = remote.models.GetPodLogsRequest(pod_uid=pod["PodUid"])
    lines = remote.client.get_pod_logs(job_id, pod["PodId"], request).body.logs
    return [line[21:] for line in lines]


def wait_for_line(running: Any, job_id: Any, text: Any) -> None:
    job = running.control._service.find(job_id)
    said = lambda: any(line == text for pod in job.pods for _, line in pod.lines)  # noqa: E731 - read once, here
    assert running.control._simulation.timeline.wait_for(said, 30)


def pods(running: Any, job_id: Any) -> Any:
    return running.control.job(job_id)["Pods"]


def test_a_command_runs_and_its_output_is_the_log(running: Any, remote: Any, body: Any) -> None:
    job_id = remote.create(body(UserCommand="echo hello $WHO", Envs={"WHO": "world"}))
    assert running.control.wait_for(job_id, ["Succeeded", "Failed"], 30) == "Succeeded"
    assert logs(remote, pods(running, job_id)[0]) == ["hello world"]


def test_a_failing_command_fails_the_job(running: Any, remote: Any, body: Any) -> None:
    job_id = remote.create(body(UserCommand="exit 7"))
    assert running.control.wait_for(job_id, ["Succeeded", "Failed"], 30) == "Failed"
    assert pods(running, job_id)[0]["StatusDetail"]["ExitCode"] == 7


def test_every_pod_knows_its_rank(running: Any, remote: Any, body: Any) -> None:
    command = "echo $RANK of $WORLD_SIZE at $MASTER_ADDR"
    job_id = remote.create(body(pods=2, UserCommand=command))
    running.control.wait_for(job_id, "Succeeded", 30)
    said = [logs(remote, pod) for pod in pods(running, job_id)]
    assert said == [["0 of 2 at 127.0.0.1"], ["1 of 2 at 127.0.0.1"]]


def test_one_failing_pod_ends_the_others(running: Any, remote: Any, body: Any) -> None:
    command = 'if [ "$RANK" = 1 ]; then exit 3; fi; sleep 600'
    job_id = remote.create(body(pods=2, UserCommand=command))
    assert running.control.wait_for(job_id, ["Succeeded", "Failed"], 30) == "Failed"


def test_a_revoked_command_gets_sigterm_and_its_last_words_are_kept(running: Any, remote: Any, body: Any) -> None:
    job_id = remote.create(body(UserCommand=WAIT_FOR_TERM))
    running.control.wait_for(job_id, "Running", 30)
    wait_for_line(running, job_id, "ready")
    running.control.revoke(job_id)
    running.control.wait_for(job_id, "Failed", 30)
    (pod,) = pods(running, job_id)
    assert pod["SubStatus"] == "Evicted"
    said = logs(remote, pod)
    assert (said[0], said[-1]) == ("ready", "saved")


def test_a_stopped_command_is_ended_before_the_job_is_stopped(running: Any, remote: Any, body: Any) -> None:
    job_id = remote.create(body(UserCommand=WAIT_FOR_TERM))
    running.control.wait_for(job_id, "Running", 30)
    wait_for_line(running, job_id, "ready")
    remote.stop(job_id)
    running.control.wait_for(job_id, "Stopped", 30)
    said = logs(remote, pods(running, job_id)[0])
    assert (said[0], said[-1]) == ("ready", "saved")


def test_a_command_that_ignores_sigterm_is_killed_after_its_grace(running: Any, remote: Any, body: Any) -> None:
    command = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    job_id = remote.create(body(UserCommand=command, Settings={"TerminationGracePeriodSeconds": 0}))
    running.control.wait_for(job_id, "Running", 30)
    wait_for_line(running, job_id, "ready")
    running.control.revoke(job_id)
    assert running.control.wait_for(job_id, "Failed", 30) == "Failed"


def test_aimaster_runs_the_command_again_on_the_same_mounts(running: Any, remote: Any, aimaster_body: Any) -> None:
    source = {"Uri": "oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/p/", "MountPath": "/mnt/data"}
    command = "cd /mnt/data; if [ -e step ]; then cat step; exit 0; fi; echo 41 > step; echo ready; sleep 600"
    aimaster_body["JobSpecs"][0]["PodCount"] = 1
    job_id = remote.create({**aimaster_body, "UserCommand": command, "DataSources": [source]})
    running.control.wait_for(job_id, "Running", 30)
    wait_for_line(running, job_id, "ready")
    running.control.revoke(job_id)
    assert running.control.wait_for(job_id, ["Succeeded", "Failed"], 30) == "Succeeded"
    pod = pods(running, job_id)[0]
    assert logs(remote, pod) == ["41"]
    assert logs(remote, pod["HistoryPods"][0] | {"PodId": pod["PodId"]}) == ["ready"]


def test_an_unsigned_request_is_refused(running: Any, sdk_for: Any, body: Any) -> None:
    stranger = sdk_for(running, {"access_key_id": "nobody", "access_key_secret": "x"})
    with pytest.raises(Exception, match=r"InvalidAccessKeyId|nobody"):
        stranger.create(body())
    assert running.control.jobs() == []


def test_processes_end_with_the_emulator(tmp_path: Path, sdk_for: Any, body: Any) -> None:
    alive = tmp_path / "alive"
    with DlcEmulator(execute=True, phases=QUICK) as emulator:
        sdk = sdk_for(emulator)
        command = f"trap 'rm {alive}; exit 143' TERM; touch {alive}; echo ready; while :; do sleep 0.05; done"
        job_id = sdk.create(body(UserCommand=command))
        emulator.control.wait_for(job_id, "Running", 30)
        wait_for_line(emulator, job_id, "ready")
        assert alive.exists()
    assert not alive.exists()
