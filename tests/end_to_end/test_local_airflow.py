from pathlib import Path

import pytest

from airflow_provider_pai_spot.cli.demo.airflow_processes import AirflowDidNotStart, LocalAirflow
from airflow_provider_pai_spot.cli.demo.sessions import session_members


def test_a_start_that_fails_names_the_component_and_shows_its_log(tmp_path: Path) -> None:
    nowhere = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{tmp_path}/missing/airflow.db"}
    airflow = LocalAirflow(tmp_path, tmp_path / "home", environment=nowhere)
    with (
        pytest.raises(AirflowDidNotStart, match=r"(?s)Airflow db-migrate ended with exit code 1.*unable to open"),
        airflow,
    ):
        pass


def test_a_component_can_be_killed_and_started_again(airflow_server: LocalAirflow) -> None:
    airflow_server.kill_component("dag-processor")
    started = airflow_server.start_component("dag-processor")
    assert session_members(started.session_id)
    assert started.exit_code is None
