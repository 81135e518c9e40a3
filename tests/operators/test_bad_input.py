"""What cannot work is refused in one clear sentence: at parse time, and after templating before CreateJob."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_pai_spot.attempts.identity import TaskIdentity
from airflow_provider_pai_spot.attempts.moment import TryMoment
from airflow_provider_pai_spot.exceptions import SpotSubmissionRefused
from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
from airflow_provider_pai_spot.operators.spot_job import JOB_ARGUMENTS, SubmitSpotJobOperator

IDENTITY = TaskIdentity(namespace="n", dag_id="nightly", run_id="r", task_id="train")
FINE: dict[str, Any] = {
    "image": "registry.example.com/train:1",
    "user_command": "python train.py",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.4,
    "workspace_id": "268",
}
SPOT = {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.4}
ROLE = {"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "ecs.g7.xlarge", "SpotSpec": SPOT}
ROLES_ONLY = {"image": None, "ecs_spec": None, "spot_discount_limit": None}
LINGJUN = {"ecs_spec": "ml.gu8ef.8xlarge-gu100"}
VPC = {"VpcId": "vpc-1", "SwitchId": "vsw-1", "SecurityGroupId": "sg-1"}

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "both bids": ({"spot_price_limit": 0.01}, "spot_price_limit"),
    "no bid": ({"spot_discount_limit": None}, "spot_discount_limit"),
    "off the grid": ({"spot_discount_limit": 0.45}, "0.45"),
    "list price": ({"spot_discount_limit": 1.0}, "1.0"),
    "nothing": ({"spot_discount_limit": 0}, "spot_discount_limit"),
    "negative": ({"spot_discount_limit": -0.4}, "-0.4"),
    "a word": ({"spot_discount_limit": "abc"}, "abc"),
    "negative price": ({"spot_discount_limit": None, "spot_price_limit": -1}, "spot_price_limit"),
    "price on Lingjun": (
        {**LINGJUN, "user_vpc": VPC, "spot_discount_limit": None, "spot_price_limit": 1.5},
        "Lingjun",
    ),
    "no VPC on Lingjun": (LINGJUN, "user_vpc"),
    "half a VPC on Lingjun": ({**LINGJUN, "user_vpc": {"VpcId": "vpc-1"}}, "SwitchId"),
    "unknown job type": ({"job_type": "pytorchjob"}, "PyTorchJob"),
    "no pods": ({"pod_count": 0}, "pod_count"),
    "illegal name": ({"display_name": "nightly training!"}, "display_name"),
    "too long a name": ({"display_name": "n" * 257}, "256"),
    "an env that is no text": ({"envs": {"SEED": 7}}, "SEED"),
    "too large": ({"user_command": "x" * 70_000}, "65536"),
    "snake_case inside job_specs": (
        {**ROLES_ONLY, "job_specs": [{**ROLE, "spot_spec": SPOT}]},
        "SpotSpec",
    ),
    "no role bids": (
        {**ROLES_ONLY, "job_specs": [{key: value for key, value in ROLE.items() if key != "SpotSpec"}]},
        "SpotSpec",
    ),
    "role arguments beside job_specs": ({"job_specs": [ROLE]}, "job_specs"),
    "unknown override": ({"job_overrides": {"Prioritty": 3}}, "Priority"),
    "no command": ({"user_command": None}, "user_command"),
    "a ladder beside a price": (
        {"spot_discount_limit": None, "spot_price_limit": 0.01, "recovery": {"spot_discount_ladder": [0.9]}},
        "ladder",
    ),
    "a ladder off the grid": ({"recovery": {"spot_discount_ladder": [0.65]}}, "0.65"),
    "a Lingjun type to follow a general one": ({"recovery": {"ecs_specs": ["ml.gu8ef.8xlarge-gu100"]}}, "ecs_specs"),
}
TABLE = pytest.mark.parametrize(("arguments", "word"), BAD.values(), ids=BAD.keys())


def operator(**arguments: Any) -> SubmitSpotJobOperator:
    with DAG("nightly", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)):
        return SubmitSpotJobOperator(task_id="train", **(FINE | arguments))


@TABLE
def test_refused_at_parse_time(arguments: dict[str, Any], word: str) -> None:
    with pytest.raises(SpotSubmissionRefused, match=word) as refused:
        operator(**arguments)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


@TABLE
def test_refused_after_templating(arguments: dict[str, Any], word: str) -> None:
    given = FINE | arguments
    templated = {name: value for name, value in given.items() if name in JOB_ARGUMENTS and value is not None}
    rest = {name: value for name, value in given.items() if name not in templated and value is not None}
    with pytest.raises(SpotSubmissionRefused, match=word):
        _templated(templated, rest).request(IDENTITY, PaiDlcHook())


def test_what_a_template_spoils_is_refused_only_where_a_job_is_to_be_submitted() -> None:
    noon = datetime(2026, 11, 30, 12, tzinfo=UTC)
    moment = TryMoment(try_number=2, max_tries=2, started_at=noon, run_started_at=noon)
    wanted = _templated({"spot_discount_limit": 1.5}, FINE).wanted(IDENTITY, PaiDlcHook(), moment)
    assert "1.5" in str(wanted.refusal)
    assert operator().wanted(IDENTITY, PaiDlcHook(), moment).refusal is None


def test_a_missing_workspace_is_refused_before_anything_is_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PAI_DLC_DEFAULT", "pai-dlc://ak:secret-key@/?region_id=cn-hangzhou")
    with pytest.raises(SpotSubmissionRefused, match="workspace"):
        operator(workspace_id=None).request(IDENTITY, PaiDlcHook())


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        ({"pending_timeout": 0}, ValueError, "pending_timeout"),
        ({"run_timeout": timedelta(seconds=-1)}, ValueError, "run_timeout"),
        ({"total_timeout": "2h"}, TypeError, "total_timeout"),
        ({"poll_interval": True}, TypeError, "poll_interval"),
        ({"recovery": {"max_revocation": 3}}, SpotSubmissionRefused, "max_revocations"),
        ({"recovery": {"max_revocations": -1}}, SpotSubmissionRefused, "max_revocations"),
        ({"recovery": {"spot_discount_ladder": [0.95]}}, SpotSubmissionRefused, "0.9"),
        ({"recovery": {"on_pending_timeout": "on_demand"}}, SpotSubmissionRefused, "needs pending_timeout"),
    ],
    ids=str,
)
def test_our_own_arguments_are_checked_at_parse_time(
    arguments: dict[str, Any], error: type[Exception], word: str
) -> None:
    with pytest.raises(error, match=word):
        operator(**arguments)


def test_the_bid_grid_can_be_relaxed_to_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__PAI_SPOT__BID_GRID", "warn")
    request = operator(spot_discount_limit=0.45).request(IDENTITY, PaiDlcHook())
    assert any("0.45" in warning for warning in request.warnings)


def test_a_command_that_only_looks_like_a_template_names_its_argument() -> None:
    task = operator(user_command='files=(a b); echo "${#files[@]}"')
    with pytest.raises(SpotSubmissionRefused, match=r"user_command.*raw"):
        task.render_template_fields({}, task.dag.get_template_env())


def test_raw_text_comes_through_as_it_is() -> None:
    command = 'echo "${#files[@]}" $((A + 1)) %2B {"a": 1}'
    task = operator(user_command="{% raw %}" + command + "{% endraw %}")
    task.render_template_fields({}, task.dag.get_template_env())
    assert task.request(IDENTITY, PaiDlcHook()).body["UserCommand"] == command


@pytest.mark.parametrize("command", ["bash train.sh", "python run.py --config conf.json", "run.sql"])
def test_a_command_is_never_taken_for_a_template_file(command: str) -> None:
    task = operator(user_command=command)
    task.render_template_fields({}, task.dag.get_template_env())
    assert task.user_command == command


def test_numbers_and_dicts_from_templates_are_coerced() -> None:
    task = _templated(FINE | {"pod_count": 3, "envs": {"A": "1"}}, {})
    body = task.request(IDENTITY, PaiDlcHook()).body
    assert body["JobSpecs"][0]["PodCount"] == 3
    assert body["JobSpecs"][0]["SpotSpec"]["SpotDiscountLimit"] == 0.4
    assert body["Envs"] == {"A": "1"}


def _templated(values: dict[str, Any], rest: dict[str, Any]) -> SubmitSpotJobOperator:
    """An operator whose values all come out of Jinja, dicts and lists as JSON text."""
    templates = {
        name: "{{ values." + name + (" | tojson }}" if isinstance(value, (dict, list)) else " }}")
        for name, value in values.items()
    }
    with DAG("nightly", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)):
        task = SubmitSpotJobOperator(task_id="train", **(rest | templates))
    task.render_template_fields({"values": values}, task.dag.get_template_env())
    return task
