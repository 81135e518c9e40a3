"""What only a run knows, what no connection says, and what must never be shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_pai_spot.cli.plan.masking import masked
from airflow_provider_pai_spot.emulator import DlcEmulator

Call = Callable[..., Any]
MARK = "<known at run time>"


@pytest.fixture
def plan(pai_spot: Call, dag_file: Call, cloud: DlcEmulator) -> Call:
    """Return a function that plans the task `train` of these tasks and returns the plan's JSON."""
    assert cloud.endpoint

    def make(tasks: str, *options: str) -> dict[str, Any]:
        path = dag_file(tasks)
        said = pai_spot("plan", "dag_under_plan", "train", "--dag-file", str(path), "--json", *options)
        assert said.code == 0, said.err
        return json.loads(said.out)

    return make


def _task(arguments: str) -> str:
    return f'picked = choose()\nSubmitSpotJobOperator(task_id="train", **{{**COMMON, **dict({arguments})}})'


BID = "spot_discount_limit=0.4"


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (f"image=picked, {BID}", lambda body: body["JobSpecs"][0]["Image"]),
        (f"ecs_spec=picked, {BID}", lambda body: body["JobSpecs"][0]["EcsSpec"]),
        (f"pod_count=picked, {BID}", lambda body: body["JobSpecs"][0]["PodCount"]),
        ("spot_discount_limit=picked", lambda body: body["JobSpecs"][0]["SpotSpec"]),
        ("spot_price_limit=picked", lambda body: body["JobSpecs"][0]["SpotSpec"]),
        (f"user_command=picked, {BID}", lambda body: body["UserCommand"]),
        (f"checkpoint_uri=picked, {BID}", lambda body: body["DataSources"][0]["Uri"]),
        (f"data_sources=picked, {BID}", lambda body: body["DataSources"][0]),
        (f"settings=picked, {BID}", lambda body: body["Settings"][MARK]),
        (f"priority=picked, {BID}", lambda body: body["Priority"]),
        (f"display_name=picked, {BID}", lambda body: body["DisplayName"]),
        (f"workspace_id=picked, {BID}", lambda body: body["WorkspaceId"]),
        (f"user_vpc=picked, {BID}", lambda body: body["UserVpc"]),
        ("image=None, user_command='x', ecs_spec=None, job_specs=picked", lambda body: body["JobSpecs"]),
    ],
    ids=lambda value: value.split("=picked")[0].split(" ")[-1] if isinstance(value, str) else "",
)
def test_an_argument_that_another_task_decides_is_marked_where_it_goes(
    plan: Call, arguments: str, where: Callable[[Any], Any]
) -> None:
    planned = plan(_task(arguments))
    assert where(planned["request"]) == MARK
    assert set(planned["known_at_run_time"].values()) == {"the result of task 'choose'"}


def test_unknown_variables_leave_the_attempt_s_own_in_place(plan: Call) -> None:
    envs = plan(_task(f"envs=picked, {BID}"))["request"]["Envs"]
    assert (envs[MARK], envs["PAI_SPOT_ATTEMPT"], envs["AIRFLOW_CTX_TASK_ID"]) == ("***", "0", "train")


def test_unknown_overrides_are_said_to_replace_anything(plan: Call) -> None:
    assert "may add or replace any key" in plan(_task(f"job_overrides=picked, {BID}"))["request"][MARK]


def test_a_bid_that_is_not_known_is_not_invented(plan: Call) -> None:
    planned = plan(_task("spot_discount_limit=picked"))
    assert planned["bids"] is None
    assert planned["arithmetic"]["bids"] == ["the task's own bid"]


def test_one_value_inside_an_argument_leaves_the_rest_known(plan: Call) -> None:
    roles = "[dict(Type='Worker', Image=picked, EcsSpec='ecs.g7.xlarge', SpotSpec=dict(SpotDiscountLimit=0.4))]"
    planned = plan(_task(f"image=None, ecs_spec=None, job_specs={roles}"))
    (role,) = planned["request"]["JobSpecs"]
    assert (role["Image"], role["EcsSpec"]) == (MARK, "ecs.g7.xlarge")
    assert planned["known_at_run_time"] == {"job_specs[0]['Image']": "the result of task 'choose'"}
    assert planned["bids"][0]["value"] == "0.4"


def test_a_value_that_the_checks_need_makes_its_whole_argument_unknown(plan: Call) -> None:
    roles = "[dict(Type='Worker', Image='i', EcsSpec='ecs.g7.xlarge', SpotSpec=dict(SpotDiscountLimit=picked))]"
    planned = plan(_task(f"image=None, ecs_spec=None, job_specs={roles}"))
    assert planned["request"]["JobSpecs"] == MARK
    assert "job_specs[0]['SpotSpec']['SpotDiscountLimit']" in planned["known_at_run_time"]["job_specs"]


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ ti.xcom_pull('choose') }}", "the result of task 'choose' (xcom_pull)"),
        ("{{ var.value.no_such_variable }}", "no_such_variable"),
        ("{{ no_such_name }}", "UndefinedError: 'no_such_name' is undefined"),
        ("{{ prev_start_date_success }}", "prev_start_date_success is asked of the Airflow that runs the task"),
        ("${#array[@]}", "TemplateSyntaxError"),
    ],
    ids=["xcom", "variable", "undefined", "earlier run", "not a template"],
)
def test_a_template_that_does_not_render_says_why(plan: Call, template: str, reason: str) -> None:
    planned = plan(_task(f"user_command={template!r}, {BID}"))
    assert planned["request"]["UserCommand"] == MARK
    assert reason in planned["known_at_run_time"]["user_command"]


def test_what_is_refused_whatever_comes_later_is_refused_now(
    pai_spot: Call, dag_file: Call, cloud: DlcEmulator
) -> None:
    assert cloud.endpoint
    path = dag_file(_task("image=picked, spot_discount_limit='{{ 1 + 1 }}'"))
    said = pai_spot("plan", "dag_under_plan", "train", "--dag-file", str(path))
    assert (said.code, said.out) == (1, "")
    assert "spot_discount_limit is '2'" in said.err


# --- connections ---


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        (None, "Airflow has no connection 'elsewhere'"),
        ("pai-dlc://half-a-pair@/?region_id=cn-hangzhou", "'AccessKey Secret' empty"),
    ],
    ids=["not there", "half a key pair"],
)
def test_without_a_usable_connection_the_plan_shows_what_is_known(
    plan: Call, monkeypatch: pytest.MonkeyPatch, uri: str | None, problem: str
) -> None:
    if uri:
        monkeypatch.setenv("AIRFLOW_CONN_ELSEWHERE", uri)
    planned = plan(_task(BID), "--conn-id", "elsewhere")
    assert problem in planned["connection"]["problem"]
    assert planned["connection"]["endpoint"] == ""
    assert planned["request"]["WorkspaceId"] == "<known with the connection>"
    assert planned["request"]["JobSpecs"][0]["EcsSpec"] == "ecs.g7.xlarge"


def test_the_task_s_own_region_and_workspace_hold_without_a_connection(plan: Call) -> None:
    planned = plan(_task(f"{BID}, region_id='cn-beijing', workspace_id='42'"), "--conn-id", "elsewhere")
    assert planned["connection"]["region_id"] == "cn-beijing"
    assert planned["request"]["WorkspaceId"] == "42"


def test_a_connection_that_another_task_chooses_is_known_at_run_time(plan: Call) -> None:
    connection = plan(_task(f"{BID}, pai_dlc_conn_id=picked"))["connection"]
    assert connection["conn_id"] == MARK
    assert "the result of task 'choose'" in connection["problem"]


def test_the_endpoint_of_a_region_is_the_sdk_s_and_looked_up_without_a_call(
    plan: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_REGIONAL", "pai-dlc://id:some-secret-value@/?region_id=cn-shanghai&workspace_id=5")
    connection = plan(_task(BID), "--conn-id", "regional")["connection"]
    assert connection["endpoint"] == "pai-dlc.cn-shanghai.aliyuncs.com"


# --- mapped tasks ---

MAPPED = 'SubmitSpotJobOperator.partial(task_id="train", **COMMON, spot_discount_limit=0.4)'
ENVS = "[dict(N='zero'), dict(N='one'), dict(N='two')]"


@pytest.mark.parametrize(
    ("expansion", "index", "count", "bid"),
    [
        ("expand(priority=[1, 2, 3])", 2, 3, 3),
        ("expand(priority=[1, 2, 3], pod_count=[1, 2])", 5, 6, 3),
        ("expand_kwargs([dict(priority=1), dict(priority=2)])", 1, 2, 2),
    ],
    ids=["one list", "two lists multiply", "expand_kwargs"],
)
def test_literal_mappings_are_expanded(plan: Call, expansion: str, index: int, count: int, bid: int) -> None:
    planned = plan(f"{MAPPED}.{expansion}", "--map-index", str(index))
    assert (planned["map_index"], planned["map_count"]) == (index, count)
    assert planned["request"]["Priority"] == bid
    assert planned["request"]["Envs"]["AIRFLOW_CTX_MAP_INDEX"] == str(index)


def test_without_a_map_index_the_first_is_planned(plan: Call) -> None:
    assert plan(f"{MAPPED}.expand(priority=[7, 8])")["request"]["Priority"] == 7


def test_each_map_index_is_another_task_instance(plan: Call) -> None:
    tags = [
        plan(f"{MAPPED}.expand(envs={ENVS})", "--map-index", str(index), "--run-id", "r")["request"]["Settings"]["Tags"]
        for index in range(2)
    ]
    assert tags[0]["airflow-ti"] != tags[1]["airflow-ti"]


@pytest.mark.parametrize("index", ["3", "-1"])
def test_an_index_outside_of_the_mapping_is_refused(
    pai_spot: Call, dag_file: Call, cloud: DlcEmulator, index: str
) -> None:
    assert cloud.endpoint
    path = dag_file(f"{MAPPED}.expand(envs={ENVS})")
    said = pai_spot("plan", "dag_under_plan", "train", "--dag-file", str(path), f"--map-index={index}")
    assert said.code == 1
    assert "'train' has 3 map indexes, 0 to 2" in said.err


def test_a_mapping_over_another_task_s_result_marks_the_mapped_arguments(plan: Call) -> None:
    planned = plan(f"picked = choose()\n{MAPPED}.expand(priority=picked)")
    assert planned["map_count"] is None
    assert planned["request"]["Priority"] == MARK
    assert planned["known_at_run_time"] == {"priority": "the result of task 'choose'"}


def test_beside_a_mapping_of_unknown_length_no_position_in_another_list_is_known(plan: Call) -> None:
    planned = plan(f"picked = choose()\n{MAPPED}.expand(priority=[1, 2], pod_count=picked)")
    assert planned["request"]["Priority"] == MARK


def test_mapped_arguments_that_are_not_part_of_the_request_are_left_out_and_named(plan: Call) -> None:
    planned = plan(f"picked = choose()\n{MAPPED}.expand(pending_timeout=picked)")
    assert planned["known_at_run_time"] == {"pending_timeout": "the result of task 'choose'"}
    assert planned["limits"]["pending_timeout"] is None


def test_keyword_arguments_that_another_task_returns_cannot_be_planned(
    pai_spot: Call, dag_file: Call, cloud: DlcEmulator
) -> None:
    assert cloud.endpoint
    path = dag_file(f"picked = choose()\n{MAPPED}.expand_kwargs(picked)")
    said = pai_spot("plan", "dag_under_plan", "train", "--dag-file", str(path))
    assert said.code == 1
    assert "'train' expands over the result of task 'choose'" in said.err


# --- secrets ---

SECRETS = {
    "variable": f"envs=dict(API_TOKEN='planted-secret'), {BID}",
    "variable with our prefix": f"envs=dict(PAI_SPOT_TOKEN='planted-secret'), {BID}",
    "variable with Airflow's prefix": f"envs=dict(AIRFLOW_CTX_OTHER='planted-secret'), {BID}",
    "registry password": (
        "image=None, ecs_spec=None, job_specs=[dict(Type='Worker', Image='i', EcsSpec='ecs.g7.xlarge', "
        "SpotSpec=dict(SpotDiscountLimit=0.4), ImageConfig=dict(Username='u', Password='planted-secret'))]"
    ),
    "injected credentials": (
        f"job_overrides=dict(CredentialConfig=dict(CredentialConfigItems=[dict(Key='planted-secret')])), {BID}"
    ),
    "custom variable": f"job_overrides=dict(CustomEnvs=[dict(Key='A', Value='planted-secret')]), {BID}",
    "password of a connection in the command": f"user_command='echo {{{{ conn.other.password }}}}', {BID}",
    "sensitive variable of Airflow": f"user_command='echo {{{{ var.value.my_api_key }}}}', {BID}",
}


@pytest.fixture
def _secrets_of_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", "http://somebody:planted-secret@example.com")
    monkeypatch.setenv("AIRFLOW_VAR_MY_API_KEY", "planted-secret")


@pytest.mark.usefixtures("_secrets_of_airflow")
@pytest.mark.parametrize("arguments", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_secrets_are_never_shown(
    pai_spot: Call, dag_file: Call, cloud: DlcEmulator, arguments: str, options: tuple[str, ...]
) -> None:
    said = pai_spot("plan", "dag_under_plan", "train", "--dag-file", str(dag_file(_task(arguments))), *options)
    assert said.code == 0, said.err
    assert "***" in said.out
    for secret in ("planted-secret", cloud.access_key_secret):
        assert secret not in said.out + said.err


def test_masking_keeps_names_and_masks_values_at_any_depth() -> None:
    body = {
        "Envs": {"A": "secret", "AIRFLOW_CTX_DAG_ID": "dag", "PAI_SPOT_RESUME": "0"},
        "CustomEnvs": [{"Key": "B", "Value": "secret", "Visible": "public"}, "secret"],
        "JobSpecs": [{"Image": "image", "PodCount": 2, "ImageConfig": {"Auth": "secret", "Other": ["secret"]}}],
        "Settings": {"Deep": [{"Envs": {"C": "secret"}, "CredentialConfig": "secret"}]},
    }
    assert masked(body) == {
        "Envs": {"A": "***", "AIRFLOW_CTX_DAG_ID": "dag", "PAI_SPOT_RESUME": "0"},
        "CustomEnvs": [{"Key": "B", "Value": "***"}, "***"],
        "JobSpecs": [{"Image": "image", "PodCount": 2, "ImageConfig": {"Auth": "***", "Other": ["***"]}}],
        "Settings": {"Deep": [{"Envs": {"C": "***"}, "CredentialConfig": "***"}]},
    }
