"""DLC's JSON, spelled as GetJob and ListJobs spell it. Renders; decides nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from airflow_provider_pai_spot.emulator.behaviours import QUOTA_CHECKS, Behaviours
from airflow_provider_pai_spot.emulator.lifecycle import Status
from airflow_provider_pai_spot.emulator.record import Job, Pod, Restart, Transition

_ECHOED = ("CodeSource", "Description", "ElasticSpec", "Envs", "ThirdpartyLibDir", "ThirdpartyLibs", "UserCommand")
_END_FIELDS = {
    Status.SUCCEEDED: "GmtSuccessedTime",
    Status.FAILED: "GmtFailedTime",
    Status.STOPPED: "GmtStoppedTime",
}


def stamp(at: float) -> str:
    """Return a time as DLC writes it, `YYYY-MM-DDTHH:MM:SSZ`."""
    return _stamp(int(at))


@lru_cache(maxsize=100_000)
def _stamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_stamp(text: str) -> float:
    """Read a time as clients write it: ISO 8601, UTC if it names no zone. Raises ValueError."""
    when = datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def dated(at: float, text: str, offset_hours: float, gap: str = " ") -> str:
    """Return a line of an event list or a log: local time, a gap, the text."""
    local = datetime.fromtimestamp(at, UTC) + timedelta(hours=offset_hours)
    return f"{local:%Y-%m-%d %H:%M:%S}{gap}{text}"


def job_detail(job: Job, user_id: str, now: float, behaviours: Behaviours) -> dict[str, Any]:
    """Return a job as GetJob shows it, RequestId left out."""
    shown = _common(job, user_id, now, behaviours)
    used = len(job.restarts)
    shown["RestartTimes"] = f"{used}/{job.max_restarts}" if job.max_restarts else ""
    shown["RestartRecord"] = [_restart(restart) for restart in job.restarts]
    shown["Pods"] = [_pod(pod) for pod in job.pods]
    shown["Settings"] = _settings(job)
    return shown


def job_item(job: Job, user_id: str, now: float, behaviours: Behaviours) -> dict[str, Any]:
    """Return a job as ListJobs shows it."""
    shown = _common(job, user_id, now, behaviours)
    shown["RestartTimes"] = str(len(job.restarts)) if job.max_restarts else ""
    shown["GmtModifiedTime"] = stamp(job.modified_at)
    shown["IsDeleted"] = False
    shown["Username"] = user_id
    shown["NodeCount"] = str(sum(int(spec.get("PodCount") or 1) for spec in job.body["JobSpecs"]))
    shown["NodeNames"] = [pod.node for pod in job.pods]
    for source in shown["DataSources"]:
        source.pop("Uri", None)  # JobItem's DataSources have none
    if behaviours["settings_in_list"]:
        shown["Settings"] = _settings(job)
    if behaviours["pods_in_list"]:
        shown["Pods"] = [_pod(pod) for pod in job.pods]
    return shown


def _common(job: Job, user_id: str, now: float, behaviours: Behaviours) -> dict[str, Any]:
    body = job.body
    end = now if job.finished_at is None else job.finished_at
    return {
        "JobId": job.job_id,
        "DisplayName": job.display_name,
        "JobType": job.job_type,
        "Status": job.status,
        "SubStatus": job.sub_status,
        "ReasonCode": job.reason_code,
        "ReasonMessage": job.reason_message,
        "StatusHistory": [_transition(entry, behaviours) for entry in job.history],
        "WorkspaceId": job.workspace_id,
        "WorkspaceName": f"workspace-{job.workspace_id}",
        "UserId": user_id,
        "ClusterId": "emulator",
        "ResourceId": str(body.get("ResourceId") or ""),
        "ResourceLevel": "L1",
        "ResourceType": "Lingjun" if job.lingjun else "ECS",
        "Accessibility": str(body.get("Accessibility") or "PRIVATE"),
        "Priority": int(body.get("Priority") or 0),
        "JobMaxRunningTimeMinutes": int(body.get("JobMaxRunningTimeMinutes") or 0),
        "JobSpecs": _job_specs(body["JobSpecs"], behaviours),
        "DataSources": [_data_source(source) for source in body.get("DataSources") or []],
        "UserVpc": _user_vpc(body.get("UserVpc")),
        "JobReplicaStatuses": [],
        "Duration": int(end) - int(job.created_at),
        **{key: body[key] for key in _ECHOED if body.get(key) is not None},
        **_times(job),
    }


def _times(job: Job) -> dict[str, str]:
    """Only the times of what happened are shown."""
    times = {"GmtCreateTime": stamp(job.created_at)}
    if job.submitted_at is not None:
        times["GmtSubmittedTime"] = stamp(job.submitted_at)
    if job.running_at is not None:
        times["GmtRunningTime"] = stamp(job.running_at)
    if job.finished_at is not None:
        times["GmtFinishTime"] = stamp(job.finished_at)
        for status, field in _END_FIELDS.items():
            if job.status == status:
                times[field] = stamp(job.history[-1].started_at)
    return times


def _transition(entry: Transition, behaviours: Behaviours) -> dict[str, str]:
    if entry.shown is not None:
        return dict(entry.shown)
    shown = {"Status": entry.status, "StartTime": stamp(entry.started_at)}
    end = behaviours["open_history_end_time"] if entry.ended_at is None else stamp(entry.ended_at)
    if end is not None:
        shown["EndTime"] = end
    shown["ReasonCode"] = entry.reason_code
    shown["ReasonMessage"] = entry.reason_message
    if entry.ended_at is not None:
        entry.shown = shown
    return dict(shown)


def _job_specs(specs: list[dict[str, Any]], behaviours: Behaviours) -> list[dict[str, Any]]:
    hidden = () if behaviours["echo_spot_spec"] else ("SpotSpec", "ElasticSpotSpecs")
    return [{key: value for key, value in spec.items() if key not in hidden} for spec in specs]


def _data_source(source: dict[str, Any]) -> dict[str, str]:
    """MountAccess, Options and the rest do not come back."""
    return {key: str(source.get(key) or "") for key in ("DataSourceId", "MountPath", "Uri")}


def _user_vpc(vpc: dict[str, Any] | None) -> dict[str, Any]:
    """The request says ExtendedCIDRs, the answer ExtendedCidrs."""
    shown = dict(vpc or {})
    if "ExtendedCIDRs" in shown:
        shown["ExtendedCidrs"] = shown.pop("ExtendedCIDRs")
    return shown


def _settings(job: Job) -> dict[str, Any]:
    return {**job.settings, "Tags": dict(job.tags)}


def _pod(pod: Pod) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "PodId": pod.pod_id,
        "PodUid": pod.uid,
        "Type": pod.role,
        "Status": pod.status,
        "SubStatus": pod.sub_status,
        "Ip": pod.address,
        "NodeName": pod.node,
        "GmtCreateTime": stamp(pod.created_at),
        "HistoryPods": [_pod(former) for former in pod.history],
    }
    if pod.started_at is not None:
        shown["GmtStartTime"] = stamp(pod.started_at)
    if pod.finished_at is not None:
        shown["GmtFinishTime"] = stamp(pod.finished_at)
        shown["StatusDetail"] = {"ExitCode": pod.exit_code, "Reason": _exit_reason(pod), "Message": ""}
    return shown


def quota_diagnosis(job: Job, failing: str) -> dict[str, Any]:
    """Return a diagnosis as PAI Studio shows it, with one failing check or none; its numbers are made up."""
    full = {"Used": {"GPU": "144"}, "Limit": {"GPU": "144"}, "ExceedResources": ["GPU"]}
    checks: dict[str, Any] = {name: {"Status": "Succeeded"} for name in QUOTA_CHECKS}
    if failing:
        checks[failing] = {"Status": "Failed", **full}
    pods = sum(int(spec.get("PodCount") or 1) for spec in job.body["JobSpecs"])
    nodes = [{"Reason": "OutOfGPU", "Nodes": ["node-1", "node-2"]}] if failing else []
    return {
        "WorkloadId": job.job_id,
        "QuotaId": job.body["ResourceId"],
        "QueueStrategy": "FIFO",
        "ResourceDiagnosis": checks,
        "SchedulingDiagnosis": {
            "Status": "Failed" if failing else "Succeeded",
            "TaskNum": pods,
            "SchedulableNum": 0 if failing else pods,
            "UnschedulableNodes": nodes,
        },
    }


def _exit_reason(pod: Pod) -> str:
    return pod.exit_reason or ("Completed" if pod.exit_code == 0 else "Error")


def _restart(restart: Restart) -> dict[str, Any]:
    ended = restart.ended_at
    return {
        "JobRestartCount": restart.number,
        "OccurPhase": restart.phase,
        "OccurTime": stamp(restart.at),
        "Reason": restart.reason,
        "RestartDurationInSec": 0 if ended is None else int(ended - restart.at),
        "RestartFailReason": "",
        "RestartLevelType": restart.level,
        "RestartStatus": "Restarting" if ended is None else "Succeeded",
        "TriggerID": f"restart-{restart.number}",
        "DetailErrorInfoList": [
            {"Pod": pod, "ErrorCode": restart.reason, "TriggerRestart": True} for pod in restart.pods
        ],
    }
