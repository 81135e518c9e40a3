"""One night of training: a run is triggered, the market takes its machine away, Airflow gets it another one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from airflow_provider_pai_spot.cli.demo.airflow_client import FINISHED_RUN_STATES, AirflowClient
from airflow_provider_pai_spot.cli.demo.cloud import CALM_PRICE, LocalCloud
from airflow_provider_pai_spot.cli.demo.live_view import View
from airflow_provider_pai_spot.cli.demo.story import (
    ENDED,
    Attempt,
    Snapshot,
    attempt_from,
    is_worth_losing,
)

DAG_ID = "nightly_training"
TASK_ID = "train"
_LOOK_EVERY_SECONDS = 0.5
_STEEP = 0.1
"""How far the market price rises above the bid, as a fraction of list price."""


class DemoTookTooLong(RuntimeError):
    """The run did not end in time; says where it stands."""


@dataclass(slots=True)
class Night:
    """
    The run and everything that happens to it.

    :param revoke: whether the market price rises above the bid half-way.
    """

    airflow: AirflowClient
    cloud: LocalCloud
    view: View
    revoke: bool = True
    run_id: str = ""
    market_price: float = CALM_PRICE
    _started: float = field(default_factory=time.monotonic)
    _over: dict[str, Attempt] = field(default_factory=dict)

    def go_through(self, timeout: float) -> Snapshot:
        """
        Trigger the run, follow it to its end and return how everything stands then.

        :raises DemoTookTooLong: it did not end within `timeout` seconds.
        """
        self.airflow.wait_for_dag(DAG_ID)
        self.run_id = self.airflow.trigger(DAG_ID)
        self._started = time.monotonic()
        self.view.say(f"Triggered a run of {DAG_ID}: {self.run_id}")
        while (snapshot := self._look()).run_state not in FINISHED_RUN_STATES:
            self.view.show(snapshot)
            if self.revoke and snapshot.attempts and is_worth_losing(snapshot.attempts[-1]):
                self._outbid(snapshot.attempts[-1])
            if snapshot.seconds > timeout:
                raise DemoTookTooLong(f"After {timeout:g} s the run is not over: {snapshot}")
            time.sleep(_LOOK_EVERY_SECONDS)
        self.view.show(snapshot)
        return snapshot

    def jobs_left_running(self) -> list[str]:
        """Return the ids of jobs that are not over, as the emulator says."""
        return [job["JobId"] for job in self.cloud.control.jobs() if job["Status"] not in ENDED]

    def _look(self) -> Snapshot:
        # Airflow first: once it says the run is over, the jobs are read as they were at its end.
        run_state = self.airflow.run_state(DAG_ID, self.run_id)
        task = self.airflow.task_instance(DAG_ID, self.run_id, TASK_ID)
        return Snapshot(
            run_id=self.run_id,
            seconds=time.monotonic() - self._started,
            run_state=run_state,
            task_state=task["state"] or "waiting",
            try_number=task["try_number"],
            market_price=self.market_price,
            attempts=self._attempts(),
        )

    def _attempts(self) -> tuple[Attempt, ...]:
        return tuple(self._attempt(job["JobId"]) for job in self.cloud.control.jobs())

    def _attempt(self, job_id: str) -> Attempt:
        """Read a job; one that was over at the last look is not read again."""
        if job_id in self._over:
            return self._over[job_id]
        job = self.cloud.control.job(job_id)
        attempt = attempt_from(job, self.cloud.pod_logs(job))
        if attempt.ended:
            self._over[job_id] = attempt
        return attempt

    def _outbid(self, attempt: Attempt) -> None:
        self.revoke = False
        price = round(attempt.bid + _STEEP, 2)
        self.market_price = self.cloud.control.set_price(attempt.instance_type, price)
        self.view.say(
            f"The market price rises to {self.market_price:g} of list price. {attempt.job_id} bids {attempt.bid:g} "
            "and loses its machine."
        )
