"""Copying pods' logs into the task log while a job runs: a companion of `follow`, in workers and triggerers alike."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from airflow_provider_pai_spot.attempts.commands import Command, Do, Pause
from airflow_provider_pai_spot.attempts.log_cursor import Line
from airflow_provider_pai_spot.attempts.log_notes import Cursors, Notes, Part, ShownSoFar
from airflow_provider_pai_spot.attempts.log_options import NOT_UPLOADED, OVERWRITTEN, LogOptions
from airflow_provider_pai_spot.attempts.log_reading import MAX_LINES, LogSource, Reading, read_new
from airflow_provider_pai_spot.attempts.log_sources import PodLog, PodLogs
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.pods import short_pod_id
from airflow_provider_pai_spot.dlc.progress import last_progress
from airflow_provider_pai_spot.dlc.stamps import in_utc, likely_offset
from airflow_provider_pai_spot.dlc.wire import iso

_JUST_ENDED = timedelta(minutes=1)
"""How far DLC's clock and ours may differ: an end that lies further back is no news, and all its lines are there."""

_LONGEST_LOOK = timedelta(seconds=20)
"""While logs are read nobody looks at the job and its limits; a DLC that answers slowly must not make that long."""

_LONGEST_END = timedelta(minutes=2)
_MOST_READINGS = 20
"""
Of a log that nobody will look at again, one reading follows another; a worker or a triggerer is not held for ever.
"""

_SINGLY = 100
"""Lines of one look that have a record each; a burst comes in blocks, for a record costs the triggerer 1 ms of CPU."""
_BLOCK = 50

_READ_AT_ONCE, _RECORD_SIZE, _ON_THE_WAY = 4_096, 250, 200_000
"""Bytes: what Airflow 3.3's triggerer reads of log records at one turn, adds to each, and what a socket holds."""
_TURN = 0.2

Steps = Generator[Command, Any, None]


class LogStream:
    """
    Shows each line of a job's pods once, in the order it was written, and remembers how far it came.

    :param log: gets the lines as records of its own kind, and so Airflow's masking of secrets applies.
    :param notes: where it is written down how far the lines were shown; None: nobody goes on after us.
    :param try_number: of Airflow; each try has a log of its own.
    :param writer: `THIS_PROCESS` in a triggerer, which overwrites its own log; '' elsewhere.
    """

    def __init__(
        self,
        options: LogOptions,
        *,
        now: Callable[[], datetime],
        log: Any,
        notes: Notes | None = None,
        try_number: int = 0,
        writer: str = "",
    ) -> None:
        self._options = options
        self._now = now
        self._log = log
        self._notes = notes
        self._writer = writer
        self._offset = options.offset
        self._due_at = now()
        self._shown = ShownSoFar(try_number=try_number)
        self._logs = PodLogs({}, most=options.pods)
        self._has_begun = False
        self._progress: dict[str, Mapping[str, Any]] = {}
        self._said: set[str] = set()
        self._broken = False

    # --- what `follow` calls ---

    def look(self, job: Job) -> Steps:
        """Copy what is new, if it is time to."""
        if self._now() >= self._due_at:
            yield from self._apart(self._copy(job))
            self._due_at = self._now() + timedelta(seconds=self._options.interval)

    def seconds_to_next(self, job: Job) -> float | None:  # noqa: ARG002 - the protocol's signature
        """Return the seconds until the next look; None while no pod of the job has begun."""
        if self._broken or not self._logs.open():
            return None
        return max(0.0, (self._due_at - self._now()).total_seconds())

    def end(self, job: Job) -> Steps:
        """Copy the rest of a job that is over."""
        yield from self._apart(self._finish(job))

    @property
    def progress(self) -> Mapping[str, Any] | None:
        """The last progress that was printed, None if none was seen; of several pods the first counts."""
        return next((self._progress[pod_id] for pod_id in self._logs.pod_ids if pod_id in self._progress), None)

    def give_up(self, error: Exception) -> None:
        """Copy nothing any more, and say why."""
        self._broken = True
        self._log.warning("pod logs are not copied any more: %s: %s", type(error).__name__, error)

    # --- how ---

    def _apart(self, steps: Steps) -> Steps:
        """Let no trouble with logs end the waiting for the job."""
        if self._broken:
            return
        try:
            yield from steps
        except Exception as error:  # noqa: BLE001 - a job is worth more than its log
            self.give_up(error)

    def _finish(self, job: Job) -> Steps:
        yield from self._copy_all(job)
        lag = self._options.lag
        ended = job.finished_at or self._now()
        if lag and self._logs.open() and self._now() - ended < lag + _JUST_ENDED:
            yield Pause(lag.total_seconds())
            yield from self._copy_all(job)
        for log in self._logs.behind():
            self._tell_what_is_left(log)
        self._logs.close()
        yield from self._write_down(job, has_ended=True)

    def _copy_all(self, job: Job) -> Steps:
        """Copy what one look can read, then what it had to leave."""
        give_up_at = self._now() + _LONGEST_END
        yield from self._copy(job)
        for _ in range(_MOST_READINGS):
            if self._now() >= give_up_at or not self._logs.behind():
                break
            yield from self._copy(job, self._logs.behind())

    def _copy(self, job: Job, chosen: list[PodLog] | None = None) -> Steps:
        if not self._has_begun:
            yield from self._begin(job)
        self._logs.see(job, self._now())
        if left_out := self._logs.left_out(job):
            about = "the logs of %d more pods are not copied while they run ([pai_spot] log_pods)"
            self._once("pods", about, left_out)
        before = self._logs.cursors()
        logs = self._logs.open() if chosen is None else chosen
        room = max(1, self._options.lines_per_look // max(1, len(logs)))
        new: list[tuple[PodLog, list[Line]]] = []
        enough = self._now() + _LONGEST_LOOK
        for log in logs:
            if self._now() > enough and not job.is_decided:
                break  # the rest comes first at the next look
            reading = yield from self._read(log.source, log, room)
            log.took(reading, self._now(), self._options.lag)
            self._keep_progress(log.source.pod_id, reading.lines)
            new.append((log, reading.lines))
        new.sort(key=lambda one: one[0].number)
        found = [(log.source.pod_id, line) for log, lines in new for line in lines]
        if not found:
            return
        if self._is_far_away:
            yield from self._write_down(job, copying=before)
        yield from self._put(found)
        yield from self._write_down(job)

    @property
    def _is_far_away(self) -> bool:
        """Whether lines and notes go to Airflow on two ways, and it can be ended between the two."""
        return self._notes is not None and self._writer != ""

    def _read(self, source: LogSource, log: PodLog, room: int) -> Generator[Command, Any, Reading]:
        reading = yield from read_new(
            source,
            log.cursor,
            now=self._now(),
            overlap=self._options.lag,
            offset=self._offset,
            most=room,
            not_before=log.not_before,
        )
        if self._offset is None:
            seconds = [line.second for line in reading.lines]
            self._offset = likely_offset(seconds, earliest=source.begins_at, latest=self._now())
        self._tell(source, reading)
        return reading

    def _put(self, found: list[tuple[str, Line]]) -> Steps:
        answer = yield Do(partial(self._show, _in_order(found)))
        if isinstance(answer, Exception):
            raise answer
        if self._is_far_away:
            yield Pause(_seconds_to_arrive(found))

    def _show(self, found: list[tuple[str, Line]]) -> None:
        lines = [f"[{short_pod_id(pod_id)}] {in_utc(line.text, self._offset)}" for pod_id, line in found]
        for line in lines[:_SINGLY]:
            self._log.info("%s", line)
        for start in range(_SINGLY, len(lines), _BLOCK):
            self._log.info("%s", "\n".join(lines[start : start + _BLOCK]))

    def _tell(self, source: LogSource, reading: Reading) -> None:
        name = short_pod_id(source.pod_id)
        if reading.problem is not None:
            self._once(f"problem {name}", "the log of %s cannot be read for now: %s", name, reading.problem)
        else:
            self._said.discard(f"problem {name}")
        if reading.crowded:
            about = "%s wrote more than %d lines in one second (%s); DLC does not give all of them: some may be missing"
            self._once(f"crowded {name}", about, name, MAX_LINES, reading.crowded)
        if reading.flooded:
            about = "%s: … lines skipped: more than %d are new at one look ([pai_spot] log_lines_per_look)"
            self._log.warning(about, name, len(reading.lines))

    def _tell_what_is_left(self, log: PodLog) -> None:
        about = "%s: … lines skipped: its log could not be read to its end in time; what is left begins at %s"
        self._log.warning(about, short_pod_id(log.source.pod_id), iso(log.reached))

    def _once(self, what: str, message: str, *arguments: object) -> None:
        if what not in self._said:
            self._said.add(what)
            self._log.warning(message, *arguments)

    def _keep_progress(self, pod_id: str, lines: list[Line]) -> None:
        if progress := last_progress([line.text for line in lines]):
            self._progress[pod_id] = progress

    # --- going on where somebody stopped ---

    def _begin(self, job: Job) -> Steps:
        if self._notes is not None:
            value = yield Do(self._notes.read)
            if isinstance(value, Exception):
                self._once("notes", "how far pod logs were copied cannot be read: lines may be repeated (%s)", value)
            else:
                self._shown = ShownSoFar.from_json(value, self._shown.try_number)
                self._offset = self._shown.offset if self._offset is None else self._offset
        yield from self._repeat()
        known = self._shown.cursors(job.job_id)
        self._logs = PodLogs(known, most=self._options.pods, read_at=self._shown.at if known else None)
        self._has_begun = True

    def _repeat(self) -> Steps:
        """Show again what was shown in this try and is not there any more."""
        gone = [part for part in self._shown.parts if self._is_gone(part)]
        for part in gone:
            self._log.info("Airflow keeps no lines of %s that were copied before; here they are again", part.job_id)
            yield from self._show_again(part)
        if self._shown.in_doubt and self._shown.parts[-1] not in gone:
            self._log.warning("a triggerer was ended while it copied lines: those of one look may be here twice")
            self._shown = self._shown.without_last_look()
        self._shown = self._shown.taken_over(gone, self._writer)

    def _is_gone(self, part: Part) -> bool:
        if not (self._writer and part.writer):
            return False  # what workers write stays
        if part.writer == self._writer:
            return OVERWRITTEN in self._options.repeats
        return NOT_UPLOADED in self._options.repeats and not part.has_ended

    def _show_again(self, part: Part) -> Steps:
        room = max(1, self._options.lines_per_look // max(1, len(part.end)))
        found: list[tuple[str, Line]] = []
        for key, end in part.end.items():
            log = PodLog.of_key(part.job_id, key, begins_at=part.since, cursor=part.begin.get(key))
            lines = yield from self._read_all(log, room)
            found += [(log.source.pod_id, line) for line in end.covered(lines, self._options.lag)]
        yield from self._put(found)

    def _read_all(self, log: PodLog, room: int) -> Generator[Command, Any, list[Line]]:
        lines: list[Line] = []
        give_up_at = self._now() + _LONGEST_END
        for _ in range(_MOST_READINGS):
            reading = yield from self._read(log.source, log, room)
            log.took(reading, self._now(), self._options.lag)
            lines += reading.lines
            if log.reached is None or reading.problem is not None or self._now() >= give_up_at:
                break
        if log.reached is not None:
            self._tell_what_is_left(log)
        return lines

    def _write_down(self, job: Job, *, copying: Cursors | None = None, has_ended: bool = False) -> Steps:
        cursors = self._logs.cursors()
        if self._notes is None or not cursors:
            return
        part = Part(job_id=job.job_id, writer=self._writer, since=self._logs.since, end=cursors)
        self._shown = self._shown.advanced(part, offset=self._offset, at=self._now(), copying=copying)
        self._shown = self._shown.ended(self._writer) if has_ended else self._shown
        answer = yield Do(partial(self._notes.write, self._shown.to_json()))
        if isinstance(answer, Exception):
            about = "how far pod logs were copied cannot be written down: lines may be repeated (%s)"
            self._once("notes", about, answer)


def _seconds_to_arrive(found: list[tuple[str, Line]]) -> float:
    """
    Return how long a triggerer's lines are on their way from its trigger to its log file.

    It takes 4 kB of them at each turn of a loop that asks the database thrice; a request of the trigger can overtake
    them. A fifth of a second for a turn was measured on a machine with ten times more to do than it can.
    """
    size = sum(len(line.text) + _RECORD_SIZE for _, line in found)
    return _TURN * (2 + min(size, _ON_THE_WAY) // _READ_AT_ONCE)


def _in_order(found: list[tuple[str, Line]]) -> list[tuple[str, Line]]:
    """Sort lines of several pods by the second they were written in; those of one pod stay in their order."""
    newest: dict[str, str] = {}
    placed: list[tuple[str, tuple[str, Line]]] = []
    for pod_id, line in found:
        newest[pod_id] = max(newest.get(pod_id, ""), line.second)
        placed.append((newest[pod_id], (pod_id, line)))
    return [entry for _, entry in sorted(placed, key=lambda one: one[0])]
