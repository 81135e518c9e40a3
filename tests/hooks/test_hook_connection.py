"""Which connection a hook uses, what its properties say, and what the test button answers."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook


def test_properties_come_from_the_connection(connection: Any) -> None:
    client = PaiDlcHook.from_connection(connection(namespace="prod", console_base_url="https://c.example.com"))
    assert (client.region_id, client.workspace_id) == ("cn-hangzhou", "7")
    assert (client.namespace, client.console_base_url) == ("prod", "https://c.example.com")


@pytest.mark.parametrize(
    ("region", "network", "endpoint"),
    [
        ("cn-hangzhou", "", "pai-dlc.cn-hangzhou.aliyuncs.com"),
        ("cn-wulanchabu", "vpc", "pai-dlc-vpc.cn-wulanchabu.aliyuncs.com"),
        ("cn-hangzhou", "public", "pai-dlc.cn-hangzhou.aliyuncs.com"),
    ],
)
def test_without_an_endpoint_the_sdk_knows_it(connection: Any, region: Any, network: Any, endpoint: Any) -> None:
    assert PaiDlcHook.from_connection(connection(region_id=region, network=network)).endpoint == endpoint


def test_arguments_win_over_the_connection(connection: Any) -> None:
    client = PaiDlcHook.from_connection(connection(), region_id="cn-shanghai", workspace_id="1")
    assert (client.region_id, client.workspace_id) == ("cn-shanghai", "1")
    assert client.endpoint == "pai-dlc.cn-shanghai.aliyuncs.com"


def test_nothing_happens_in_the_constructor() -> None:
    """No such connection exists, and only the first use says so."""
    client = PaiDlcHook("no_such_connection")
    ok, told = client.test_connection()
    assert not ok
    assert "no_such_connection" in told


def test_a_connection_is_looked_up_by_id(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PAI_LOOKED_UP", connection(region_id="cn-beijing").as_json())
    assert PaiDlcHook("pai_looked_up", workspace_id="2").region_id == "cn-beijing"


def test_the_test_button_says_what_it_used(hook: Any, dlc: Any) -> None:
    dlc.script(dlc.answer(body={"Jobs": []}))
    ok, told = hook(regionid="typo").test_connection()
    assert ok
    for part in (f"http://127.0.0.1:{dlc.port}", "region cn-hangzhou", "workspace 7", "AccessKey", "regionid"):
        assert part in told
    assert dlc.seen[0].query["PageSize"] == "1"


@pytest.mark.parametrize(
    ("failing", "told"),
    [
        ({"status": 403, "body": {"Code": "Forbidden.RAM", "Message": "no"}}, "Forbidden.RAM"),
        ({"status": 503, "body": {}}, "503"),
        ({"body": b"<html>"}, "proxy or gateway"),
        ({"hang_up": True}, "no usable answer"),
    ],
)
def test_the_test_button_tells_what_failed_after_one_request(hook: Any, dlc: Any, failing: Any, told: Any) -> None:
    dlc.script(dlc.answer(**failing))
    ok, message = hook().test_connection()
    assert not ok
    assert told in message
    assert len(dlc.seen) == 1


def test_get_conn_is_the_sdks_own_client(hook: Any, dlc: Any) -> None:
    from alibabacloud_pai_dlc20201203.models import GetJobRequest

    dlc.script(dlc.answer(body={"JobId": "dlc1", "Status": "Running"}))
    assert hook().get_conn().get_job("dlc1", GetJobRequest()).body.status == "Running"
