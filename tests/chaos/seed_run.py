"""One seed, from empty folders to a verdict."""

from __future__ import annotations

import logging
import random
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloud import Cloud
from core_bugs import ended_by_core_bugs
from deployment import Deployment
from figures import counted, faults_by_kind, shortfalls
from judgement import Judgement, judge, lives, orphans
from observing import AirflowDatabase
from saboteur import Saboteur
from servers import PostgresServer, RedisServer
from sweeping import sweep
from task_logs import TOLD_BY_TASKS, count_lines
from timetable import Trouble, timetable
from workload import DAG_ID, RUN_TIMEOUT_SECONDS, Workload, plans

from airflow_provider_pai_spot.cli.demo.sessions import Processes

log = logging.getLogger("chaos")

_DAGS = Path(__file__).parent / "dags"
LONGEST_SECONDS = 30 * 60.0
_LIMIT_SECONDS = LONGEST_SECONDS - 180.0
_WATCHING_PAUSE, _ORDINARY_PAUSE = 0.03, 0.25
_LOOK_EVERY = 2.0
_REPORT_EVERY = 20.0
_SETTLE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Settings:
    """
    What one seed is asked to do.

    :param tasks: about how many task instances.
    :param seconds: over which the troubles are spread.
    :param troubles: which kinds.
    :param poll_seconds: between two looks of a task at its job.
    :param keep: whether the folder with logs stays even if all is well.
    """

    tasks: int
    seconds: float
    troubles: tuple[Trouble, ...]
    poll_seconds: float
    keep: bool


class SeedRun:
    """
    One seed.

    :param programs: paths of PostgreSQL's and Redis' programs.
    """

    def __init__(self, seed: int, settings: Settings, programs: dict[str, str]) -> None:
        self.seed = seed
        self.settings = settings
        self.home = Path(tempfile.mkdtemp(prefix=f"pai-spot-chaos-{seed}-"))
        self.home.chmod(0o711)  # PostgreSQL's user passes through to its own folder
        self._programs = programs
        self._workload = Workload.of(settings.tasks)
        self._rng = random.Random(seed)

    def run(self) -> dict[str, Any]:
        """Run it and return its figures; the folder is left only if something was wrong."""
        began = time.monotonic()
        with ExitStack() as stack:
            figures = self._run(stack)
        figures["wall_seconds"] = round(time.monotonic() - began, 1)
        if figures["wall_seconds"] > LONGEST_SECONDS:
            figures["short"].append(f"it took longer than {LONGEST_SECONDS:.0f} s")
            figures["ok"] = False
        if figures["ok"] and not self.settings.keep:
            shutil.rmtree(self.home)
        else:
            figures["folder"] = str(self.home)
        return figures

    def _run(self, stack: ExitStack) -> dict[str, Any]:
        processes = stack.enter_context(Processes())
        postgres = PostgresServer(self.home / "postgres", processes, self._programs)
        postgres.start()
        stack.callback(postgres.stop)
        redis = RedisServer(self.home / "redis", processes, self._programs)
        redis.start()
        cloud = Cloud(self.home, self.seed, processes)
        cloud.start()
        for name, plan, times in plans(self._workload, self._rng):
            cloud.control.plan(plan, {"display_name": name}, times)
        deployment = self._deployment(postgres, redis, cloud, processes)
        stack.callback(deployment.stop)
        deployment.start()
        database = AirflowDatabase(postgres.address)
        stack.callback(database.close)
        log.info("Airflow is up; %d task instances in %d runs", self._workload.task_instances, self._workload.runs)
        saboteur = Saboteur(
            deployment=deployment,
            control=cloud.control,
            database=database,
            events=timetable(self._rng, self.settings.seconds, self.settings.troubles),
            rng=self._rng,
        )
        self._start_runs(deployment)
        all_ended = self._go_on_until_all_ended(database, saboteur, deployment)
        saboteur.finish()
        time.sleep(_SETTLE_SECONDS)
        return self._figures(cloud, database, deployment, saboteur, all_ended)

    def _deployment(
        self, postgres: PostgresServer, redis: RedisServer, cloud: Cloud, processes: Processes
    ) -> Deployment:
        return Deployment(
            self.home / "airflow",
            dags_folder=_DAGS,
            database=postgres.address,
            broker=redis.url,
            connection=cloud.connection_uri,
            environment={
                "PAI_SPOT_CHAOS_RUN_TIMEOUT_SECONDS": str(RUN_TIMEOUT_SECONDS),
                "PAI_SPOT_CHAOS_SIZES": self._workload.sizes,
                "PAI_SPOT_CHAOS_POLL_SECONDS": str(self.settings.poll_seconds),
            },
            processes=processes,
        )

    def _start_runs(self, deployment: Deployment) -> None:
        deployment.client.wait_for_dag(DAG_ID, timeout=120)
        for run_id in self._workload.run_ids:
            deployment.client.trigger(DAG_ID, run_id=run_id)

    def _go_on_until_all_ended(self, database: AirflowDatabase, saboteur: Saboteur, deployment: Deployment) -> bool:
        began = time.monotonic()
        done, look_at, report_at, hold = 0.0, 0.0, 0.0, False
        while (now := time.monotonic() - began) < _LIMIT_SECONDS:
            if now >= look_at:
                look_at = now + _LOOK_EVERY
                states = database.run_states(DAG_ID)
                if len(states) == self._workload.runs and set(states.values()) <= {"success", "failed"}:
                    return True
                done, hold = self._share_done(database), not deployment.is_reachable()
                for name in deployment.dead_components():
                    log.warning("%6.1f s  %s ended by itself; starting it again", now, name)
                    deployment.start_component(name)
            if now >= report_at:
                report_at = now + _REPORT_EVERY
                log.info("%6.1f s  %3.0f %% done", now, 100 * done)
            saboteur.act(now, done, hold=hold)
            time.sleep(_WATCHING_PAUSE if saboteur.watching else _ORDINARY_PAUSE)
        return False

    def _share_done(self, database: AirflowDatabase) -> float:
        finished = sum(one.finished for one in database.task_instances(DAG_ID))
        return finished / self._workload.task_instances

    def _figures(
        self, cloud: Cloud, database: AirflowDatabase, deployment: Deployment, saboteur: Saboteur, all_ended: bool
    ) -> dict[str, Any]:
        before = orphans(lives(cloud.control.journal()).values())
        sweep(deployment)
        journal = cloud.control.journal()
        after = orphans(lives(journal).values())
        judgement = judge(
            journal,
            database.task_instances(DAG_ID),
            database.xcoms(DAG_ID, "outcome", "return_value"),
            list(self._workload.works()),
        )
        for story in (*judgement.duplicates, *judgement.lost, *judgement.unexpected, *judgement.not_green, *after):
            log.warning("%s", story)
        figures = {
            "seed": self.seed,
            "ok": False,
            **counted(judgement),
            "orphans_before_sweep": len(before),
            "orphans": len(after),
            **self._troubles(journal, saboteur),
            **_told_by_logs(deployment),
            "all_ended": all_ended,
        }
        figures["short"] = shortfalls(figures, self.settings.troubles)
        figures["ok"] = (
            all_ended and not figures["short"] and _is_clean(judgement, after, self._workload.task_instances)
        )
        return figures

    def _troubles(self, journal: Sequence[Mapping[str, Any]], saboteur: Saboteur) -> dict[str, Any]:
        return {
            "faults": faults_by_kind(journal),
            "kills": {one.value: number for one, number in saboteur.kills.items() if one in self.settings.troubles},
            "strikes": saboteur.striker.figures(),
            "freezes": saboteur.freezer.figures(),
        }


def _told_by_logs(deployment: Deployment) -> dict[str, Any]:
    core_bugs = ended_by_core_bugs(deployment.logs)
    return {
        "tries_ended_by_airflow_core_bugs": len(core_bugs),
        "core_bug_lines": core_bugs,
        "task_log_lines": count_lines(deployment.task_logs, TOLD_BY_TASKS),
    }


def _is_clean(judgement: Judgement, after: Sequence[str], task_instances: int) -> bool:
    bad = (judgement.duplicates, judgement.lost, judgement.not_green, judgement.unexpected, after)
    return judgement.task_instances == task_instances and not any(bad)
