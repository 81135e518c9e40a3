"""
What becomes of a job, and of its task, whatever ends the task in whatever phase: the table, as data.

The DAGs of `kill_table.py` are made from it, `test_what_happens_to_the_job.py` walks it on a real Airflow, and the
README's section "What happens when …" is checked against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Where job and task stand when it happens; the value is the task's id."""

    CREATED = "created"
    """Between CreateJob's answer and the deferral."""
    QUEUEING = "queueing"
    BIDDING = "bidding"
    PREPARING = "preparing"
    RUNNING = "running"
    RESTARTING = "restarting"
    """DLC's AIMaster starts the job again."""
    BETWEEN_ATTEMPTS = "between_attempts"
    """The first job is lost; CreateJob of the second was done, and its answer is on the way."""
    QUEUED_FOR_RESUME = "queued_for_resume"
    """The trigger fired although the job is alive (DLC did not answer), and no slot is free for the task."""
    UP_FOR_RETRY = "up_for_retry"
    """The worker of the first try was killed; the job is alive."""
    IN_WORKER = "in_worker"
    """`deferrable=False`: the task waits in its worker."""
    LAST_TRY = "last_try"
    """As `CREATED`, and no retry is left."""
    LEFT_ALONE = "left_alone"
    """Running, with `cancel_on_kill=False`."""
    BETWEEN_TASKS = "between_tasks"
    """Two-task form: the submit task has returned, and no sensor watches yet."""
    SENSOR = "sensor"
    """Two-task form: a sensor waits, with `cancel_on_kill=False`."""
    SENSOR_CANCELS = "sensor_cancels"
    """Two-task form: a sensor waits, with `cancel_on_kill=True`."""


class Event(StrEnum):
    """What happens to the task; the value is part of a DAG's id."""

    MARK_FAILED = "mark_failed"
    MARK_SUCCESS = "mark_success"
    RUN_FAILED = "run_failed"
    RUN_SUCCESS = "run_success"
    RUN_TIMEOUT = "run_timeout"
    """`dagrun_timeout` passes."""
    FAIL_FAST = "fail_fast"
    """Another task of a DAG with `fail_fast` fails."""
    CLEAR = "clear"
    DAG_PAUSED = "dag_paused"
    DAG_DELETED = "dag_deleted"
    RUN_DELETED = "run_deleted"
    TRIGGERER_KILLED = "triggerer_killed"
    WORKER_KILLED = "worker_killed"


ENDS = (
    Event.MARK_FAILED,
    Event.MARK_SUCCESS,
    Event.RUN_FAILED,
    Event.RUN_SUCCESS,
    Event.RUN_TIMEOUT,
    Event.FAIL_FAST,
)
"""Events by which a person, or Airflow itself, ends a task for good."""


class Job(StrEnum):
    """What becomes of the job, in the README's words."""

    STOPPED = "is stopped"
    GOES_ON = "goes on"
    SWEPT = "goes on (1)"
    """Nobody listens: it goes on until a sweep stops it."""


@dataclass(frozen=True, slots=True)
class End:
    """
    A cell that is walked.

    :param task: the task's state afterwards; None: the task instance is gone.
    :param next_try: whether that is the state of a later try than the one in which it happened.
    """

    job: Job
    task: str | None
    next_try: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A cell in which Airflow refuses, with HTTP 409, and nothing changes."""

    why: str


@dataclass(frozen=True, slots=True)
class NotWalked:
    """A cell that cannot be, or is another one."""

    why: str


Row = dict[Event, End | Refused | NotWalked]

DEFERRED = (Phase.QUEUEING, Phase.BIDDING, Phase.PREPARING, Phase.RUNNING, Phase.RESTARTING)
UNHEARD = (Phase.QUEUED_FOR_RESUME, Phase.UP_FOR_RETRY)

_RUN_GOES_ON = Refused("Airflow deletes no run that is running")
_TASK_RUNS = Refused("Airflow deletes no DAG that has a running task")
_NO_WORKER = NotWalked("no worker has the task")
_NO_TRIGGERER = NotWalked("no triggerer has the task")


def _row(job: Job, *, running: bool, again: str, of_run: tuple[str, str], fail_fast: str) -> Row:
    """
    Return the events by which a person, or Airflow itself, ends a task, and the clear.

    :param running: whether Airflow shows the task as running.
    :param again: the state in which the next try takes the job over.
    :param of_run: the state when the run is marked failed, and when it is marked successful.
    """
    return {
        Event.MARK_FAILED: End(job, "failed"),
        Event.MARK_SUCCESS: End(job, "success"),
        Event.RUN_FAILED: End(job, of_run[0]),
        Event.RUN_SUCCESS: End(job, of_run[1]),
        Event.RUN_TIMEOUT: End(job, "skipped"),
        Event.FAIL_FAST: End(job, fail_fast),
        Event.CLEAR: End(Job.GOES_ON, again, next_try=True),
        Event.DAG_DELETED: _TASK_RUNS if running else End(job, None),
        Event.RUN_DELETED: _RUN_GOES_ON,
    }


_HEARD_IN_TRIGGERER: Row = {
    **_row(Job.STOPPED, running=False, again="deferred", of_run=("failed", "success"), fail_fast="skipped"),
    Event.TRIGGERER_KILLED: End(Job.GOES_ON, "deferred"),
    Event.WORKER_KILLED: _NO_WORKER,
}
_HEARD_IN_WORKER: Row = {
    **_row(Job.STOPPED, running=True, again="deferred", of_run=("failed", "success"), fail_fast="failed"),
    Event.TRIGGERER_KILLED: _NO_TRIGGERER,
    Event.WORKER_KILLED: End(Job.GOES_ON, "deferred", next_try=True),
}
# A task that waits for a slot or its next try is, to Airflow, one that has not begun: a run's end skips it.
_HEARD_NOWHERE: Row = {
    **_row(Job.SWEPT, running=False, again="deferred", of_run=("skipped", "skipped"), fail_fast="skipped"),
    Event.TRIGGERER_KILLED: _NO_TRIGGERER,
    Event.WORKER_KILLED: _NO_WORKER,
}
_PAUSE = NotWalked("a pause reaches no task that has begun, and nobody tells its job")


def _only(walked: Row, why: str) -> Row:
    return {event: walked.get(event, NotWalked(why)) for event in Event}


ROWS: dict[Phase, Row] = {
    Phase.CREATED: _HEARD_IN_WORKER | {Event.DAG_PAUSED: _PAUSE},
    **{phase: _HEARD_IN_TRIGGERER | {Event.DAG_PAUSED: _PAUSE} for phase in DEFERRED},
    Phase.RUNNING: _HEARD_IN_TRIGGERER | {Event.DAG_PAUSED: End(Job.GOES_ON, "deferred")},
    Phase.BETWEEN_ATTEMPTS: _HEARD_IN_WORKER | {Event.DAG_PAUSED: _PAUSE},
    **{phase: _HEARD_NOWHERE | {Event.DAG_PAUSED: _PAUSE} for phase in UNHEARD},
    Phase.IN_WORKER: _only(
        {
            Event.MARK_FAILED: End(Job.STOPPED, "failed"),
            Event.CLEAR: End(Job.GOES_ON, "running", next_try=True),
            Event.WORKER_KILLED: End(Job.GOES_ON, "running", next_try=True),
            Event.TRIGGERER_KILLED: _NO_TRIGGERER,
        },
        "the same signal reaches the same process as in `created`",
    ),
    Phase.LAST_TRY: _only({Event.WORKER_KILLED: End(Job.SWEPT, "failed")}, "retries left or not: as in `created`"),
    Phase.LEFT_ALONE: _only(
        {
            Event.MARK_FAILED: End(Job.SWEPT, "failed"),
            Event.RUN_FAILED: End(Job.SWEPT, "failed"),
            Event.DAG_DELETED: End(Job.SWEPT, None),
        },
        "what ended the task is not even asked",
    ),
    Phase.BETWEEN_TASKS: _only({Event.RUN_FAILED: End(Job.SWEPT, "success")}, "the job belongs to the run"),
    Phase.SENSOR: _only({Event.RUN_FAILED: End(Job.SWEPT, "failed")}, "the job belongs to the run"),
    Phase.SENSOR_CANCELS: _only(
        {Event.RUN_FAILED: End(Job.STOPPED, "failed"), Event.MARK_FAILED: End(Job.STOPPED, "failed")},
        "the same trigger hears it as in `running`",
    ),
}

WALKED: dict[tuple[Phase, Event], End] = {
    (phase, event): end for phase, row in ROWS.items() for event, end in row.items() if isinstance(end, End)
}
REFUSED: dict[tuple[Phase, Event], Refused] = {
    (phase, event): end for phase, row in ROWS.items() for event, end in row.items() if isinstance(end, Refused)
}


def dag_id_of(event: Event) -> str:
    """Return the DAG whose tasks, one for each phase, this event happens to."""
    return f"kill_{event}"


def job_name(phase: Phase, event: Event) -> str:
    """Return DisplayName of the jobs of one cell."""
    return f"{dag_id_of(event)}.{phase}.job"
