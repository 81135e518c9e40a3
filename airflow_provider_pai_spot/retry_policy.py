"""
SpotRetryPolicy: Airflow's own retries for losses, and none for what a retry cannot mend.

For people who want to see every loss as a retry in Airflow's UI. It imports exceptions only, so that a DAG file
which names it loads nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.definitions.retry_policy import RetryDecision, RetryPolicy

from airflow_provider_pai_spot.exceptions import SpotCapacityRevoked, SpotJobError, SpotJobFailed, SpotPendingTimeout

if TYPE_CHECKING:
    from airflow.sdk import Context

HOPELESS_EXIT_CODES: Final = (1, 2, 126, 127)
"""
A failing program, wrong usage, not executable, not found: KubeDL, the controller behind DLC, never restarts these.
"""
_HOPELESS_RULES: Final = {"image_pull": "its image cannot be pulled"}
_NOT_READY: Final = "it had its machines, and waited for its image, mounts or checks in vain"
_HOPELESS_CAUSES: Final = {"invalid_request": "its configuration was refused"}


class SpotRetryPolicy(RetryPolicy):
    """
    Decide about Airflow's retries by how the job ended.

    Pair it with `SpotRecovery(max_revocations=0)`, so that each loss is a try of its own. A policy cannot give more
    tries than `retries`. What it does not know is left to Airflow's standard rules.

    :param delay_after_loss: how long to wait after a loss or a wait for capacity in vain, instead of `retry_delay`.
    :param hopeless_exit_codes: exit codes of the command after which no retry is made.
    """

    def __init__(
        self,
        *,
        delay_after_loss: timedelta | None = None,
        hopeless_exit_codes: Iterable[int] = HOPELESS_EXIT_CODES,
    ) -> None:
        self.delay_after_loss = delay_after_loss
        self.hopeless_exit_codes = frozenset(hopeless_exit_codes)

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,  # noqa: ARG002 - Airflow's signature
        max_tries: int,  # noqa: ARG002 - Airflow's signature
        context: Context | None = None,  # noqa: ARG002 - Airflow's signature
    ) -> RetryDecision:
        """Return `retry` for what the market did, `fail` for what would fail again, else Airflow's default."""
        if isinstance(exception, SpotCapacityRevoked):
            return RetryDecision.retry(self.delay_after_loss, "the market took the capacity back")
        if isinstance(exception, SpotPendingTimeout):
            if exception.outcome is not None and exception.outcome.had_machines:
                return RetryDecision.fail(f"a retry cannot mend it: {_NOT_READY}")
            return RetryDecision.retry(self.delay_after_loss, "no capacity within pending_timeout")
        if isinstance(exception, SpotJobFailed) and (reason := self._why_hopeless(exception)):
            return RetryDecision.fail(f"a retry cannot mend it: {reason}")
        return RetryDecision.default()

    def serialize(self) -> dict[str, Any]:
        """Return the policy as JSON; Airflow 3.3 stores only that there is one."""
        delay = None if self.delay_after_loss is None else self.delay_after_loss.total_seconds()
        return {"delay_after_loss": delay, "hopeless_exit_codes": sorted(self.hopeless_exit_codes)}

    @classmethod
    def deserialize(cls, data: Mapping[str, Any]) -> SpotRetryPolicy:
        """Return the policy that `serialize` wrote."""
        delay = data.get("delay_after_loss")
        return cls(
            delay_after_loss=None if delay is None else timedelta(seconds=delay),
            hopeless_exit_codes=data.get("hopeless_exit_codes", HOPELESS_EXIT_CODES),
        )

    def _why_hopeless(self, error: SpotJobError) -> str:
        outcome = error.outcome
        if outcome is None:
            return ""
        if outcome.rule in _HOPELESS_RULES:
            return _HOPELESS_RULES[outcome.rule]
        if outcome.exit_code in self.hopeless_exit_codes:
            return f"its command ended with exit code {outcome.exit_code}"
        return _HOPELESS_CAUSES.get(str(outcome.cause), "")
