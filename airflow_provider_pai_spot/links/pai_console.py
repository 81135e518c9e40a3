"""
The link from a task to its job in the PAI console.

The operator pushes the job's URL (a str) as the XCom `job_console` as soon as it knows the job. Airflow's
UI shows what it finds under a link's `xcom_key`, and that is the same key: the link is there while the task
still waits. After each slice of the task Airflow calls `get_link` and stores what it returns under the same
key again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

JOB_CONSOLE_KEY = "job_console"
DEFAULT_BASE_URL = "https://pai.console.aliyun.com"


def job_console_url(console_base_url: str, region_id: str, workspace_id: str, job_id: str) -> str:
    """
    Return the console page of a job.

    :param console_base_url: another console, for example of the international site; used only if it is https.
    """
    base = console_base_url.strip().rstrip("/") if _is_https(console_base_url) else DEFAULT_BASE_URL
    region, workspace, job = (quote(value, safe="") for value in (region_id, workspace_id, job_id))
    return f"{base}/?regionId={region}&workspaceId={workspace}#/dlc/jobs/{job}/overview"


class PaiJobLink(BaseOperatorLink):
    """Opens the job in the PAI console."""

    name = "PAI DLC job"

    @property
    def xcom_key(self) -> str:
        """The XCom that holds the URL; the operator pushes it itself, so that the link is there at once."""
        return JOB_CONSOLE_KEY

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002 - Airflow calls it so
        """Return the pushed URL, or '' where there is none; a link must never fail a task."""
        from airflow.sdk.execution_time.xcom import XCom  # only a worker needs it

        try:
            pushed = XCom.get_value(ti_key=ti_key, key=JOB_CONSOLE_KEY)
        except Exception:  # noqa: BLE001 - no answer from Airflow is no link
            return ""
        url = pushed.get("url") if isinstance(pushed, dict) else pushed
        return url if isinstance(url, str) and _is_https(url) else ""


def _is_https(url: str) -> bool:
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname)
