"""What happens to jobs as time passes: each status schedules what comes after it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

from airflow_provider_pai_spot.emulator import reasons
from airflow_provider_pai_spot.emulator.behaviours import Behaviours
from airflow_provider_pai_spot.emulator.capacity import Capacity
from airflow_provider_pai_spot.emulator.commands import CommandRunner
from airflow_provider_pai_spot.emulator.journal import Journal
from airflow_provider_pai_spot.emulator.lifecycle import (
    HOLDING,
    KNOWN,
    RESERVING,
    TERMINAL,
    Phases,
    Signal,
    Status,
    next_status,
)
from airflow_provider_pai_spot.emulator.market import Market
from airflow_provider_pai_spot.emulator.pods import PodMaker
from airflow_provider_pai_spot.emulator.record import Job, Pod, Restart, Transition
from airflow_provider_pai_spot.emulator.store import JobStore
from airflow_provider_pai_spot.emulator.timeline import Timeline
from airflow_provider_pai_spot.emulator.trading import Trading
from airflow_provider_pai_spot.emulator.traits import sub_status, traits_of

_SIGTERM_EXIT = 143
_CANNOT_START_EXIT = 128
_LOOK_AGAIN_SECONDS = 0.1
"""How long to wait before looking again whether the processes of a job have ended."""


class Simulation:
    """
    The jobs and the market in emulated time. Callers hold `timeline.changed`.

    :param timeline: when things happen.
    :param market: what machines cost.
    :param phases: how long each phase takes.
    :param behaviours: the table with its switches.
    :param journal: where everything is written down.
    :param rng: seeded source of every random choice.
    :param pod_maker: makes pods.
    :param runner: really runs commands; None: jobs follow their plans.
    """

    def __init__(
        self,
        *,
        timeline: Timeline,
        market: Market,
        phases: Phases,
        behaviours: Behaviours,
        journal: Journal,
        rng: random.Random,
        pod_maker: PodMaker,
        runner: CommandRunner | None,
    ) -> None:
        self.timeline = timeline
        self.market = market
        self.phases = phases
        self.behaviours = behaviours
        self.journal = journal
        self.rng = rng
        self.runner = runner
        self.jobs = JobStore()
        self.capacity = Capacity(market)
        self._pod_maker = pod_maker
        self._next: dict[str, Callable[[Job], None]] = {
            Status.CREATING: self._creating,
            Status.QUEUING: self._waiting,
            Status.BIDDING: self._waiting,
            Status.ENV_PREPARING: self._preparing,
            Status.SANITY_CHECKING: self._checking,
            Status.RUNNING: self._running,
            Status.RESTARTING: self._restarting,
            Status.STOPPING: partial(self._stopping, slowness=0.0),
            Status.SUCCEEDED_RESERVING: self._reserving,
            Status.FAILED_RESERVING: self._reserving,
        }
        self.trading = Trading(
            timeline=timeline,
            capacity=self.capacity,
            journal=journal,
            rng=rng,
            average_seconds=float(behaviours["lingjun_average_seconds"]),
            lose=lambda job, cause: self.revoke(job, None, cause),
            seek=self._seek,
        )

    # --- what others ask for ------------------------------------------------------------------------

    def add(self, job: Job) -> None:
        """Let a new job begin."""
        self.jobs.add(job)
        bids = [
            {"instance_type": role.instance_type, "kind": role.bid.kind.value, "limit": role.bid.limit}
            for role in job.spot_roles
        ]
        self.journal.write(
            self.timeline.now,
            "created",
            job.job_id,
            display_name=job.display_name,
            tags=dict(job.tags),
            owner=job.owner,
            bids=bids,
        )
        self._enter(job, Status.CREATING)

    def stop(self, job: Job, slowness: float) -> None:
        """Stop a job that can be stopped; `slowness` seconds more than usual in Stopping."""
        self.journal.write(self.timeline.now, "stop", job.job_id, status=job.status)
        if job.status in RESERVING:
            self._signal(job, Signal.STOP_REQUESTED)
            return
        self._enter(job, Status.STOPPING, next_step=partial(self._stopping, slowness=slowness))

    def revoke(self, job: Job, pod_ids: Sequence[str] | None, cause: str) -> None:
        """
        Take machines back from a job: those of `pod_ids`, or all of them.

        Raises ValueError if the job holds none now.
        """
        if job.status not in HOLDING:
            raise ValueError(f"Job {job.job_id} is {job.status} and holds no machines that could be revoked.")
        pods = [pod for pod in job.training_pods() if pod_ids is None or pod.pod_id in pod_ids]
        job.revocations += 1
        self.journal.write(self.timeline.now, "revoked", job.job_id, cause=cause, pods=[pod.pod_id for pod in pods])
        job.say(self.timeline.now, f"Spot instance preempted: {cause}")
        evicted = job.plan.evicted is not False
        self._end_pods(job, pods, _SIGTERM_EXIT, evicted=evicted, reason="Evicted")
        job.epoch += 1
        self._release(job)
        self._once_ended(job, partial(self._lost, pods=pods))

    def put(self, job: Job, status: str, code: str | None, message: str | None) -> None:
        """Put a job into any status by hand; from a known one it goes on as usual."""
        if status not in TERMINAL | RESERVING:
            job.finished_at = None
        else:
            self._end_pods(job, job.pods, 0 if status.startswith("Succeeded") else 1, evicted=False)
        self._enter(job, status, (code, message))
        # What was said by hand also outdoes a plan's reason.
        entry = job.history[-1]
        entry.reason_code = job.reason_code = job.reason_code if code is None else code
        entry.reason_message = job.reason_message = job.reason_message if message is None else message

    # --- statuses, and what comes after each ----------------------------------------------------------

    def _creating(self, job: Job) -> None:
        self._later(job, self._seconds(Status.CREATING), partial(self._signal, signal=Signal.ACCEPTED))

    def _waiting(self, job: Job) -> None:
        job.submitted_at = job.submitted_at or self.timeline.now
        planned = job.plan.pending_seconds
        self._later(job, self._seconds(Status(job.status)) if planned is None else planned, self._seek)

    def _seek(self, job: Job) -> None:
        obstacle = self.capacity.seek(job, self.timeline.now)
        if not obstacle:
            if job.spot_roles:
                self.journal.write(self.timeline.now, "bid", job.job_id, won=True)
            self._signal(job, Signal.CAPACITY_WON)
        elif not job.events or job.events[-1][1] != obstacle:
            self.journal.write(self.timeline.now, "waiting", job.job_id, obstacle=obstacle)
            job.say(self.timeline.now, obstacle)

    def _preparing(self, job: Job) -> None:
        now = self.timeline.now
        self.capacity.keep(job)
        self._pod_maker.prepare(job, now)
        if job.plan.never_starts:
            for pod in job.training_pods():
                pod.events += [(now, "Failed to pull image: ErrImagePull"), (now, "Back-off: ImagePullBackOff")]
            return
        self._later(job, self._seconds(Status.ENV_PREPARING), partial(self._signal, signal=Signal.PREPARED))

    def _checking(self, job: Job) -> None:
        self.capacity.keep(job)
        self._later(job, self._seconds(Status.SANITY_CHECKING), partial(self._signal, signal=Signal.CHECKED))

    def _running(self, job: Job) -> None:
        now = self.timeline.now
        self.capacity.keep(job)
        job.running_at = job.running_at or now
        if not job.pods:
            self._pod_maker.prepare(job, now)
        if job.restarts and job.restarts[-1].ended_at is None:
            job.restarts[-1].ended_at = now
        started = [pod for pod in job.pods if pod.started_at is None]
        for pod in started:
            pod.start(now)
        self._schedule_timeout(job)
        self._schedule_revocation(job)
        if self.runner is None:
            self._schedule_end(job)
        else:
            self._start_commands(self.runner, job, started)

    def _restarting(self, job: Job) -> None:
        self._later(
            job,
            self._seconds(Status.RESTARTING),
            lambda job: self._once_ended(job, partial(self._signal, signal=Signal.RESTARTED)),
        )

    def _stopping(self, job: Job, slowness: float) -> None:
        def ended(job: Job) -> None:
            self._end_pods(job, job.pods, _SIGTERM_EXIT, evicted=False)
            self._signal(job, Signal.STOP_DONE)

        if self.runner is not None:
            self.runner.end(job.pods, self._grace(job))
        seconds = self._seconds(Status.STOPPING) + slowness
        self._later(job, seconds, lambda job: self._once_dead(job, job.pods, ended))

    def _reserving(self, job: Job) -> None:
        self._end_pods(job, job.pods, _SIGTERM_EXIT, evicted=False)
        seconds = 60.0 * float(job.settings.get("JobReservedMinutes") or 0)
        if seconds and self.behaviours["reserving_ends"]:
            self._later(job, seconds, partial(self._signal, signal=Signal.RESERVATION_OVER))

    # --- running ----------------------------------------------------------------------------------------

    def _schedule_timeout(self, job: Job) -> None:
        minutes = float(job.body.get("JobMaxRunningTimeMinutes") or 0)
        if minutes and job.running_at is not None:
            self._later(job, job.running_at + 60 * minutes - self.timeline.now, self._timed_out)

    def _schedule_revocation(self, job: Job) -> None:
        plan = job.plan
        if plan.revoke_after is None or job.revocations >= plan.revoke_times:
            return
        pods = None if plan.revoke_pods is None else [p.pod_id for p in job.training_pods()][: plan.revoke_pods]
        self._later(job, plan.revoke_after, lambda job: self.revoke(job, pods, "as planned"))

    def _schedule_end(self, job: Job) -> None:
        if job.plan.run_seconds is not None:
            self._later(job, job.plan.run_seconds, self._planned_end)

    def _planned_end(self, job: Job) -> None:
        plan = job.plan
        self._end_pods(job, job.pods, plan.exit_code, evicted=plan.evicted is True)
        if plan.status is not None:
            self._enter(job, plan.status)
            return
        self._commands_ended(job)

    def _start_commands(self, runner: CommandRunner, job: Job, pods: list[Pod]) -> None:
        for pod in pods:
            if pod.is_aimaster:
                continue
            try:
                runner.start(job, pod, partial(self._line, pod), partial(self._exited, job, pod))
            except (OSError, RuntimeError, ValueError) as error:
                self._line(pod, f"cannot start the command: {error}")
                self._later(job, 0, partial(self._exited, pod=pod, exit_code=_CANNOT_START_EXIT))

    def _line(self, pod: Pod, text: str) -> None:
        with self.timeline.changed:
            pod.lines.append((self.timeline.clock.now(), text))
            self.timeline.changed.notify_all()

    def _exited(self, job: Job, pod: Pod, exit_code: int) -> None:
        with self.timeline.changed:
            self.timeline.catch_up()
            pod.end(self.timeline.now, exit_code, evicted=False)
            if job.status == Status.RUNNING and pod in job.pods and pod.sub_status != "Evicted":
                self._pod_ended(job, exit_code)
            self.timeline.changed.notify_all()

    def _pod_ended(self, job: Job, exit_code: int) -> None:
        done = all(pod.finished_at is not None for pod in job.training_pods())
        if exit_code != 0 or done:
            self._commands_ended(job)

    def _commands_ended(self, job: Job) -> None:
        failed = [pod for pod in job.training_pods() if pod.status == "Failed"]
        if failed:
            self._end_pods(job, job.pods, _SIGTERM_EXIT, evicted=False)
            self._signal(job, Signal.BROKE, reasons.failed(job, failed, self.behaviours))
        else:
            self._end_pods(job, job.pods, 0, evicted=False)
            self._signal(job, Signal.COMPLETED)

    def _timed_out(self, job: Job) -> None:
        self._end_pods(job, job.pods, _SIGTERM_EXIT, evicted=False)
        self._enter(job, str(self.behaviours["timeout_status"]), reasons.timed_out(job, self.behaviours))

    # --- losing ---------------------------------------------------------------------------------------

    def _lost(self, job: Job, pods: list[Pod]) -> None:
        traits = traits_of(job, self.behaviours)
        again = traits.restarts_left
        if not again or not job.restart_alone:
            survivors = list(job.training_pods() if again else job.pods)
            self._end_pods(job, survivors, _SIGTERM_EXIT, evicted=False)
        status = next_status(Status(job.status), Signal.REVOKED, traits)
        if again:
            self._restart(job, pods)
            self._enter(job, status)
        else:
            self._enter(job, status, reasons.revoked(job, pods, self.behaviours))

    def _restart(self, job: Job, pods: list[Pod]) -> None:
        level = "Pod" if job.restart_alone else "Job"
        lost = tuple(pod.pod_id for pod in pods)
        reason = str(self.behaviours["restart_reason"])
        job.restarts.append(Restart(len(job.restarts) + 1, self.timeline.now, job.status, lost, level, reason))
        self.journal.write(self.timeline.now, "restarted", job.job_id, number=len(job.restarts))

    def _end_pods(self, job: Job, pods: Sequence[Pod], exit_code: int, *, evicted: bool, reason: str = "") -> None:
        if self.runner is not None:
            self.runner.end(pods, self._grace(job))
        for pod in pods:
            pod.end(self.timeline.now, exit_code, evicted=evicted, reason=reason)

    def _once_ended(self, job: Job, action: Callable[[Job], None]) -> None:
        """Do `action` once the pods that were told to end have; others may run on."""
        self._once_dead(job, [pod for pod in job.pods if pod.finished_at is not None], action)

    def _once_dead(self, job: Job, pods: Sequence[Pod], action: Callable[[Job], None]) -> None:
        if self.runner is not None and self.runner.any_alive(pods):
            self._later(job, _LOOK_AGAIN_SECONDS, lambda job: self._once_dead(job, pods, action))
            return
        action(job)

    def _grace(self, job: Job) -> float:
        own = job.settings.get("TerminationGracePeriodSeconds")
        return float(self.behaviours["reclaim_grace_seconds"] if own is None else own)

    # --- moving on ------------------------------------------------------------------------------------

    def _signal(self, job: Job, signal: Signal, reason: tuple[str | None, str | None] = (None, None)) -> None:
        status = next_status(Status(job.status), signal, traits_of(job, self.behaviours))
        self._enter(job, status, reason)

    def _enter(
        self,
        job: Job,
        status: str,
        reason: tuple[str | None, str | None] = (None, None),
        next_step: Callable[[Job], None] | None = None,
    ) -> None:
        now = self.timeline.now
        former, job.status, job.modified_at = job.status, str(status), now
        job.epoch += 1
        job.sub_status = sub_status(job)
        job.reason_code, job.reason_message = self._reason(job, former, reason)
        if job.history:
            job.history[-1].ended_at = now
        job.history.append(Transition(job.status, now, None, job.reason_code, job.reason_message))
        self.journal.write(now, "status", job.job_id, status=job.status, former=former, reason=job.reason_code)
        if status in KNOWN and status not in HOLDING:
            self._release(job)
        if status in TERMINAL or status in RESERVING:
            job.finished_at = job.finished_at or now
        step = next_step or self._next.get(job.status)
        if step is not None:
            step(job)

    def _reason(self, job: Job, former: str, given: tuple[str | None, str | None]) -> tuple[str, str]:
        code, message = reasons.passing(job, job.status)
        if former in RESERVING:
            code, message = job.reason_code, job.reason_message
        code = code if given[0] is None else given[0]
        message = message if given[1] is None else given[1]
        if job.status in TERMINAL | RESERVING and job.status != Status.STOPPED:
            plan = job.plan
            code = code if plan.reason_code is None else plan.reason_code
            message = message if plan.reason_message is None else plan.reason_message
        return code, message

    def _release(self, job: Job) -> None:
        for instance_type in self.capacity.release(job):
            if self.market.stock(instance_type) is not None:
                self.timeline.after(0, partial(self.trading.settle, instance_type))

    def _later(self, job: Job, seconds: float, action: Callable[[Job], None]) -> None:
        """Do `action` in `seconds` unless the job has moved on by then."""
        epoch = job.epoch

        def act() -> None:
            if job.epoch == epoch and not job.deleted:
                action(job)

        self.timeline.after(seconds, act)

    def _seconds(self, status: Status) -> float:
        return self.phases.seconds(status, self.rng)
