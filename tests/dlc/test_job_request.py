"""A CreateJob body is built from arguments, or refused with one clear error before money is spent."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.attempts.identity import Owner, TaskIdentity, attempt_tags
from airflow_provider_pai_spot.dlc.body import ATTEMPT_BYTES, request_size
from airflow_provider_pai_spot.dlc.job_request import (
    CHECKPOINT_MOUNT,
    MAX_REQUEST_BYTES,
    Bid,
    InvalidJobRequest,
    build_job_request,
)
from airflow_provider_pai_spot.dlc.terms import JobTerms

VPC = {"VpcId": "vpc-****", "SwitchId": "vsw-****", "SecurityGroupId": "sg-****"}
FLAT: dict[str, Any] = {
    "image": "registry/pytorch:2.3",
    "user_command": "python train.py",
    "ecs_spec": "ecs.g7.xlarge",
    "spot_discount_limit": 0.4,
    "workspace_id": "12345",
    "display_name": "nightly-train",
}
BIDDING = {"Type": "Worker", "Image": "i", "EcsSpec": "ecs.g7.xlarge", "SpotSpec": {"SpotDiscountLimit": 0.4}}
ON_DEMAND = {"Type": "PS", "Image": "i", "EcsSpec": "ecs.g7.xlarge"}
IN_ROLES: dict[str, Any] = {
    "user_command": "python train.py",
    "workspace_id": "12345",
    "display_name": "nightly-train",
    "job_specs": [BIDDING],
}


def bidding(**spot_spec: Any) -> dict[str, Any]:
    return {**BIDDING, "SpotSpec": spot_spec}


@pytest.mark.parametrize(
    ("bid", "spot_spec"),
    [
        ({"spot_discount_limit": 0.4}, {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.4}),
        (
            {"spot_discount_limit": None, "spot_price_limit": 0.011},
            {"SpotStrategy": "SpotWithPriceLimit", "SpotPriceLimit": 0.011},
        ),
    ],
    ids=["by discount", "by price"],
)
def test_the_vendors_own_spot_samples_can_be_built(bid: dict[str, Any], spot_spec: dict[str, Any]) -> None:
    request = build_job_request({**FLAT, **bid, "user_vpc": VPC})
    assert request.body == {
        "DisplayName": "nightly-train",
        "JobType": "PyTorchJob",
        "JobSpecs": [
            {
                "Type": "Worker",
                "Image": "registry/pytorch:2.3",
                "PodCount": 1,
                "EcsSpec": "ecs.g7.xlarge",
                "SpotSpec": spot_spec,
            }
        ],
        "UserCommand": "python train.py",
        "UserVpc": VPC,
        "WorkspaceId": "12345",
    }
    assert request.resource_type == "ECS"
    assert request.warnings == ()


def test_what_a_template_rendered_to_text_is_coerced() -> None:
    rendered = {
        "pod_count": "2",
        "priority": "9",
        "spot_discount_limit": "0.4",
        "workspace_id": 12345,
        "job_max_running_time_minutes": "90",
        "envs": '{"A": "1"}',
        "data_sources": '[{"DataSourceId": "d-1"}]',
        "job_overrides": '{"Description": "x"}',
    }
    body = build_job_request({**FLAT, **rendered}).body
    assert body["JobSpecs"][0]["PodCount"] == 2
    assert body["JobSpecs"][0]["SpotSpec"]["SpotDiscountLimit"] == 0.4
    assert (body["Priority"], body["JobMaxRunningTimeMinutes"], body["WorkspaceId"]) == (9, 90, "12345")
    assert (body["Envs"], body["Description"]) == ({"A": "1"}, "x")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "both bids": ({"spot_price_limit": 0.011}, r"spot_discount_limit is 0\.4: spot_price_limit is given at the same"),
    "no bid": ({"spot_discount_limit": None}, r"nor is spot_price_limit; give exactly one"),
    "a bid off the grid": ({"spot_discount_limit": 0.45}, r"0\.45: bids are on a grid.*bid_grid = warn"),
    "full price": ({"spot_discount_limit": 1.0}, r"spot_discount_limit is 1\.0: .*above 0 and below 1"),
    "a bid that is no number": ({"spot_discount_limit": "abc"}, r"spot_discount_limit is 'abc'"),
    "a price on Lingjun": (
        {"spot_discount_limit": None, "spot_price_limit": 1, "ecs_spec": "ml.gu7xf.8xlarge-gu108", "user_vpc": VPC},
        r"spot_price_limit is '1 CNY per minute': Lingjun.*use spot_discount_limit",
    ),
    "Lingjun in capitals without a network": (
        {"ecs_spec": "ML.gu7xf.8xlarge-gu108"},
        r"user_vpc is not given: Lingjun",
    ),
    "Lingjun without a network": ({"ecs_spec": "ml.gu7xf.8xlarge-gu108"}, r"user_vpc is not given: Lingjun.*VpcId"),
    "Lingjun with half a network": (
        {"resource_type": "Lingjun", "user_vpc": {"VpcId": "vpc-1", "SwitchId": "vsw-1"}},
        r"keys SwitchId, VpcId: Lingjun.*add SecurityGroupId",
    ),
    "no workspace": ({"workspace_id": None}, r"workspace_id is not given: .*connection's extra"),
    "no command": ({"user_command": None}, r"user_command is not given"),
    "no image": ({"image": None}, r"image is not given"),
    "no instance type": ({"ecs_spec": None}, r"ecs_spec is not given"),
    "an empty image": ({"image": " "}, r"image is ' ': expected a text"),
    "two instance types": ({"ecs_spec": "ecs.a ecs.b"}, r"expected one instance type"),
    "a job type in another case": ({"job_type": "pytorchjob"}, r"expected one of PyTorchJob.*mean 'PyTorchJob'"),
    "an unknown job type": ({"job_type": "JaxJob"}, r"job_type is 'JaxJob': expected one of PyTorchJob"),
    "an unknown kind of resources": ({"resource_type": "lingjun"}, r"ECS, Lingjun\. Did you mean 'Lingjun'"),
    "no pods": ({"pod_count": 0}, r"pod_count is 0: expected a whole number of 1 or more"),
    "half a pod": ({"pod_count": 1.5}, r"pod_count is 1\.5"),
    "a pod count in words": ({"pod_count": "two"}, r"pod_count is 'two'"),
    "a pod count that is a flag": ({"pod_count": True}, r"pod_count is True"),
    "a priority of 10": ({"priority": 10}, r"priority is 10: expected a whole number from 1 to 9"),
    "a run time of 0": ({"job_max_running_time_minutes": 0}, r"job_max_running_time_minutes is 0"),
    "a name with a space": ({"display_name": "my job"}, r"display_name is 'my job': DLC allows letters"),
    "a name of 257": ({"display_name": "x" * 257}, r"257 characters, DLC allows 256"),
    "envs that are a list": ({"envs": ["A=1"]}, r"envs is a list of 1: expected a dict"),
    "envs that are no JSON": ({"envs": "{'A': '1'}"}, r"envs is a text of 10 characters: .*tojson"),
    "an env without a name": ({"envs": {"": "1"}}, r"'' cannot name an environment variable"),
    "a checkpoint without a scheme": ({"checkpoint_uri": "bucket/x"}, r"checkpoint_uri is 'bucket/x': .*scheme://"),
    "a mount of nothing": ({"data_sources": [{"MountPath": "/x"}]}, r"data_sources\[0\].*one of DataSourceId and Uri"),
    "a mount of two things": ({"data_sources": [{"DataSourceId": "d", "Uri": "oss://b/"}]}, r"data_sources\[0\]"),
    "a mount with other rights": (
        {"data_sources": [{"DataSourceId": "d", "MountAccess": "rw"}]},
        r"\['MountAccess'\] is 'rw': expected one of RO, RW",
    ),
    "something else where checkpoints go": (
        {"checkpoint_uri": "oss://b/x/", "data_sources": [{"DataSourceId": "d", "MountPath": CHECKPOINT_MOUNT + "/"}]},
        r"is where checkpoint_uri is mounted",
    ),
    "snake_case inside user_vpc": ({"user_vpc": {"vpc_id": "vpc-1"}}, r"spells the key 'vpc_id' as 'VpcId'"),
    "the response's spelling in a request": (
        {"user_vpc": {"ExtendedCidrs": []}},
        r"'ExtendedCidrs' as 'ExtendedCIDRs'",
    ),
    "snake_case inside settings": ({"settings": {"enable_rdma": True}}, r"'enable_rdma' as 'EnableRDMA'"),
    "a tag of ours": ({"settings": {"Tags": {"airflow-ti": "x"}}}, r"settings\['Tags'\]\['airflow-ti'\].*another name"),
    "a tag that is no text": ({"settings": {"Tags": {"team": 1}}}, r"settings\['Tags'\]\['team'\] is 1: tags are text"),
    "an override DLC has not": ({"job_overrides": {"Prioriy": 1}}, r"no key 'Prioriy' here; did you mean 'Priority'"),
    "a role's key as an override": ({"job_overrides": {"PodCount": 1}}, r"no key 'PodCount' here; it knows Access"),
    "snake_case in overrides": ({"job_overrides": {"user_vpc": {}}}, r"spells the key 'user_vpc' as 'UserVpc'"),
    "a wrong value in overrides": ({"job_overrides": {"Priority": 11}}, r"job_overrides\['Priority'\] is 11"),
    "a tag of ours in overrides": (
        {"job_overrides": {"Settings": {"Tags": {"airflow-attempt": "3"}}}},
        r"job_overrides\['Settings'\]\['Tags'\]\['airflow-attempt'\]",
    ),
    "an override that is no JSON": ({"job_overrides": {"Options": {1, 2}}}, r"Options is not JSON"),
    "NaN in an override": ({"job_overrides": {"ElasticSpec": {"a": float("nan")}}}, r"ElasticSpec is not JSON"),
    "roles beside flat arguments": ({"job_specs": [BIDDING]}, r"image is .*job_specs describes every role"),
    "roles in overrides beside flat arguments": (
        {"job_overrides": {"JobSpecs": [BIDDING]}},
        r"image is .*job_overrides",
    ),
    "an argument nobody has": ({"user_comand": "x"}, r"'user_comand' here; did you mean 'user_command'"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_cannot_work_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidJobRequest, match=message):
        build_job_request({**FLAT, **arguments})


ROLES_REFUSED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "no role": ([], r"no role bids for spot capacity"),
    "no role bids": ([ON_DEMAND], r"no role bids for spot capacity; give exactly one"),
    "spot terms in snake_case": ([{**ON_DEMAND, "spot_spec": {}}], r"job_specs\[0\].*'spot_spec' as 'SpotSpec'"),
    "spot terms in the plural": ([{**ON_DEMAND, "SpotSpecs": {}}], r"did you mean 'SpotSpec'"),
    "a limit in snake_case": ([bidding(spot_discount_limit=0.4)], r"'spot_discount_limit' as 'SpotDiscountLimit'"),
    "a spot key DLC has not": ([bidding(SpotDiscountLimit=0.4, Hours=1)], r"no key 'Hours' here"),
    "both limits": ([bidding(SpotDiscountLimit=0.4, SpotPriceLimit=1)], r"\['SpotPriceLimit'\] is given at the same"),
    "neither limit": ([bidding()], r"nor is job_specs\[0\]\['SpotSpec'\]\['SpotPriceLimit'\]"),
    "another product's strategy": (
        [bidding(SpotDiscountLimit=0.4, SpotStrategy="SpotAsPriceGo")],
        r"\['SpotStrategy'\] is 'SpotAsPriceGo': DLC knows only 'SpotWithPriceLimit'",
    ),
    "a limit off the grid": (
        [bidding(SpotDiscountLimit=0.45)],
        r"\['SpotDiscountLimit'\] is 0\.45: bids are on a grid",
    ),
    "the retired spot switch": ([BIDDING, {**ON_DEMAND, "UseSpotInstance": True}], r"job_specs\[1\].*SpotSpec"),
    "two kinds of resources": ([{**BIDDING, "ResourceConfig": {"CPU": "4"}}], r"exclude each other"),
    "no resources": ([{**BIDDING, "EcsSpec": None}], r"\['EcsSpec'\] is not given: expected an instance type"),
    "a role without a name": ([{**BIDDING, "Type": ""}], r"job_specs\[0\]\['Type'\] is ''"),
    "a role without an image": ([{**BIDDING, "Image": None}], r"job_specs\[0\]\['Image'\] is not given"),
    "a role without pods": ([{**BIDDING, "PodCount": 0}], r"job_specs\[0\]\['PodCount'\] is 0"),
}


@pytest.mark.parametrize(("roles", "message"), ROLES_REFUSED.values(), ids=ROLES_REFUSED)
def test_roles_that_cannot_work_are_refused(roles: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InvalidJobRequest, match=message):
        build_job_request({**IN_ROLES, "job_specs": roles})


@pytest.mark.parametrize("source", ["job_specs", "job_overrides"])
def test_each_role_carries_its_own_bid_and_one_without_is_said_to_run_on_demand(source: str) -> None:
    roles = [ON_DEMAND, bidding(SpotPriceLimit="0.02"), {**bidding(SpotDiscountLimit=0.6), "Type": "Chief"}]
    arguments = {**IN_ROLES, "job_specs": roles}
    if source == "job_overrides":
        arguments |= {"job_specs": [BIDDING], "job_overrides": {"JobSpecs": roles}}
    request = build_job_request(arguments)
    assert request.bids_by_role == {"Worker": Bid("price", "0.02"), "Chief": Bid("discount", "0.6")}
    assert request.bid == Bid("price", "0.02")
    assert request.warnings == ("role PS runs on demand: it has no SpotSpec.",)
    assert "SpotSpec" not in request.body["JobSpecs"][0]
    assert request.body["JobSpecs"][1]["SpotSpec"] == {"SpotStrategy": "SpotWithPriceLimit", "SpotPriceLimit": 0.02}


def test_two_roles_of_one_name_keep_their_bids_apart() -> None:
    request = build_job_request({**IN_ROLES, "job_specs": [BIDDING, bidding(SpotDiscountLimit=0.5)]})
    assert request.bids_by_role == {"Worker": Bid("discount", "0.4"), "Worker 2": Bid("discount", "0.5")}


def test_elastic_spot_terms_pass_untouched() -> None:
    elastic = [{"InstanceType": "ecs.a", "SpotDiscountLimit": "90", "SpotStrategy": "LowestPrice"}]
    roles = [BIDDING, {"Type": "PS", "Image": "i", "ElasticSpotSpecs": elastic}]
    request = build_job_request({**IN_ROLES, "job_specs": roles})
    assert request.body["JobSpecs"][1]["ElasticSpotSpecs"] == elastic
    assert request.warnings == ()


WARNED: dict[str, tuple[dict[str, Any], str]] = {
    "a framework not offered on spot": ({"job_type": "TFJob"}, "as of DLC's 2025 help page"),
    "an empty command": ({"user_command": ""}, "entry point"),
    "fault tolerance on ECS": ({"settings": {"EnableErrorMonitoringInAIMaster": True}}, "disagree"),
    "a key of a newer DLC": ({"settings": {"Quantum": True}}, "Settings['Quantum'] is not in the CreateJob reference"),
}


@pytest.mark.parametrize(("arguments", "words"), WARNED.values(), ids=WARNED)
def test_what_is_doubtful_is_sent_with_a_warning(arguments: dict[str, Any], words: str) -> None:
    (warning,) = build_job_request({**FLAT, **arguments}).warnings
    assert words in warning


@pytest.mark.parametrize("job_type", ["PyTorchJob", "MPIJob"])
def test_lingjun_takes_both_its_frameworks_without_a_word(job_type: str) -> None:
    request = build_job_request({**FLAT, "ecs_spec": "ml.gu7xf", "user_vpc": VPC, "job_type": job_type})
    assert request.resource_type == "Lingjun"
    assert request.warnings == ()


def test_an_explicit_kind_of_resources_wins_over_the_instance_types_name() -> None:
    assert build_job_request({**FLAT, "ecs_spec": "ml.c1", "resource_type": "ECS"}).resource_type == "ECS"


def test_an_off_grid_bid_is_sent_with_a_warning_when_the_grid_only_warns() -> None:
    request = build_job_request({**FLAT, "spot_discount_limit": 0.95}, bid_grid="warn")
    assert request.bid == Bid("discount", "0.95")
    assert request.warnings[0].startswith("spot_discount_limit is 0.95")


def test_an_environment_value_never_shows_in_an_error() -> None:
    secret = 918273645
    with pytest.raises(InvalidJobRequest, match=r"envs\['TOKEN'\] is of type int") as caught:
        build_job_request({**FLAT, "envs": {"TOKEN": secret}})
    assert str(secret) not in f"{caught.value} {caught.value!r} {caught.value.value}"


def test_neither_does_unreadable_json_or_the_request_itself() -> None:
    with pytest.raises(InvalidJobRequest) as caught:
        build_job_request({**FLAT, "envs": '{"TOKEN": hunter2}'})
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "hunter2" not in repr(build_job_request({**FLAT, "envs": {"TOKEN": "hunter2"}}))


def test_an_error_names_argument_value_and_what_is_allowed() -> None:
    with pytest.raises(InvalidJobRequest) as caught:
        build_job_request({**FLAT, "pod_count": -1})
    assert (caught.value.argument, caught.value.value) == ("pod_count", "-1")
    assert caught.value.allowed == "expected a whole number of 1 or more."


def test_overrides_are_merged_last_and_deep_while_lists_are_replaced() -> None:
    request = build_job_request(
        {
            **FLAT,
            "settings": {"Driver": "535", "Tags": {"team": "a"}},
            "data_sources": [{"DataSourceId": "d-1"}],
            "job_overrides": {
                "Settings": {"Tags": {"cost": "b"}},
                "DataSources": [{"DataSourceId": "d-2"}],
                "Priority": 3,
            },
            "priority": 1,
        }
    )
    assert request.body["Settings"] == {"Driver": "535", "Tags": {"team": "a", "cost": "b"}}
    assert request.body["DataSources"] == [{"DataSourceId": "d-2"}]
    assert request.body["Priority"] == 3


def test_an_override_can_supply_what_no_argument_gave() -> None:
    arguments = {**FLAT, "user_command": None, "ecs_spec": "ml.gu7xf"}
    overrides = {"UserCommand": "bash run.sh", "UserVpc": VPC}
    assert build_job_request({**arguments, "job_overrides": overrides}).body["UserCommand"] == "bash run.sh"


def test_checkpoints_are_mounted_whatever_overrides_do_to_the_mounts() -> None:
    request = build_job_request(
        {
            **FLAT,
            "checkpoint_uri": "oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/nightly/",
            "job_overrides": {"DataSources": [{"DataSourceId": "d-2"}]},
        }
    )
    assert request.checkpoint_mount == CHECKPOINT_MOUNT
    assert request.body["DataSources"][1] == {
        "Uri": "oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/nightly/",
        "MountPath": CHECKPOINT_MOUNT,
        "MountAccess": "RW",
    }


def test_the_arguments_are_left_as_they_were() -> None:
    arguments = {**IN_ROLES, "checkpoint_uri": "oss://b/x/", "settings": {"Tags": {"team": "a"}}}
    before = copy.deepcopy(arguments)
    build_job_request(arguments).with_attempt({"airflow-ti": "1"}, {"A": "1"}, JobTerms(bid=Bid("discount", "0.9")))
    assert arguments == before


def test_an_attempt_adds_tags_variables_and_a_bid_to_a_copy() -> None:
    request = build_job_request({**IN_ROLES, "job_specs": [ON_DEMAND, BIDDING], "envs": {"A": "1", "B": "2"}})
    before = copy.deepcopy(request.body)
    body = request.with_attempt({"airflow-ti": "ab12"}, {"B": "ours"}, JobTerms(bid=Bid("discount", "0.9")))
    assert body["Settings"]["Tags"] == {"airflow-ti": "ab12"}
    assert body["Envs"] == {"A": "1", "B": "ours"}
    assert body["JobSpecs"][1]["SpotSpec"] == {"SpotStrategy": "SpotWithPriceLimit", "SpotDiscountLimit": 0.9}
    assert "SpotSpec" not in body["JobSpecs"][0]
    assert request.body == before


def test_a_bid_that_lingjun_does_not_take_is_not_put_into_an_attempt() -> None:
    request = build_job_request({**FLAT, "ecs_spec": "ml.gu7xf", "user_vpc": VPC})
    with pytest.raises(InvalidJobRequest, match="Lingjun"):
        request.with_attempt({}, {}, JobTerms(bid=Bid("price", "1")))


def command_that_makes(size: int) -> dict[str, Any]:
    """Arguments whose body has exactly this many bytes."""
    empty = request_size(build_job_request({**FLAT, "user_command": ""}).body)
    return {**FLAT, "user_command": "x" * (size - empty)}


def test_a_request_that_is_accepted_has_room_for_what_an_attempt_adds() -> None:
    largest = build_job_request(command_that_makes(MAX_REQUEST_BYTES - ATTEMPT_BYTES))
    identity = TaskIdentity(namespace="n" * 250, dag_id="d" * 250, run_id="r" * 250, task_id="t" * 250, map_index=10**6)
    tags = attempt_tags(
        attempt=100, generation=100, request_hash=largest.request_hash, owner=Owner.TASK, ledger="f" * 32
    )
    envs = {"PAI_SPOT_ATTEMPT": "100", "PAI_SPOT_RESUME": "1"}
    folder = f"{CHECKPOINT_MOUNT}/{identity.checkpoint_subfolder}/g100"
    body = largest.with_attempt(identity.tags | tags, identity.envs | envs | {"PAI_SPOT_CHECKPOINT_DIR": folder})
    assert request_size(body) <= MAX_REQUEST_BYTES
    with pytest.raises(InvalidJobRequest, match=r"65536 at most, of which 2048 are kept for the tags and variables"):
        build_job_request(command_that_makes(MAX_REQUEST_BYTES - ATTEMPT_BYTES + 1))


def test_the_size_limit_counts_bytes_of_the_whole_request() -> None:
    fitting = build_job_request({**FLAT, "user_command": "漢" * ((MAX_REQUEST_BYTES - ATTEMPT_BYTES) // 3 - 200)})
    with pytest.raises(InvalidJobRequest, match=r"bytes of JSON: DLC takes 65536 at most\. .*UserCommand"):
        fitting.with_attempt({}, {"A": "x" * 4_000})
    with pytest.raises(InvalidJobRequest, match="The largest part is Envs"):
        build_job_request({**FLAT, "envs": {"A": "x" * MAX_REQUEST_BYTES}})


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return value


ENVS = st.dictionaries(st.text("ABC_", min_size=1, max_size=5), st.text("xyz漢", max_size=5), max_size=4)


@given(ENVS)
def test_the_hash_does_not_depend_on_the_order_of_keys(envs: dict[str, str]) -> None:
    arguments = {**FLAT, "envs": envs, "user_vpc": VPC}
    one, other = build_job_request(arguments), build_job_request(reversed_keys(arguments))
    assert one.request_hash == other.request_hash
    assert one.key_hashes == other.key_hashes


def test_the_key_hashes_name_what_differs() -> None:
    one = build_job_request({**FLAT, "envs": {"A": "1"}}).key_hashes
    other = build_job_request({**FLAT, "envs": {"A": "2"}, "priority": 2}).key_hashes
    assert {key for key in {*one, *other} if one.get(key) != other.get(key)} == {"Envs", "Priority"}


@given(ENVS, st.integers(1, 100), st.integers(1, 9).map(lambda tenth: tenth / 10))
def test_what_is_built_is_json_and_survives_it(envs: dict[str, str], pods: int, bid: float) -> None:
    body = build_job_request({**FLAT, "envs": envs, "pod_count": pods, "spot_discount_limit": bid}).body
    assert json.loads(json.dumps(body, allow_nan=False)) == body
    assert body["JobSpecs"][0]["SpotSpec"]["SpotDiscountLimit"] == bid


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*FLAT, *IN_ROLES, "envs", "settings", "job_overrides"]), JSON))
def test_no_argument_makes_it_fail_in_another_way(arguments: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidJobRequest):
        build_job_request({**FLAT, **arguments})
