"""The id of the job that a sensor is pointed at, checked before anything is asked about it."""

from __future__ import annotations

import reprlib
from typing import Any

from airflow_provider_pai_spot.exceptions import SpotSubmissionRefused

_NO_XCOM = ("", "None")  # what a Jinja template makes of an XCom that is not there
_HINT_MISSING = (
    "The task that it comes from has pushed no XCom: it did not run, was cleared since, or has do_xcom_push=False."
)
_HINT_MANY = "Map the sensor as its submit task is mapped: SpotJobSensor.partial(...).expand(job_id=submit.output)."
_HINT_OTHER = "Give submit.output, or the id as text."


def required_job_id(value: Any, task_id: str) -> str:
    """
    Return a rendered `job_id`, which Airflow may have rendered to anything.

    :raises SpotSubmissionRefused: it is not the id of one job.
    """
    if isinstance(value, str) and value.strip() not in _NO_XCOM:
        return value.strip()
    raise SpotSubmissionRefused(
        f"{task_id}: job_id is {reprlib.repr(value)} ({type(value).__name__}): expected DLC's id of one job, as text. "
        f"{_hint(value)}"
    )


def _hint(value: Any) -> str:
    if value is None or isinstance(value, str):
        return _HINT_MISSING
    is_many = hasattr(value, "__iter__") or hasattr(value, "__getitem__")  # a list, or Airflow's lazy sequence of XComs
    return _HINT_MANY if is_many else _HINT_OTHER
