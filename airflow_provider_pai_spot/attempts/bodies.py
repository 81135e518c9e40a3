"""The CreateJob body of one attempt: the request, marked as this task instance's; what `pai-spot plan` shows, too."""

from __future__ import annotations

from typing import Any

from airflow_provider_pai_spot.attempts.identity import (
    ENV_ATTEMPT,
    ENV_CHECKPOINT_DIR,
    ENV_RESUME,
    Owner,
    TaskIdentity,
    attempt_tags,
)
from airflow_provider_pai_spot.attempts.ledger import Attempt
from airflow_provider_pai_spot.dlc.job_request import JobRequest
from airflow_provider_pai_spot.dlc.terms import AS_REQUESTED, JobTerms

LEDGER_TO_COME = "made-at-submission"
"""Stands for the ledger's id in a body that is only shown."""


def attempt_body(
    request: JobRequest,
    identity: TaskIdentity,
    attempt: Attempt,
    *,
    owner: Owner,
    resumes: bool,
    terms: JobTerms = AS_REQUESTED,
) -> dict[str, Any]:
    """
    Return what CreateJob is sent for one attempt.

    :param resumes: whether an earlier attempt used the same checkpoint folder.
    :param terms: what this attempt is submitted with instead of what the request asks for.
    :raises InvalidJobRequest: the request grew over DLC's limit, or the bid cannot be made here.
    """
    tags = identity.tags | attempt_tags(
        attempt=attempt.number,
        generation=attempt.generation,
        request_hash=attempt.request_hash,
        owner=owner,
        ledger=attempt.ledger,
        on_demand=terms.on_demand,
    )
    envs = attempt_envs(identity, attempt, checkpoint_mount=request.checkpoint_mount, resumes=resumes)
    return request.with_attempt(tags, envs, terms)


def attempt_envs(
    identity: TaskIdentity, attempt: Attempt, *, checkpoint_mount: str | None, resumes: bool
) -> dict[str, str]:
    """
    Return the variables that tell the command who it works for, which attempt it is and where checkpoints are.

    :param checkpoint_mount: where the checkpoint folder is mounted, None without one.
    """
    envs = {**identity.envs, ENV_ATTEMPT: str(attempt.number), ENV_RESUME: str(int(resumes))}
    if checkpoint_mount:
        envs[ENV_CHECKPOINT_DIR] = checkpoint_folder(checkpoint_mount, identity, attempt)
    return envs


def checkpoint_folder(below: str, identity: TaskIdentity, attempt: Attempt) -> str:
    """
    Return where an attempt keeps its checkpoints.

    :param below: where `checkpoint_uri` is mounted, or the URI itself.
    """
    folder = f"{below.rstrip('/')}/{identity.checkpoint_subfolder}"
    return f"{folder}/g{attempt.checkpoint_folder}" if attempt.checkpoint_folder > 1 else folder


def first_attempt(request: JobRequest, identity: TaskIdentity, *, generation: int) -> Attempt:
    """
    Return the attempt a task instance begins with.

    :param generation: `ti.max_tries`, which is the task's `retries` until somebody clears it.
    """
    return Attempt(
        number=0,
        generation=generation,
        request_hash=request.request_hash,
        key_hashes=request.key_hashes,
        bid=str(request.bid),
        ecs_spec=request.ecs_spec,
        namespace=identity.namespace,
        ledger=LEDGER_TO_COME,
    )
