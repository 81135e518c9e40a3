"""Console URLs, and a link that never fails a task."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from airflow.sdk.execution_time.xcom import XCom
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.links.pai_console import (
    DEFAULT_BASE_URL,
    JOB_CONSOLE_KEY,
    PaiJobLink,
    job_console_url,
)

URL = "https://pai.console.aliyun.com/?regionId=cn-hangzhou&workspaceId=7#/dlc/jobs/dlc1/overview"


def test_the_page_of_a_job() -> None:
    assert job_console_url("", "cn-hangzhou", "7", "dlc1") == URL


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("https://pai.console.alibabacloud.com", "https://pai.console.alibabacloud.com"),
        ("https://pai.console.alibabacloud.com/ ", "https://pai.console.alibabacloud.com"),
        ("http://pai.console.aliyun.com", DEFAULT_BASE_URL),
        ("javascript:alert(1)", DEFAULT_BASE_URL),
        ("https://", DEFAULT_BASE_URL),
        ("https://[broken", DEFAULT_BASE_URL),
        ("", DEFAULT_BASE_URL),
    ],
)
def test_only_an_https_console_is_linked_to(base: Any, expected: Any) -> None:
    assert job_console_url(base, "r", "w", "j").startswith(f"{expected}/?regionId=")


@given(st.text(), st.text(), st.text())
def test_values_stay_where_they_belong(region: Any, workspace: Any, job: Any) -> None:
    parts = urlsplit(job_console_url("", region, workspace, job))
    query = parse_qs(parts.query, keep_blank_values=True)
    assert (query["regionId"], query["workspaceId"]) == ([region], [workspace])
    assert unquote(parts.fragment) == f"/dlc/jobs/{job}/overview"
    assert parts.hostname == "pai.console.aliyun.com"


def test_airflow_finds_the_link_where_the_operator_pushes_it() -> None:
    assert PaiJobLink().xcom_key == JOB_CONSOLE_KEY == "job_console"


class Stored:
    """Stands for Airflow's XComs."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __call__(self, *, ti_key: object, key: str) -> object:
        assert ti_key is not None
        assert key == JOB_CONSOLE_KEY
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@pytest.mark.parametrize(
    ("pushed", "link"),
    [
        pytest.param(URL, URL, id="url"),
        pytest.param({"url": URL}, URL, id="in a dict"),
        pytest.param({"url": None}, "", id="dict without url"),
        pytest.param({}, "", id="empty dict"),
        pytest.param(None, "", id="nothing pushed"),
        pytest.param("", "", id="empty"),
        pytest.param(5, "", id="number"),
        pytest.param("http://pai.console.aliyun.com/", "", id="not https"),
        pytest.param("javascript:alert(1)", "", id="script"),
        pytest.param(RuntimeError("no supervisor"), "", id="Airflow does not answer"),
    ],
)
def test_get_link_returns_the_pushed_url_or_nothing(monkeypatch: pytest.MonkeyPatch, pushed: Any, link: Any) -> None:
    monkeypatch.setattr(XCom, "get_value", Stored(pushed))
    assert PaiJobLink().get_link(SimpleNamespace(), ti_key=SimpleNamespace()) == link


def test_airflow_still_reads_xcoms_the_way_the_link_asks() -> None:
    assert set(inspect.signature(XCom.get_value).parameters) == {"ti_key", "key"}


def test_outside_a_task_there_is_no_link() -> None:
    assert PaiJobLink().get_link(SimpleNamespace(), ti_key=SimpleNamespace()) == ""
