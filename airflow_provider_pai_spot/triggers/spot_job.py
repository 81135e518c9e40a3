"""SpotJobTrigger: waits for one job without a worker, from submission to its end."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_pai_spot.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_pai_spot.attempts.identity import TaskIdentity
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook

_WATCH = "airflow_provider_pai_spot.triggers.watch"
_loading: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Future[Any]] = WeakKeyDictionary()


class SpotJobTrigger(BaseTrigger):
    """
    Wait until a DLC job is over or a limit passes, then fire one event: a `JobOutcome` as a dict.

    The keyword arguments are a stored format: rows written by an older release must load, so names are added and
    never changed, and each addition has a default. They are stored in clear: never a secret.

    :param job_id: DLC's id of the job.
    :param pai_dlc_conn_id: the Airflow connection; read here, in the triggerer.
    :param region_id: overrides the connection's region.
    :param workspace_id: overrides the connection's workspace.
    :param poll_interval: seconds between two looks.
    :param pending_timeout: seconds from the job's creation to Running, None for no limit.
    :param run_timeout: seconds in Running, None for no limit.
    :param total_deadline: ISO 8601 UTC, when the task's time is up.
    :param execution_deadline: ISO 8601 UTC, when Airflow's `execution_timeout` is used up.
    :param stop_at_limit: whether the job is stopped when a limit passes.
    :param cancel_on_kill: whether the job is stopped when the task is ended in Airflow.
    :param log_poll_interval: seconds between two looks at the pods' logs, None to leave them alone. Stored only if
        set, so that a triggerer of an older release can take the rows of all others.
    :param own_job: whether the task submitted the job itself and so knows that it bids; False for one that may be
        anyone's. Stored only if False.
    """

    def __init__(
        self,
        *,
        job_id: str,
        pai_dlc_conn_id: str,
        region_id: str | None = None,
        workspace_id: str | None = None,
        poll_interval: float = 30.0,
        pending_timeout: float | None = None,
        run_timeout: float | None = None,
        total_deadline: str | None = None,
        execution_deadline: str | None = None,
        stop_at_limit: bool = True,
        cancel_on_kill: bool = True,
        log_poll_interval: float | None = None,
        own_job: bool = True,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's own is untyped
        self.job_id = job_id
        self.pai_dlc_conn_id = pai_dlc_conn_id
        self.region_id = region_id
        self.workspace_id = workspace_id
        self.poll_interval = poll_interval
        self.pending_timeout = pending_timeout
        self.run_timeout = run_timeout
        self.total_deadline = total_deadline
        self.execution_deadline = execution_deadline
        self.stop_at_limit = stop_at_limit
        self.cancel_on_kill = cancel_on_kill
        self.log_poll_interval = log_poll_interval
        self.own_job = own_job
        self.clock: Clock = SYSTEM_CLOCK
        self.ask_airflow: Callable[[TaskIdentity], bool] | None = None
        self.hook: PaiDlcHook | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the keyword arguments above."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "job_id": self.job_id,
                "pai_dlc_conn_id": self.pai_dlc_conn_id,
                "region_id": self.region_id,
                "workspace_id": self.workspace_id,
                "poll_interval": self.poll_interval,
                "pending_timeout": self.pending_timeout,
                "run_timeout": self.run_timeout,
                "total_deadline": self.total_deadline,
                "execution_deadline": self.execution_deadline,
                "stop_at_limit": self.stop_at_limit,
                "cancel_on_kill": self.cancel_on_kill,
                **({} if self.log_poll_interval is None else {"log_poll_interval": self.log_poll_interval}),
                **({} if self.own_job else {"own_job": False}),
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Follow the job to its end and fire once."""
        watch = await _load_watch()
        outcome = await watch.follow_to_the_end(self)
        yield TriggerEvent(outcome.to_dict())  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """
        Stop the job if Airflow has really given the task up.

        Airflow also calls this when the task was only cleared, or when another triggerer took over after this one
        was silent for too long; then the job is somebody else's, and lives.
        """
        await _through_cancellation(self._stop_if_task_is_over())

    async def _stop_if_task_is_over(self) -> None:
        watch = await _load_watch()
        await watch.stop_if_task_is_over(self)


async def _through_cancellation(work: Coroutine[Any, Any, None]) -> None:
    """
    Finish the work although Airflow goes on cancelling.

    Airflow 3.3's triggerer cancels a trigger again at every exchange with its supervisor, about once a second, and
    the second time it hits `on_kill` itself. The work bounds its own time.
    """
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    task.result()


async def _load_watch() -> Any:
    """Load what only a triggerer needs, once and off its event loop: a DAG parse imports this module too."""
    loop = asyncio.get_running_loop()
    if loop not in _loading or (_loading[loop].done() and _loading[loop].exception()):
        _loading[loop] = loop.run_in_executor(None, _import_watch)
    return await asyncio.shield(_loading[loop])


def _import_watch() -> Any:
    watch = importlib.import_module(_WATCH)
    watch.start_threads()
    return watch
