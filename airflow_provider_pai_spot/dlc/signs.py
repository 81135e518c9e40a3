"""
The signs by which a job's end is told: one function a rule, each returning what it saw, a line each.

A line names DLC's fields and their values; it never holds Envs, a command or what a user's program wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.pods import EVICTED, Pod
from airflow_provider_pai_spot.dlc.redaction import LONGEST_TEXT, without_secrets
from airflow_provider_pai_spot.dlc.stamps import zoned_moment
from airflow_provider_pai_spot.dlc.status import JobStatus, Phase, phase_of
from airflow_provider_pai_spot.dlc.timeline import began_again_after
from airflow_provider_pai_spot.dlc.wording import IMAGE_PULL, MOUNT, NODE_PRESSURE, OUT_OF_MEMORY, taken_back

PERMANENT_EXIT_CODES: Final = frozenset({1, 2, 126, 127, 128, 139, 245, 255})
"""Exit codes that DLC's pages or its controller give to a program that failed by itself: it would fail again."""

SIGNAL_EXIT_CODES: Final = frozenset({129, 130, 131, 137, 138, 140, 143})
"""
Exit codes of a program that something else ended: 128 and the number of a signal that one process sends to another
(HUP, INT, QUIT, KILL, USR1, USR2, TERM). Not those of signals by which a program ends itself, such as 134 (ABRT, which
is how C++ and NCCL's watchdog give up), 135 (BUS), 136 (FPE) and 139 (SEGV).
"""

NOT_STARTED_REASONS: Final = frozenset(
    {"ContainerCannotRun", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"}
)
"""Kubernetes' reasons of a container whose command never ran."""

ENDED_FROM_OUTSIDE_REASONS: Final = frozenset({EVICTED, "NodeLost", "NodeShutdown", "Shutdown", "Terminated"})
"""Kubernetes' reasons of a pod that its machine ended, or that went with its machine."""

STOPPED_BY_USER_CODES: Final = frozenset({"JobStoppedByUser", "StoppedByUser"})

_TAKES_TO_END: Final = timedelta(minutes=1)
"""
How long before the end of an evicted pod its peers may fail of the same loss (assumed): a pod that is told to end has
30 seconds in Kubernetes, in which its peers lose it already.
"""

_OUTLIVED_AFTER: Final = timedelta(minutes=45)
"""
A peer that fails so long after an eviction does not fail of it (assumed): PyTorch gives up waiting for a lost peer
after 10 minutes with NCCL and 30 with Gloo, unless told otherwise.
"""

_COMES_LATE: Final = timedelta(seconds=15)
"""How long after a job's end an event may still tell of it (assumed): whole seconds, written by other components."""

_MAX_LINE, _LINE_LEFT, _BEFORE = 200, 160, 60
_PODS_NAMED = 3
_LATEST = datetime.max.replace(tzinfo=UTC)
_Find = Callable[[str], "re.Match[str] | None"]


@dataclass(frozen=True, slots=True)
class Scene:
    """
    What a verdict may rest on.

    :param spot: whether the job bid for spot capacity.
    :param events: lines DLC wrote; never lines of logs.
    """

    job: Job
    spot: bool
    events: tuple[str, ...] = ()


def not_over(scene: Scene) -> Sequence[str]:
    """The status is neither terminal nor `*Reserving`."""
    return () if scene.job.is_decided else (f"status {scene.job.status or 'absent'}",)


def succeeded(scene: Scene) -> Sequence[str]:
    """The status is a success, whatever happened on the way."""
    return _status_in(scene, JobStatus.SUCCEEDED, JobStatus.SUCCEEDED_RESERVING)


def stopped_at_time_limit(scene: Scene) -> Sequence[str]:
    """DLC's own time limit had passed when the job was stopped, and DLC does not say that a user did it."""
    if scene.job.status != JobStatus.STOPPED or scene.job.reason_code in STOPPED_BY_USER_CODES:
        return ()
    return [*_status_in(scene, JobStatus.STOPPED), *limit] if (limit := ran_into_time_limit(scene)) else ()


def stopped(scene: Scene) -> Sequence[str]:
    """Somebody stopped it."""
    return _status_in(scene, JobStatus.STOPPED)


def node_pressure(scene: Scene) -> Sequence[str]:
    """
    A pod was evicted because it, or its machine, ran short of disk, memory or processes.

    DLC's reason needs no word of an eviction where a pod's fields tell of one; a pod's own message counts where it is
    Kubernetes' reason that is Evicted, for then it is not the program's.
    """
    evicted = _evicted_for_good(scene.job)
    reason = scene.job.reason_message if evicted or taken_back(scene.job.reason_message) else ""
    messages = dict.fromkeys(pod.message[:LONGEST_TEXT] for pod in evicted if pod.reason == EVICTED)
    of_pods = [message for message in messages if NODE_PRESSURE.search(message)][:_PODS_NAMED]
    found = _matching([reason], NODE_PRESSURE, "ReasonMessage")
    return [*found, *_matching(of_pods, NODE_PRESSURE, "StatusDetail.Message")]


def spot_pod_evicted(scene: Scene) -> Sequence[str]:
    """A pod of a spot job ended as Evicted, at a time when that can have ended the job."""
    return pod_evicted(scene) if scene.spot else ()


def pod_evicted(scene: Scene) -> Sequence[str]:
    """A pod ended as Evicted, at a time when that can have ended the job."""
    return _lines(pod for pod in _workers(scene.job) if pod.is_evicted and _may_have_ended_it(scene.job, pod))


def spot_pod_evicted_before(scene: Scene) -> Sequence[str]:
    """An earlier incarnation of a spot job's pod was Evicted, and the job did not get over it."""
    if not scene.spot:
        return ()
    return _lines(pod for pod in _past_workers(scene.job) if pod.is_evicted and not _got_over(scene.job, pod))


def idle_quota_evicted(scene: Scene) -> Sequence[str]:
    """A job on idle quota lost it to the quota's owner: no market took it."""
    present = [pod for pod in _workers(scene.job) if _may_have_ended_it(scene.job, pod)]
    evicted = [pod for pod in (*present, *_past_workers(scene.job)) if pod.is_evicted]
    if scene.spot or not scene.job.uses_idle_quota or not evicted:
        return ()
    return (*_lines(evicted), "the job runs on idle quota (OversoldType) and bids for no spot capacity")


def invalid_parameter(scene: Scene) -> Sequence[str]:
    """DLC says that the request cannot work."""
    return _reason_code_is(scene, "InvalidParameter")


def resources_not_allocated(scene: Scene) -> Sequence[str]:
    """DLC says that it could not get the resources."""
    return _reason_code_is(scene, "ResourceAllocateFailed")


def out_of_memory(scene: Scene) -> Sequence[str]:
    """A pod was killed for its memory."""
    killed = _lines(pod for pod in _workers(scene.job) if OUT_OF_MEMORY.fullmatch(pod.reason))
    return killed or _matching([scene.job.reason_message], OUT_OF_MEMORY, "ReasonMessage")


def container_not_started(scene: Scene) -> Sequence[str]:
    """A container could not be made or its command not be executed."""
    return _lines(pod for pod in _workers(scene.job) if pod.reason in NOT_STARTED_REASONS)


def pod_not_admitted(scene: Scene) -> Sequence[str]:
    """A machine refused a pod that had been assigned to it."""
    return _lines(pod for pod in _workers(scene.job) if pod.reason == "UnexpectedAdmissionError")


def command_failed(scene: Scene) -> Sequence[str]:
    """The first pod to fail exited by itself, with a code that is known; pods killed afterwards are a consequence."""
    failed = _failed_by_themselves(scene.job)
    return _lines(failed) if any(pod.exit_code in PERMANENT_EXIT_CODES for pod in failed) else ()


def other_exit_code(scene: Scene) -> Sequence[str]:
    """The first pod to fail exited by itself, with a code of the program's own."""
    failed = _failed_by_themselves(scene.job)
    return () if any(pod.exit_code in PERMANENT_EXIT_CODES for pod in failed) else _lines(failed)


def image_not_pulled(scene: Scene) -> Sequence[str]:
    """The image could not be pulled; events count only if the job never ran, since pulls are tried again."""
    return _kept_from_starting(scene, IMAGE_PULL)


def not_mounted(scene: Scene) -> Sequence[str]:
    """Something could not be mounted; events count only if the job never ran, since mounts are tried again."""
    return _kept_from_starting(scene, MOUNT)


def spot_reason_code_evicted(scene: Scene) -> Sequence[str]:
    """A reason code says Evicted."""
    return _reason_code_is(scene, "JobEvicted") if scene.spot else ()


def spot_message_preempted(scene: Scene) -> Sequence[str]:
    """DLC's reason, in words, is that the resource was taken back."""
    return _taken_back([scene.job.reason_message], "ReasonMessage") if scene.spot else ()


def platform_fault(scene: Scene) -> Sequence[str]:
    """The reason is a JSON document, which is how failed mounts and pulls were reported."""
    return (_reason(scene.job),) if scene.job.reason_document else ()


def spot_event_preempted(scene: Scene) -> Sequence[str]:
    """An event tells of preemption, not of one that a restart has survived; one outside the last run tells nothing."""
    if not scene.spot or _times_run(scene.job) > 1 or scene.job.restart_times.used:
        return ()
    return _taken_back([line for line in scene.events if not _was_outside_last_run(scene.job, line)], "event")


def ran_into_time_limit(scene: Scene) -> Sequence[str]:
    """The job ran for as long as it was allowed to (timestamps are whole seconds, hence the one less)."""
    limit, ran = scene.job.max_running_seconds, scene.job.seconds_running()
    return (f"ran {ran:.0f} s, JobMaxRunningTimeMinutes allows {limit} s",) if limit and ran >= limit - 1 else ()


def aimaster_evicted(scene: Scene) -> Sequence[str]:
    """DLC's own helper was evicted and none of the workers was; nothing says that it runs on what was bid for."""
    return _lines(pod for pod in scene.job.pods if pod.is_aimaster and pod.is_evicted)


def ended_by_signal(scene: Scene) -> Sequence[str]:
    """A pod was ended by a signal, and nothing tells who sent it."""
    return _lines(pod for pod in _workers(scene.job) if pod.exit_code in SIGNAL_EXIT_CODES)


def pod_failed_in_place(scene: Scene) -> Sequence[str]:
    """A pod failed, DLC says of every failed one that it was not evicted, and Kubernetes does not say otherwise."""
    failed = [pod for pod in _workers(scene.job) if pod.has_failed]
    in_place = all(pod.sub_status == "Normal" and pod.reason not in ENDED_FROM_OUTSIDE_REASONS for pod in failed)
    return _lines(failed) if in_place else ()


def exit_codes(job: Job) -> Sequence[str]:
    """Return what the pods that ended badly exited with, DLC's own among them; no rule's sign."""
    return _lines(pod for pod in job.pods if pod.exit_code)


def deciding_exit_code(job: Job) -> int | None:
    """Return what the first worker that failed by itself exited with; one whose end has no time comes last."""
    first = min(_failed_by_themselves(job), key=lambda pod: pod.finished_at or _LATEST, default=None)
    return None if first is None else first.exit_code


def _got_over(job: Job, evicted: Pod) -> bool:
    """
    Whether the job ran again after a pod was evicted, so that its end has another reason.

    It did if it entered Running anew, or (AIMaster's Async mode; a Running that lasts through restarts) if another
    incarnation of the pod ran and no pod failed before that one began, as pods do that lose a peer.
    """
    later = [pod for pod in (*job.pods, *job.history_pods) if pod.pod_id == evicted.pod_id and not pod.is_evicted]
    if evicted.finished_at is None:
        return any(_is_own_failure(pod) for pod in later if not pod.is_history)
    if began_again_after(job.timeline, evicted.finished_at):
        return True
    return any(_took_over(pod, evicted) and not _failed_meanwhile(job, evicted, pod) for pod in later)


def _took_over(pod: Pod, evicted: Pod) -> bool:
    if pod.started_at is None or evicted.finished_at is None:
        return not pod.is_history and _is_own_failure(pod)
    has_run = pod.status in ("Running", "Succeeded") or pod.exit_code is not None
    return has_run and pod.started_at >= evicted.finished_at


def _failed_meanwhile(job: Job, evicted: Pod, successor: Pod) -> bool:
    """Whether a pod failed after the eviction and before the evicted one's successor began."""
    lost, back = evicted.finished_at, successor.started_at
    if lost is None or back is None:
        return False
    return any(
        pod.has_failed and pod.finished_at is not None and lost <= pod.finished_at < back for pod in _workers(job)
    )


def _failed_by_themselves(job: Job) -> list[Pod]:
    """The workers that exited with a code of their own, none if one that a signal ended was before them."""
    workers = [pod for pod in _workers(job) if not pod.is_evicted]
    by_themselves = [pod for pod in workers if _is_own_failure(pod)]
    by_signal = [pod for pod in workers if pod.exit_code in SIGNAL_EXIT_CODES]
    return [] if any(_ended_before_all(pod, by_themselves) for pod in by_signal) else by_themselves


def _is_own_failure(pod: Pod) -> bool:
    return pod.exit_code is not None and pod.exit_code > 0 and pod.exit_code not in SIGNAL_EXIT_CODES


def _ended_before_all(pod: Pod, others: Iterable[Pod]) -> bool:
    ends = [other.finished_at for other in others]
    if pod.finished_at is None or not ends:
        return False
    return all(end is not None and pod.finished_at < end for end in ends)


def _workers(job: Job) -> list[Pod]:
    return [pod for pod in job.pods if not pod.is_aimaster]


def _past_workers(job: Job) -> list[Pod]:
    return [pod for pod in job.history_pods if not pod.is_aimaster]


def _evicted_for_good(job: Job) -> list[Pod]:
    """The workers that ended as evicted, by DLC's word or Kubernetes', and were not made good."""
    present = [pod for pod in _workers(job) if _may_have_ended_it(job, pod)]
    lost = [pod for pod in _past_workers(job) if not _got_over(job, pod)]
    return [pod for pod in (*present, *lost) if EVICTED in (pod.sub_status, pod.reason)]


def _may_have_ended_it(job: Job, evicted: Pod) -> bool:
    """
    Whether no peer failed by itself before a pod's eviction, nor the first one so long after it that all ran on.

    A failure that the job itself outlived for as long explains nothing.
    """
    peers = [pod for pod in _workers(job) if not pod.is_evicted]
    failures = [pod.finished_at for pod in peers if _is_own_failure(pod) or OUT_OF_MEMORY.fullmatch(pod.reason)]
    ended = job.finished_at
    failures = [one for one in failures if one is None or ended is None or one >= ended - _OUTLIVED_AFTER]
    known = [moment for moment in failures if moment is not None]
    if evicted.finished_at is None or not known or len(known) < len(failures):
        return True
    return min(known) - _OUTLIVED_AFTER <= evicted.finished_at <= min(known) + _TAKES_TO_END


def _was_outside_last_run(job: Job, event: str) -> bool:
    """A time from before the job was made is no time but a zone misread, and tells nothing; nor does a missing one."""
    moment, began, ended = zoned_moment(event), job.running_since, job.finished_at
    if moment is None or (job.created_at is not None and moment < job.created_at):
        return False
    return (began is not None and moment < began) or (ended is not None and moment > ended + _COMES_LATE)


def _times_run(job: Job) -> int:
    return sum(phase_of(stretch.status) is Phase.RUNNING for stretch in job.timeline)


def _status_in(scene: Scene, *statuses: JobStatus) -> Sequence[str]:
    if scene.job.status not in statuses:
        return ()
    return (f"status {scene.job.status}", *([_reason(scene.job)] if scene.job.reason_code else []))


def _reason_code_is(scene: Scene, code: str) -> Sequence[str]:
    return (_reason(scene.job),) if scene.job.reason_code == code else ()


def _kept_from_starting(scene: Scene, pattern: re.Pattern[str]) -> Sequence[str]:
    job = scene.job
    lines = _lines(pod for pod in _workers(job) if pattern.search(pod.reason))
    lines += _matching([job.reason_message], pattern, "ReasonMessage")
    return lines if job.running_since is not None else lines + _matching(scene.events, pattern, "event")


def _reason(job: Job) -> str:
    return _cut(f"ReasonCode {job.reason_code or 'empty'}: {job.reason_message}")


def _matching(texts: Iterable[str], pattern: re.Pattern[str], where: str) -> list[str]:
    return _found(texts, pattern.search, where)


def _found(texts: Iterable[str], find: _Find, where: str) -> list[str]:
    return [_cut(f"{where}: {_around(text, find)}") for text in texts if find(text)]


def _around(text: str, find: _Find) -> str:
    """Leave out the beginning of a long text if what was found would be cut off."""
    text = without_secrets(text, LONGEST_TEXT)
    found = find(text)
    start = found.start() - _BEFORE if found is not None and found.end() > _LINE_LEFT else 0
    return f"…{text[start:]}" if start > 0 else text


def _taken_back(texts: Iterable[str], where: str) -> list[str]:
    return _found([text for text in texts if not NODE_PRESSURE.search(text)], taken_back, where)


def _lines(pods: Iterable[Pod]) -> list[str]:
    """Name a few pods and count the others: a log line shows no more."""
    told = list(pods)
    if len(told) <= _PODS_NAMED:
        return [_line(pod) for pod in told]
    named = told[: _PODS_NAMED - 1]
    return [*map(_line, named), f"and {len(told) - len(named)} more"]


def _line(pod: Pod) -> str:
    name = f"pod {pod.short_id}" + (f" on {pod.node}" if pod.node else "")
    ended = pod.sub_status if pod.is_evicted else pod.status
    facts = dict.fromkeys((ended, "" if pod.exit_code is None else f"exit code {pod.exit_code}", pod.reason))
    return _cut(f"{name} {', '.join(fact for fact in facts if fact)}".rstrip())


def _cut(line: str) -> str:
    return without_secrets(line, _MAX_LINE)
