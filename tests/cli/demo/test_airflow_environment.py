from pathlib import Path

import pytest

from airflow_provider_pai_spot.cli.demo.airflow_environment import airflow_environment, clean_environment


@pytest.mark.parametrize(
    "name",
    ["HTTPS_PROXY", "http_proxy", "NO_PROXY", "AIRFLOW_HOME", "AIRFLOW__CORE__EXECUTOR", "ALIBABA_CLOUD_ACCESS_KEY_ID"],
)
def test_neither_proxies_nor_another_airflow_nor_cloud_keys_get_in(name: str) -> None:
    assert set(clean_environment({name: "x", "LANG": "C"})) == {"LANG", "PATH"}


def test_the_interpreter_that_runs_us_comes_first() -> None:
    assert clean_environment({"PATH": "/usr/bin"})["PATH"].endswith(":/usr/bin")


def test_everything_listens_on_loopback_and_speaks_to_the_same_port() -> None:
    environment = airflow_environment(
        home=Path("/home"), dags_folder=Path("/dags"), port=4711, connections={"pai_dlc_default": "x"}, parallelism=2
    )
    addresses = {name: value for name, value in environment.items() if "4711" in value}
    assert addresses == {
        "AIRFLOW__API__PORT": "4711",
        "AIRFLOW__API__BASE_URL": "http://127.0.0.1:4711",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": "http://127.0.0.1:4711/execution/",
    }
    assert environment["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert environment["AIRFLOW_CONN_PAI_DLC_DEFAULT"] == "x"
