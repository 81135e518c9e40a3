"""SpotJobTrigger: waits for one job without a worker, from submission to its end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_pai_spot import settings
from airflow_provider_pai_spot.attempts.airflow_state import task_is_over
from airflow_provider_pai_spot.attempts.drive import JobReader, answer
from airflow_provider_pai_spot.attempts.follow import Following, Wait, WaitLimits, follow
from airflow_provider_pai_spot.attempts.identity import TaskIdentity
from airflow_provider_pai_spot.clock import SYSTEM_CLOCK, Clock
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.outcome import JobOutcome
from airflow_provider_pai_spot.dlc.status import Phase, is_decided, phase_of
from airflow_provider_pai_spot.exceptions import PaiDlcError
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.hooks.retrying import RetryRules
from airflow_provider_pai_spot.triggers.dlc_threads import in_dlc_thread

_JITTER = (0.9, 1.1)
_ONCE = RetryRules(attempts=1)  # the trigger looks again anyway; waiting in one of the few threads would delay others
_STOP_SEEN_WITHIN = 20.0
"""Seconds in which a stop must show; below Airflow's `[triggerer] on_kill_timeout` of 30 s."""
_STOP_POLL = 1.0


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
        self.clock: Clock = SYSTEM_CLOCK
        self.ask_airflow: Callable[[TaskIdentity], bool] = task_is_over

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
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Follow the job to its end and fire once."""
        earliest = self.clock.now().timestamp() + self._min_dwell()
        hook = await self._hook()
        following = follow(
            self.job_id,
            limits=self._limits(),
            poll_interval=self.poll_interval,
            now=self.clock.now,
            log=self.log,
            spot=True,
        )
        outcome = await self._drive(following, hook)
        await self.clock.asleep(max(0.0, earliest - self.clock.now().timestamp()))
        yield TriggerEvent(outcome.to_dict())  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """
        Stop the job if Airflow has really given the task up.

        Airflow also calls this when the task was only cleared, or when another triggerer took over after this one
        was silent for too long; then the job is somebody else's, and lives.
        """
        if not self.cancel_on_kill:
            self.log.info("%s is left running: cancel_on_kill=False", self.job_id)
            return
        if not await self._task_is_over():
            self.log.info("%s is left running: its task has not ended in Airflow", self.job_id)
            return
        hook = await self._hook()
        self.log.warning("the task was ended in Airflow; stopping %s", self.job_id)
        await self._stop_and_see(hook)

    async def _drive(self, following: Following, hook: JobReader) -> JobOutcome:
        reply: Any = None
        while True:
            try:
                command = following.send(reply)
            except StopIteration as end:
                outcome: JobOutcome = end.value
                return outcome
            if isinstance(command, Wait):
                jitter = random.uniform(*_JITTER)  # noqa: S311 - spreads the polls of many triggers
                await self.clock.asleep(command.seconds * jitter)
                reply = None
            else:
                reply = await in_dlc_thread(answer, command, hook)

    def _limits(self) -> WaitLimits:
        return WaitLimits(
            pending_timeout=self.pending_timeout,
            run_timeout=self.run_timeout,
            total_deadline=_moment(self.total_deadline),
            execution_deadline=_moment(self.execution_deadline),
            poll_error_tolerance=settings.poll_error_tolerance(),
            stop_at_limit=self.stop_at_limit,
        )

    def _min_dwell(self) -> float:
        """
        Seconds before which no event is fired; 0 without a task instance, as under `dag.test()`.

        Airflow 3.3 fails the try of a task that resumes before the scheduler has heard of its deferral
        (apache/airflow #71580).
        """
        return settings.trigger_min_dwell() if self.task_instance is not None else 0.0

    async def _hook(self) -> PaiDlcHook:
        connection = await PaiDlcHook.aget_connection(self.pai_dlc_conn_id)
        return PaiDlcHook.from_connection(
            connection, region_id=self.region_id, workspace_id=self.workspace_id, retry_rules=_ONCE
        )

    async def _task_is_over(self) -> bool:
        instance = self.task_instance
        if instance is None:
            return False
        identity = TaskIdentity(
            namespace="",
            dag_id=instance.dag_id,
            run_id=instance.run_id,
            task_id=instance.task_id,
            map_index=-1 if instance.map_index is None else instance.map_index,
        )
        try:
            return await asyncio.get_running_loop().run_in_executor(None, self.ask_airflow, identity)
        except Exception as error:  # noqa: BLE001 - whatever it was, no answer is not a yes
            self.log.warning("%s is left running: Airflow could not be asked about its task: %s", self.job_id, error)
            return False

    async def _stop_and_see(self, hook: PaiDlcHook) -> None:
        """Stop, and look until the stop shows: whether one accepted in an early state holds is not documented."""
        give_up_at = self.clock.now().timestamp() + _STOP_SEEN_WITHIN
        status = ""
        while self.clock.now().timestamp() < give_up_at:
            try:
                await in_dlc_thread(hook.stop_job, self.job_id)
                status = Job(await in_dlc_thread(hook.get_job, self.job_id)).status
            except PaiDlcError as error:
                self.log.warning("%s: the stop did not go through yet: %s", self.job_id, error)
            if is_decided(status) or phase_of(status) is Phase.STOPPING:
                self.log.info("%s is %s", self.job_id, status)
                return
            await self.clock.asleep(_STOP_POLL)
        self.log.error("%s is still %s; `pai-spot stop %s` stops it", self.job_id, status or "unseen", self.job_id)


def _moment(text: str | None) -> datetime | None:
    """Read an ISO 8601 time; one without a zone is UTC."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
