"""What Airflow learns about this provider: by schema, by its own managers, and by its command line."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import airflow
import jsonschema
import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk.configuration import conf
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

from airflow_provider_pai_spot import __version__, settings
from airflow_provider_pai_spot.hooks import connection
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.provider_info import get_provider_info

INFO = get_provider_info()
CONNECTION_TYPE = INFO["connection-types"][0]
OPTIONS = INFO["config"]["pai_spot"]["options"]
SCHEMAS = Path(airflow.__file__).parent


def schema(name: str) -> dict:
    return json.loads((SCHEMAS / name).read_text())


def test_it_is_valid_by_airflows_own_schema() -> None:
    jsonschema.validate(INFO, schema("provider_info.schema.json"))


def test_the_connection_type_is_valid_by_the_stricter_schema_of_provider_yaml() -> None:
    types = schema("provider.yaml.schema.json")["properties"]["connection-types"]
    jsonschema.validate(INFO["connection-types"], types)


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_each_option_is_valid_and_described(option: Any) -> None:
    jsonschema.validate(option, schema("provider_info.schema.json")["definitions"]["option"])
    assert option["description"].endswith(".")
    assert option["version_added"] <= __version__


def test_hook_link_and_integration_names_agree() -> None:
    assert CONNECTION_TYPE["hook-class-name"] == f"{PaiDlcHook.__module__}.{PaiDlcHook.__name__}"
    assert CONNECTION_TYPE["connection-type"] == PaiDlcHook.conn_type == connection.CONN_TYPE
    assert CONNECTION_TYPE["hook-name"] == PaiDlcHook.hook_name
    for path in INFO["extra-links"]:
        module, _, name = path.rpartition(".")
        assert hasattr(import_module(module), name)
    assert {
        entry["integration-name"] for room in ("operators", "sensors", "hooks", "triggers") for entry in INFO[room]
    } == {INFO["integrations"][0]["integration-name"]}


@pytest.mark.parametrize("room", ["operators", "sensors", "hooks", "triggers"])
def test_every_module_named_can_be_imported(room: Any) -> None:
    for entry in INFO[room]:
        for module in entry["python-modules"]:
            import_module(module)


def test_the_form_has_exactly_the_fields_that_the_hook_reads() -> None:
    assert set(CONNECTION_TYPE["conn-fields"]) == set(connection.EXTRA_FIELDS)


def test_the_form_labels_are_those_that_errors_name() -> None:
    labels = CONNECTION_TYPE["ui-field-behaviour"]["relabeling"]
    assert labels["login"] == connection.ACCESS_KEY_ID_LABEL
    assert labels["password"] == connection.ACCESS_KEY_SECRET_LABEL
    fields = CONNECTION_TYPE["conn-fields"]
    assert (fields["region_id"]["label"], fields["security_token"]["label"]) == ("Region ID", "Security token")
    assert fields["credential_source"]["schema"]["enum"] == list(connection.CREDENTIAL_SOURCES)


def test_secrets_are_password_fields() -> None:
    hidden = {
        name for name, field in CONNECTION_TYPE["conn-fields"].items() if field["schema"].get("format") == "password"
    }
    assert hidden == {"security_token", "http_proxy", "https_proxy"}


def test_settings_reads_exactly_the_options_that_are_declared() -> None:
    read = {name for name, _ in inspect.getmembers(settings, inspect.isfunction) if not name.startswith("_")}
    assert read - {"cast"} == set(OPTIONS)


@pytest.mark.parametrize("name", OPTIONS)
def test_airflow_knows_each_default(name: Any) -> None:
    assert conf.get("pai_spot", name) == OPTIONS[name]["default"]
    getattr(settings, name)()


def test_airflows_manager_lists_hook_form_link_and_triggers() -> None:
    manager, hooks = ProvidersManager(), ProvidersManagerTaskRuntime().hooks
    assert INFO["package-name"] in manager.providers
    assert hooks["pai_dlc"].hook_class_name == CONNECTION_TYPE["hook-class-name"]
    assert hooks["pai_dlc"].connection_id_attribute_name == "pai_dlc_conn_id"
    assert manager.field_behaviours["pai_dlc"]["relabeling"]["login"] == "AccessKey ID"
    assert manager.connection_form_widgets["extra__pai_dlc__security_token"].is_sensitive
    assert set(INFO["extra-links"]) <= set(manager.extra_links_class_names)
    modules = {trigger.trigger_class_name for trigger in manager.trigger}
    assert set(INFO["triggers"][0]["python-modules"]) <= modules


def test_airflows_command_line_shows_us() -> None:
    arguments = [sys.executable, "-m", "airflow", "providers", "hooks", "--output", "plain"]
    run = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert "airflow_provider_pai_spot.hooks.pai_dlc.PaiDlcHook" in run.stdout, run.stderr
