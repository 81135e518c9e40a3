"""
One tree: a type for each way a spot job, or a call to DLC, can end badly.

::

    PaiSpotError(AirflowException)
    ├── SpotJobError                   carries the JobOutcome
    │   ├── SpotCapacityRevoked        the market took the resource back       retried by Airflow's `retries`
    │   ├── SpotJobFailed              the command (or its environment) failed retried by Airflow's `retries`
    │   ├── SpotOutcomeUnknown         no rule could tell                      retried by Airflow's `retries`
    │   ├── SpotTimeout
    │   │   ├── SpotPendingTimeout     not Running within `pending_timeout`   retried by Airflow's `retries`
    │   │   ├── SpotRunTimeout         ran longer than `run_timeout`           retried by Airflow's `retries`
    │   │   └── SpotTotalTimeout       `total_timeout` or `execution_timeout`  retried by Airflow's `retries`
    │   ├── SpotNoProgress             losses without progress between them    never retried
    │   ├── SpotJobStopped             somebody stopped it in the console      never retried
    │   └── SpotWatchEnded             the sensor's job ended, another look
    │                                  would see the same                      never retried
    ├── SpotSubmissionRefused          the request cannot work                 never retried
    └── PaiDlcError                    a call to DLC went wrong
        ├── PaiDlcRefused              4xx: a definite no
        │   ├── PaiDlcNotFound         404: no such job
        │   └── PaiDlcThrottled        429 or Throttling*, carries retry_after (seconds)
        ├── PaiDlcUnavailable          5xx, broken connection, timeout: `ambiguous` says whether the request
        │                              may have taken effect
        └── PaiDlcCredentialsError     no usable credentials

The type decides whether Airflow retries; nobody downstream reads a message to find out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowException, AirflowFailException

if TYPE_CHECKING:
    from airflow_provider_pai_spot.dlc.outcome import JobOutcome


class PaiSpotError(AirflowException):
    """Base of everything this provider raises."""


class SpotJobError(PaiSpotError):
    """
    A job ended and its work is not done.

    :param message: what we saw and what to do next.
    :param outcome: the job's outcome, where one is known.
    """

    def __init__(self, message: str, outcome: JobOutcome | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome


class SpotCapacityRevoked(SpotJobError):
    """The spot resource was taken back and the revocations allowed within one try are used up."""


class SpotJobFailed(SpotJobError):
    """The job failed for a reason that is not a loss of capacity."""


class SpotOutcomeUnknown(SpotJobError):
    """The job ended and no rule could say why; treated as a failure, never as a success."""


class SpotTimeout(SpotJobError):
    """A limit passed; the job was stopped first."""


class SpotPendingTimeout(SpotTimeout):
    """The job found no capacity within `pending_timeout`, or had its machines and did not get ready on them."""


class SpotRunTimeout(SpotTimeout):
    """The job ran longer than `run_timeout`, or into DLC's own limit (JobMaxRunningTimeMinutes)."""


class SpotTotalTimeout(SpotTimeout):
    """The task took longer than `total_timeout` or `execution_timeout`, all attempts together."""


class SpotNoProgress(SpotJobError, AirflowFailException):
    """Jobs lost their capacity one after another and none came further: another one would be paid for in vain."""


class SpotJobStopped(SpotJobError, AirflowFailException):
    """Somebody stopped the job outside Airflow; that was a decision, so it is not undone by a retry."""


class SpotWatchEnded(SpotJobError, AirflowFailException):
    """The job that a sensor watches ended without success; its outcome says how, and a retry would see the same."""


class SpotSubmissionRefused(PaiSpotError, AirflowFailException):
    """
    The request cannot work as it is; sending it again would not change that.

    :param ambiguous: whether there may be a job all the same, because the answer to an earlier request was lost.
    """

    def __init__(self, message: str, *, ambiguous: bool = False) -> None:
        super().__init__(message)
        self.ambiguous = ambiguous


class PaiDlcError(PaiSpotError):
    """
    A call to DLC went wrong.

    Never carries the signed request, headers or the request body.

    :param message: operation, endpoint, region and connection id, what DLC answered and what to do next.
    :param code: DLC's error code, empty if there was no readable answer.
    :param status_code: HTTP status, None if there was no readable answer.
    :param request_id: DLC's request id, for a support ticket.
    """

    def __init__(self, message: str, *, code: str = "", status_code: int | None = None, request_id: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.status_code = status_code  # type: ignore[assignment]  # Airflow's is what its own API answers with
        self.request_id = request_id


class PaiDlcRefused(PaiDlcError):
    """DLC said no (4xx): the request took no effect."""


class PaiDlcNotFound(PaiDlcRefused):
    """DLC does not know the job (404, or code NotFound)."""


class PaiDlcThrottled(PaiDlcRefused):
    """
    Too many calls; the request took no effect.

    :param retry_after: seconds DLC asks us to wait, None if it did not say.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        status_code: int | None = None,
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, code=code, status_code=status_code, request_id=request_id)
        self.retry_after = retry_after


class PaiDlcUnavailable(PaiDlcError):
    """
    No usable answer: 5xx, a broken connection, a timeout, an unreadable body.

    :param ambiguous: whether the request may have taken effect all the same. False only for a connection
        that was never made.
    :param retry_after: seconds DLC asks us to wait, None if it did not say.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        status_code: int | None = None,
        request_id: str = "",
        ambiguous: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, code=code, status_code=status_code, request_id=request_id)
        self.ambiguous = ambiguous
        self.retry_after = retry_after


class PaiDlcCredentialsError(PaiDlcError):
    """No usable credentials: nothing configured, a half-filled pair, or a chain that found none."""
