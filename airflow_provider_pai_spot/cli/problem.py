"""What went wrong with a command, told in one line."""

from __future__ import annotations


class CliProblem(Exception):
    """
    A command cannot do what it was asked for; the message is shown without a traceback.

    The message says what was seen and what to do next.
    """


def is_explained(error: BaseException) -> bool:
    """Whether the message alone tells a person what to do; anything else is a bug and keeps its traceback."""
    if isinstance(error, CliProblem):
        return True
    # Loads Airflow, as whatever raised one of these has done already.
    from airflow.sdk.exceptions import AirflowNotFoundException

    from airflow_provider_pai_spot.attempts.judging import InvalidVerdictRules
    from airflow_provider_pai_spot.dlc.refusal import InvalidJobRequest
    from airflow_provider_pai_spot.exceptions import PaiSpotError

    return isinstance(error, (PaiSpotError, InvalidJobRequest, InvalidVerdictRules, AirflowNotFoundException))
