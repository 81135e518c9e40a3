"""From a rendered operator to the body that attempt 0 would send, with marks where a value comes later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from airflow_provider_pai_spot.attempts.bodies import attempt_body, first_attempt
from airflow_provider_pai_spot.attempts.identity import Owner, TaskIdentity
from airflow_provider_pai_spot.cli.plan.unknown import KNOWN_AT_RUN_TIME, Unknown
from airflow_provider_pai_spot.dlc.arguments import FIELDS
from airflow_provider_pai_spot.dlc.body import CHECKPOINT_MOUNT, request_size
from airflow_provider_pai_spot.dlc.job_request import InvalidJobRequest, JobRequest
from airflow_provider_pai_spot.dlc.stand_ins import with_stand_ins
from airflow_provider_pai_spot.exceptions import SpotSubmissionRefused
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.operators.spot_job import JOB_ARGUMENTS, SubmitSpotJobOperator

_CHECKPOINT_STAND_IN = "oss://known-at-run-time/"
_DECIDE_BIDS = {"spot_discount_limit", "spot_price_limit", "job_specs", "job_overrides"}
_ROLE_KEYS = {
    "image": "Image",
    "ecs_spec": "EcsSpec",
    "pod_count": "PodCount",
    "spot_discount_limit": "SpotSpec",
    "spot_price_limit": "SpotSpec",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """
    What would be sent.

    :param body: CreateJob's body, not masked; marks stand where a value is known at run time.
    :param size: bytes, as DLC's limit counts them, without what is known at run time.
    :param bids_known: whether the request's bids are the task's own.
    """

    request: JobRequest
    body: dict[str, Any]
    size: int
    bids_known: bool


def draft(operator: SubmitSpotJobOperator, hook: PaiDlcHook, identity: TaskIdentity, unknown: Unknown) -> Draft:
    """
    Return the body of attempt 0, made by the operator itself.

    :raises SpotSubmissionRefused: the arguments cannot work, whatever the unknown ones turn out to be.
    :raises InvalidJobRequest: tags and variables of the attempt make it larger than DLC takes.
    """
    request = _request(operator, hook, identity, unknown)
    body = attempt_body(
        request,
        identity,
        first_attempt(request, identity, generation=operator.retries or 0),
        owner=operator_owner(operator),
        resumes=False,
    )
    size = request_size(body)
    for name in unknown.arguments:
        _mark(body, name)
    return Draft(request=request, body=body, size=size, bids_known=not _DECIDE_BIDS.intersection(unknown.arguments))


def operator_owner(operator: SubmitSpotJobOperator) -> Owner:
    """Return whose end also ends the job."""
    return Owner.TASK if operator.wait_for_completion else Owner.RUN


def _request(operator: SubmitSpotJobOperator, hook: PaiDlcHook, identity: TaskIdentity, unknown: Unknown) -> JobRequest:
    """An argument with marks inside may not pass the checks; then all of it is replaced by what does."""
    _stand_in(operator, unknown)
    try:
        return operator.request(identity, hook)
    except SpotSubmissionRefused as refusal:
        if not unknown.parts:
            raise _hinted(refusal, unknown) from None
    for name in list(unknown.parts):
        unknown.forget_parts(name)
    _stand_in(operator, unknown)
    try:
        return operator.request(identity, hook)
    except (SpotSubmissionRefused, InvalidJobRequest) as refusal:
        raise _hinted(refusal, unknown) from None


def _hinted(refusal: Exception, unknown: Unknown) -> SpotSubmissionRefused:
    hint = " (job_overrides, known at run time, may mend it)" if "job_overrides" in unknown.arguments else ""
    return SpotSubmissionRefused(f"{refusal}{hint}")


def _stand_in(operator: SubmitSpotJobOperator, unknown: Unknown) -> None:
    """Replace unknown arguments by values that pass every check, as a DAG parse does."""
    at_run_time = set(unknown.arguments).intersection(JOB_ARGUMENTS)
    if not at_run_time:
        return
    given = {name: getattr(operator, name) for name in JOB_ARGUMENTS if name not in at_run_time}
    arguments = with_stand_ins(given, at_run_time)
    if "checkpoint_uri" in at_run_time:
        arguments["checkpoint_uri"] = _CHECKPOINT_STAND_IN
    for name in JOB_ARGUMENTS:
        setattr(operator, name, arguments.get(name))


def _mark(body: dict[str, Any], argument: str) -> None:
    """Put the mark where an unknown argument's value goes."""
    if argument in _MARKERS:
        _MARKERS[argument](body)
    elif argument in _ROLE_KEYS:
        if isinstance(body["JobSpecs"], list):
            body["JobSpecs"][0][_ROLE_KEYS[argument]] = KNOWN_AT_RUN_TIME
    elif argument in FIELDS:
        body[FIELDS[argument][0]] = KNOWN_AT_RUN_TIME


def _mark_inside(key: str) -> Callable[[dict[str, Any]], None]:
    """The attempt's own entries of a mapping are known all the same."""

    def mark(body: dict[str, Any]) -> None:
        body[key] = {KNOWN_AT_RUN_TIME: KNOWN_AT_RUN_TIME, **(body.get(key) or {})}

    return mark


def _mark_roles(body: dict[str, Any]) -> None:
    body["JobSpecs"] = KNOWN_AT_RUN_TIME


def _mark_mounts(body: dict[str, Any]) -> None:
    body["DataSources"] = [KNOWN_AT_RUN_TIME, *(body.get("DataSources") or [])]


def _mark_checkpoints(body: dict[str, Any]) -> None:
    for source in body["DataSources"]:
        if isinstance(source, dict) and source.get("MountPath") == CHECKPOINT_MOUNT:
            source["Uri"] = KNOWN_AT_RUN_TIME


def _mark_overrides(body: dict[str, Any]) -> None:
    body[KNOWN_AT_RUN_TIME] = "job_overrides may add or replace any key"


_MARKERS: Final[dict[str, Callable[[dict[str, Any]], None]]] = {
    "envs": _mark_inside("Envs"),
    "settings": _mark_inside("Settings"),
    "job_specs": _mark_roles,
    "data_sources": _mark_mounts,
    "checkpoint_uri": _mark_checkpoints,
    "job_overrides": _mark_overrides,
}
