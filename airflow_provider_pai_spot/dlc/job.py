"""
A job as DLC shows it: a read model over the raw JSON of GetJob or of a ListJobs item.

Raw, because the vendor SDK's models drop fields (exit codes) and break on unexpected shapes. Nothing here
raises on odd input, and nothing here knows what time it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from airflow_provider_pai_spot.dlc.pods import Pod, read_pods
from airflow_provider_pai_spot.dlc.redaction import LONGEST_TEXT
from airflow_provider_pai_spot.dlc.status import Phase, is_decided, phase_of
from airflow_provider_pai_spot.dlc.timeline import (
    Stretch,
    present_pending_start,
    read_timeline,
    seconds_between,
    seconds_in,
)
from airflow_provider_pai_spot.dlc.wire import integer_of, mapping_of, mappings_of, text_of, time_of

_FINISHED_FIELDS = ("GmtFinishTime", "GmtSuccessedTime", "GmtFailedTime", "GmtStoppedTime")  # DLC's spelling
_NO_OVERSOLD = ("", "Forbidden", "ForbiddenQuotaOverSold")


class Restarts(NamedTuple):
    """
    Restarts DLC itself made.

    :param limit: None where DLC shows none (ListJobs).
    """

    used: int
    limit: int | None


class Job:
    """
    One DLC job.

    :param raw: the JSON of GetJob, or one item of ListJobs.
    """

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw: Mapping[str, Any] = mapping_of(raw)
        self.timeline: list[Stretch] = read_timeline(self.raw.get("StatusHistory"))
        self.pods: list[Pod]
        self.history_pods: list[Pod]
        self.pods, self.history_pods = read_pods(self.raw.get("Pods"))

    def __repr__(self) -> str:
        return f"Job({self.job_id!r}, {self.status!r})"

    @property
    def job_id(self) -> str:
        """DLC's id."""
        return text_of(self.raw.get("JobId"))

    @property
    def display_name(self) -> str:
        """The name somebody gave it; not unique."""
        return text_of(self.raw.get("DisplayName"))

    @property
    def status(self) -> str:
        """The status as DLC spells it, known to us or not."""
        return text_of(self.raw.get("Status"))

    @property
    def sub_status(self) -> str:
        """The sub-status; DLC documents only `Restarting`."""
        return text_of(self.raw.get("SubStatus"))

    @property
    def phase(self) -> Phase:
        """What the status means to somebody who waits."""
        return phase_of(self.status)

    @property
    def is_decided(self) -> bool:
        """Whether the outcome is known."""
        return is_decided(self.status)

    @property
    def reason_code(self) -> str:
        """DLC's reason for the status, often empty; a live job can have one too."""
        return text_of(self.raw.get("ReasonCode"))

    @property
    def reason_message(self) -> str:
        """
        The reason in words, or a JSON document as text; the beginning of one that is very long.

        No page names a limit, and patterns over a megabyte of text would hold the triggerer's loop for seconds.
        """
        return self._whole_reason[:LONGEST_TEXT]

    @property
    def _whole_reason(self) -> str:
        message = self.raw.get("ReasonMessage")
        if isinstance(message, (dict, list)):
            return json.dumps(message, ensure_ascii=False, default=str)
        return text_of(message)

    @property
    def reason_document(self) -> dict[str, Any] | None:
        """The reason message where it is a JSON object, which is how platform faults are told."""
        try:
            document = json.loads(self._whole_reason)
        except (ValueError, RecursionError):
            return None
        return mapping_of(document) if isinstance(document, dict) else None

    @property
    def resource_type(self) -> str:
        """`ECS`, `Lingjun` or `ACS`."""
        return text_of(self.raw.get("ResourceType"))

    @property
    def created_at(self) -> datetime | None:
        """When CreateJob was accepted."""
        return time_of(self.raw.get("GmtCreateTime"))

    @property
    def running_since(self) -> datetime | None:
        """When it began to run: the present stretch, or the last one of a job that does not run now."""
        running = [stretch.start for stretch in self.timeline if phase_of(stretch.status) is Phase.RUNNING]
        return running[-1] if running else time_of(self.raw.get("GmtRunningTime"))

    @property
    def finished_at(self) -> datetime | None:
        """When its outcome was decided; None while it is not, whatever the time fields say."""
        if not self.is_decided:
            return None
        moments = (time_of(self.raw.get(field)) for field in _FINISHED_FIELDS)
        shown = next((moment for moment in moments if moment is not None), None)
        return shown or next((stretch.start for stretch in self.timeline if is_decided(stretch.status)), None)

    @property
    def tags(self) -> dict[str, str]:
        """`Settings.Tags`, texts only."""
        return _texts(mapping_of(self.raw.get("Settings")).get("Tags"))

    @property
    def envs(self) -> dict[str, str]:
        """`Envs`, and `CustomEnvs` where DLC shows them there. May hold secrets: never log values."""
        custom = {text_of(item.get("Key")): item.get("Value") for item in self._items("CustomEnvs")}
        return _texts(custom) | _texts(self.raw.get("Envs"))

    @property
    def roles(self) -> list[dict[str, Any]]:
        """`JobSpecs`, as far as they are echoed."""
        return self._items("JobSpecs")

    @property
    def spot_specs(self) -> list[dict[str, Any]] | None:
        """The SpotSpec of each role that shows one; None if none does, which proves nothing."""
        shown = [mapping_of(role.get("SpotSpec")) for role in self.roles]
        return [spec for spec in shown if spec] or None

    @property
    def is_spot(self) -> bool:
        """Whether it shows spot terms; False can also mean that they are not echoed."""
        return self.spot_specs is not None or any(
            role.get("ElasticSpotSpecs") or role.get("UseSpotInstance") is True for role in self.roles
        )

    @property
    def uses_idle_quota(self) -> bool:
        """Whether it runs on quota that others leave idle, and is evicted when they return."""
        settings = mapping_of(self.raw.get("Settings"))
        kinds = [text_of(item.get("OversoldType")) for item in (settings, *self.roles)]
        return self.raw.get("UseOversoldResource") is True or any(kind not in _NO_OVERSOLD for kind in kinds)

    @property
    def restart_times(self) -> Restarts:
        """Restarts made and allowed; DLC writes `3/10` in GetJob and `3` in ListJobs."""
        used, _, limit = text_of(self.raw.get("RestartTimes")).partition("/")
        return Restarts(integer_of(used) or 0, integer_of(limit))

    @property
    def max_running_seconds(self) -> int | None:
        """The limit DLC itself keeps, None for none (it shows 0 for unlimited)."""
        minutes = integer_of(self.raw.get("JobMaxRunningTimeMinutes"))
        return minutes * 60 if minutes and minutes > 0 else None

    def seconds_running(self, now: datetime | None = None) -> float:
        """
        Return the seconds in Running so far; never from `Duration`, which counts queueing.

        :param now: ends a stretch that is still open; None leaves it out.
        """
        end = self.finished_at or now
        if any(phase_of(stretch.status) is Phase.RUNNING for stretch in self.timeline):
            return seconds_in(self.timeline, Phase.RUNNING, end)
        return seconds_between(time_of(self.raw.get("GmtRunningTime")), end)

    def seconds_pending(self, now: datetime | None = None) -> float:
        """
        Return the seconds before and between running, from GmtCreateTime on.

        :param now: ends a stretch that is still open; None leaves it out.
        """
        end = self.finished_at or now
        if self.timeline:
            before = seconds_between(self.created_at, self.timeline[0].start)
            return before + seconds_in(self.timeline, Phase.PENDING, end)
        return seconds_between(self.created_at, time_of(self.raw.get("GmtRunningTime")) or end)

    def pending_since(self, now: datetime) -> datetime | None:
        """
        Return when the present wait for capacity began; None if the job does not wait.

        From GmtCreateTime the first time, after a restart from the start of that stretch. A stretch that the
        history does not show yet begins now, so that a limit cannot expire on a guess.
        """
        if self.phase is not Phase.PENDING:
            return None
        start = present_pending_start(self.timeline)
        if self._has_never_run:
            start = self.created_at or start
        return min(start or now, now)

    @property
    def _has_never_run(self) -> bool:
        return self.running_since is None

    def _items(self, key: str) -> list[dict[str, Any]]:
        return mappings_of(self.raw.get(key))


def _texts(value: object) -> dict[str, str]:
    return {key: item for key, item in mapping_of(value).items() if key and isinstance(item, str)}
