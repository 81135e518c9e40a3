"""
Everything the emulator does, in one table, and how sure we are that DLC does the same.

`documented`: the vendor's API reference, help pages or official tooling say so. `observed`: seen in published
payloads or programs that use DLC. `assumed`: nobody says; the most plausible reading was taken. Whatever is not
documented can be switched: `DlcEmulator(behaviours={"reclaim_reason_code": "SpotInstanceReleased"})`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from airflow_provider_pai_spot.emulator.spot_terms import TREATMENTS


class Certainty(StrEnum):
    """How sure we are that DLC behaves so."""

    DOCUMENTED = "documented"
    OBSERVED = "observed"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """
    One thing the emulator does.

    :param name: how `DlcEmulator(behaviours={name: value})` calls it.
    :param default: what happens unless it is switched.
    :param certainty: how sure we are that DLC does the same.
    :param source: where that comes from.
    :param allowed: the values it can be switched to; empty: any; the default alone: none is offered yet.
    """

    name: str
    default: Any
    certainty: Certainty
    source: str
    allowed: tuple[Any, ...] = ()

    @property
    def switchable(self) -> bool:
        """Whether it may be switched: what is documented may not."""
        return self.certainty is not Certainty.DOCUMENTED


QUOTA_CHECKS = ("SelfQuotaLimit", "AncestorQuotaLimit", "UserLimit", "QueueStrategyLimit")
_D, _O, _A = Certainty.DOCUMENTED, Certainty.OBSERVED, Certainty.ASSUMED

BEHAVIOURS: tuple[Behaviour, ...] = (
    # --- reclaim ---------------------------------------------------------------------------------------
    Behaviour("reclaim_pod_sub_status", "Evicted", _D, "GetJob reference: Pods[].SubStatus Normal | Evicted"),
    Behaviour("reclaim_exit_code", 143, _D, "official job diagnostics: 143 = SIGTERM, pod reclaimed"),
    Behaviour("reclaim_reason_code", "JobFailed", _A, "one worked example; no list of codes exists; may be ''"),
    Behaviour(
        "reclaim_reason_message",
        "{job_type} {job_id} is failed because {count} {role} replica(s) failed: spot instance preempted.",
        _A,
        "official tooling looks for 'preempted' or 'evicted' in the message; the sentence itself is a guess",
    ),
    Behaviour("reclaim_cleans_survivors", True, _A, "the other pods of a lost job are ended with SIGTERM too", (True,)),
    Behaviour("lingjun_price", "average", _D, "Lingjun bids are compared with the average price"),
    Behaviour("lingjun_average_seconds", 3600.0, _A, "the window of that average is nowhere stated"),
    Behaviour("general_price", "current", _D, "general computing bids are compared with the current price"),
    Behaviour("general_spot_bidding", False, _A, "API reference: Bidding is for Lingjun only; tooling disagrees"),
    Behaviour(
        "elastic_spot_specs_bid", False, _A, "units of ElasticSpotSpecs contradict SpotSpec: never outbid", (False,)
    ),
    Behaviour("market_takes_from", "lowest bid", _A, "who loses when the stock shrinks", ("lowest bid",)),
    # --- AIMaster --------------------------------------------------------------------------------------
    Behaviour("aimaster_default_max_restarts", 3, _D, "--max-num-of-job-restart; beyond it the job is failed"),
    Behaviour("aimaster_restarts_general_computing", False, _A, "the help pages contradict each other"),
    Behaviour("aimaster_pod_listed", True, _O, "an extra aimaster pod runs beside the job and shows in Pods[]"),
    Behaviour("aimaster_restarts_after", "revocation", _A, "a failing command ends the job", ("revocation",)),
    Behaviour("restart_reason", "SpotInstancePreempted", _A, "RestartRecord[].Reason has no published values"),
    # --- ends ------------------------------------------------------------------------------------------
    Behaviour("failure_reason_code", "JobFailed", _A, "official tooling's example; '' is possible too"),
    Behaviour(
        "timeout_status", "Failed", _A, "JobMaxRunningTimeMinutes: no page names the status", ("Failed", "Stopped")
    ),
    Behaviour("timeout_reason_code", "JobFailed", _A, "JobMaxRunningTimeMinutes: no page names a code"),
    Behaviour("stop_finished_code", "BadRequest", _A, "HTTP 400 and its message are documented, the code is not"),
    Behaviour("stop_twice_accepted", True, _A, "StopJob on a Stopping job answers 200 and changes nothing"),
    Behaviour("reserving_ends", True, _A, "*Reserving becomes its terminal status after JobReservedMinutes"),
    Behaviour("stop_ends_reservation", True, _A, "StopJob on *Reserving leads to its terminal status", (True,)),
    Behaviour("stopped_pod_exit_code", 143, _A, "a pod that was ended shows SIGTERM's code and Failed", (143,)),
    Behaviour("timeout_counts_from", "first Running", _A, "waiting and restarts do not reset it", ("first Running",)),
    # --- what is shown ---------------------------------------------------------------------------------
    Behaviour("echo_spot_spec", True, _A, "whether GetJob and ListJobs show SpotSpec again"),
    Behaviour("settings_in_list", True, _A, "JobItem has Settings; whether ListJobs fills it is not said"),
    Behaviour("pods_in_list", False, _A, "JobItem has Pods; whether ListJobs fills it is not said"),
    Behaviour("reason_codes_on_the_way", "KubeDL", _O, "JobEnqueued was seen; the rest by analogy", ("KubeDL",)),
    Behaviour("ids_of_workspace_and_user", "made up", _A, "WorkspaceName, UserId, ClusterId, Username", ("made up",)),
    Behaviour("open_history_end_time", "", _A, "EndTime of the current StatusHistory entry; None leaves it out"),
    Behaviour("single_worker_pod_role", "worker", _O, "both -worker-0 and -master-0 were seen", ("worker", "master")),
    Behaviour("restart_times_format", "used/max", _D, "GetJob '0/10', ListJobs '1'"),
    Behaviour("pods_appear_at", "EnvPreparing", _A, "pods exist once capacity was won", ("EnvPreparing",)),
    Behaviour("event_utc_offset_hours", 8, _O, "pod event lines carry China local time without a zone"),
    Behaviour("log_utc_offset_hours", 0, _A, "zone of the time in front of a log line"),
    Behaviour("log_window", "tail", _A, "which lines MaxLines keeps", ("tail", "head")),
    Behaviour("log_end_belongs", True, _A, "whether lines of the second that EndTime names are in the window"),
    Behaviour("log_lag_seconds", 0.0, _A, "delay before a line shows in GetPodLogs"),
    # --- listing ---------------------------------------------------------------------------------------
    Behaviour("list_page_size", 10, _D, "ListJobs: PageSize 1-100, default 10"),
    Behaviour("list_show_own", True, _D, "ListJobs: ShowOwn defaults to true"),
    Behaviour("list_window_days", 7, _D, "ListJobs: jobs of the last 7 days unless StartTime is given"),
    Behaviour(
        "list_without_workspace",
        "every workspace",
        _A,
        "whose jobs ListJobs shows without WorkspaceId and FromAllWorkspaces",
        ("every workspace", "the default workspace"),
    ),
    Behaviour("list_lag_seconds", 0.0, _A, "delay before a created job shows in ListJobs"),
    Behaviour("payment_type_spot_if_any_role_bids", True, _A, "of a job with on-demand roles too", (True,)),
    Behaviour("tag_resources_share_settings_tags", True, _A, "TagResources writes what Tags of ListJobs reads"),
    # --- CreateJob -------------------------------------------------------------------------------------
    Behaviour("request_limit_bytes", 65536, _D, "CreateJob: the whole request"),
    Behaviour("off_grid_bid", "accept", _A, "0.85 or 1.0: 10 % steps are the console's words", ("accept", "reject")),
    Behaviour("unknown_ecs_spec", "accept", _A, "an instance type this emulator has no row for", ("accept", "reject")),
    Behaviour("spot_terms", "kept", _A, "no page promises that a job bids as CreateJob asked", TREATMENTS),
    Behaviour("default_workspace_id", "1", _A, "a request without WorkspaceId silently gets the default one"),
    # --- PAI Studio ------------------------------------------------------------------------------------
    Behaviour("quota_diagnosis", "waiting jobs", _D, "official diagnostics: 400 or 404 once a job does not queue"),
    Behaviour(
        "quota_check_failing",
        "",
        _A,
        "quotas have no limits here: which check is said to fail",
        ("", *QUOTA_CHECKS),
    ),
    # --- execution -------------------------------------------------------------------------------------
    Behaviour("rank_variables", True, _A, "RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, as PyTorchJob sets them"),
    Behaviour("reclaim_grace_seconds", 30.0, _A, "SIGTERM, grace, SIGKILL; no page says whether a reclaim waits"),
)

_BY_NAME = {behaviour.name: behaviour for behaviour in BEHAVIOURS}


class Behaviours:
    """
    The table with a caller's switches applied.

    :param switches: other values for behaviours that are not documented.
    Raises ValueError for a name that is not in the table, a documented one, or a value that is not allowed.
    """

    def __init__(self, switches: Mapping[str, Any] | None = None) -> None:
        self._values = {behaviour.name: behaviour.default for behaviour in BEHAVIOURS}
        for name, value in (switches or {}).items():
            self.switch(name, value)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def switch(self, name: str, value: Any) -> None:
        """Let behaviour `name` have another value from now on. Raises ValueError as the constructor does."""
        behaviour = _BY_NAME.get(name)
        if behaviour is None:
            raise ValueError(f"There is no behaviour {name!r}; the table has {', '.join(sorted(_BY_NAME))}.")
        if not behaviour.switchable:
            raise ValueError(f"{name!r} is documented ({behaviour.source}) and cannot be switched.")
        if behaviour.allowed and value not in behaviour.allowed:
            raise ValueError(f"behaviour {name!r} is {value!r}: expected one of {behaviour.allowed}.")
        self._values[name] = value
