"""What CreateJob refuses. Raises `errors.DlcError` (400 InvalidParameter); unknown keys are ignored, as DLC does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_provider_pai_spot.emulator.aimaster import monitoring_flags
from airflow_provider_pai_spot.emulator.behaviours import Behaviours
from airflow_provider_pai_spot.emulator.errors import invalid_parameter
from airflow_provider_pai_spot.emulator.specs import INSTANCE_TYPES, is_lingjun

JOB_TYPES = (
    "TFJob",
    "PyTorchJob",
    "MPIJob",
    "XGBoostJob",
    "OneFlowJob",
    "ElasticBatchJob",
    "SlurmJob",
    "RayJob",
    "DataJuicerJob",
)
SPOT_STRATEGY = "SpotWithPriceLimit"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_GRID_STEP = 0.1
_GRID_TOP = 0.9
_TOLERANCE = 1e-9
_PRIORITIES = range(10)


def check_create_job(body: Mapping[str, Any], behaviours: Behaviours) -> None:
    """Raise DlcError if CreateJob would refuse `body`."""
    for key in ("DisplayName", "JobType", "JobSpecs", "UserCommand"):
        _need(key in body and body[key] is not None, f"{key} is required.")
    name = body["DisplayName"]
    _need(
        isinstance(name, str) and _NAME.fullmatch(name) is not None,
        f"DisplayName {name!r} is invalid: 1 to 256 characters of A-Z, a-z, 0-9, '_', '.', '-'.",
    )
    _need(
        isinstance(body["JobType"], str) and body["JobType"] in JOB_TYPES,
        f"JobType {body['JobType']!r} is invalid: one of {', '.join(JOB_TYPES)}.",
    )
    _need(isinstance(body["UserCommand"], str), "UserCommand must be a string.")
    _check_job_specs(body["JobSpecs"], behaviours)
    _check_limits(body)
    _check_string_map(body, "Envs")
    _check_settings(body.get("Settings"))
    _check_data_sources(body.get("DataSources"))
    for key in ("CodeSource", "UserVpc", "ElasticSpec", "CredentialConfig"):
        _object(body.get(key), key)


def check_tags(tags: Mapping[str, Any]) -> None:
    """Raise DlcError unless all tags are allowed by TagResources."""
    for key, value in tags.items():
        bad_start = key.startswith(("aliyun", "acs:"))
        bad = not key or len(key) > 128 or bad_start or "http://" in key or "https://" in key  # noqa: PLR2004
        _need(not bad, f"Tag key {key!r} is invalid.")
        _need(isinstance(value, str), f"Tag value of {key!r} must be a string.")


def _check_job_specs(specs: Any, behaviours: Behaviours) -> None:
    _need(isinstance(specs, list) and bool(specs), "JobSpecs must have at least one item.")
    for index, spec in enumerate(specs):
        where = f"JobSpecs[{index}]"
        _need(isinstance(spec, dict), f"{where} must be an object.")
        _need(isinstance(spec.get("Type"), str) and bool(spec["Type"]), f"{where}.Type is required.")
        count = spec.get("PodCount", 1)
        _need(_is_int(count) and count >= 1, f"{where}.PodCount {count!r} is invalid: an integer of at least 1.")
        _check_resources(spec, where, behaviours)
        _check_spot_spec(spec, where, behaviours)


def _check_resources(spec: Mapping[str, Any], where: str, behaviours: Behaviours) -> None:
    ecs_spec, config = spec.get("EcsSpec"), _object(spec.get("ResourceConfig"), f"{where}.ResourceConfig")
    candidates = spec.get("ElasticSpotSpecs") or []
    _need(isinstance(candidates, list), f"{where}.ElasticSpotSpecs must be a list.")
    for candidate in candidates:
        _object(candidate, f"{where}.ElasticSpotSpecs[]")
    _need(ecs_spec is None or isinstance(ecs_spec, str), f"{where}.EcsSpec must be a string.")
    _need(not (ecs_spec and config), f"{where}: EcsSpec and ResourceConfig are mutually exclusive.")
    _need(bool(ecs_spec or config or candidates), f"{where}: EcsSpec or ResourceConfig is required.")
    if ecs_spec:
        known = ecs_spec in INSTANCE_TYPES or behaviours["unknown_ecs_spec"] == "accept"
        _need(known, f"{where}.EcsSpec {ecs_spec!r} is invalid.")
    for key, value in config.items():
        _need(isinstance(value, str), f"{where}.ResourceConfig.{key} must be a string.")


def _check_spot_spec(spec: Mapping[str, Any], where: str, behaviours: Behaviours) -> None:
    spot = _object(spec.get("SpotSpec"), f"{where}.SpotSpec")
    if not spot:
        return
    strategy = spot.get("SpotStrategy")
    _need(strategy == SPOT_STRATEGY, f"{where}.SpotSpec.SpotStrategy {strategy!r} is invalid: {SPOT_STRATEGY}.")
    discount, price = spot.get("SpotDiscountLimit"), spot.get("SpotPriceLimit")
    _need(
        (discount is None) != (price is None),
        f"{where}.SpotSpec: give exactly one of SpotDiscountLimit and SpotPriceLimit.",
    )
    if price is None:
        _check_discount(discount, where, behaviours)
    else:
        _need(_is_number(price) and price > 0, f"{where}.SpotSpec.SpotPriceLimit {price!r} is invalid.")
        lingjun = is_lingjun(str(spec.get("EcsSpec") or ""))
        _need(not lingjun, f"{where}.SpotSpec.SpotPriceLimit: Lingjun resources take SpotDiscountLimit only.")


def _check_discount(discount: Any, where: str, behaviours: Behaviours) -> None:
    name = f"{where}.SpotSpec.SpotDiscountLimit {discount!r} is invalid"
    _need(_is_number(discount) and 0 < discount <= 1, f"{name}: a number above 0, 1 at most.")
    steps = discount / _GRID_STEP
    on_grid = abs(steps - round(steps)) < _TOLERANCE and discount <= _GRID_TOP + _TOLERANCE
    _need(on_grid or behaviours["off_grid_bid"] == "accept", f"{name}: 0.1, 0.2 … 0.9.")


def _check_limits(body: Mapping[str, Any]) -> None:
    minutes = body.get("JobMaxRunningTimeMinutes")
    # 0 is used for "unlimited" in the field, though the reference says at least 1.
    _need(
        minutes is None or (_is_int(minutes) and minutes >= 0),
        f"JobMaxRunningTimeMinutes {minutes!r} is invalid: an integer of at least 1.",
    )
    priority = body.get("Priority")
    _need(
        priority is None or (_is_int(priority) and priority in _PRIORITIES),
        f"Priority {priority!r} is invalid: 1 to 9.",
    )


def _check_settings(settings: Any) -> None:
    given = _object(settings, "Settings")
    _check_string_map(given, "Tags")
    _check_monitoring(given.get("ErrorMonitoringArgs"))
    for key in ("JobReservedMinutes", "TerminationGracePeriodSeconds"):
        number = given.get(key)
        _need(number is None or (_is_int(number) and number >= 0), f"Settings.{key} {number!r} is invalid.")
    policy = given.get("JobReservedPolicy")
    _need(
        policy in (None, "", "Always", "OnFailure", "OnSucceed"),
        f"Settings.JobReservedPolicy {policy!r} is invalid: Always, OnFailure or OnSucceed.",
    )


def _check_data_sources(sources: Any) -> None:
    _need(sources is None or isinstance(sources, list), "DataSources must be a list.")
    for index, item in enumerate(sources or []):
        where = f"DataSources[{index}]"
        source = _object(item, where)
        one = bool(source.get("DataSourceId")) != bool(source.get("Uri"))
        _need(one, f"{where}: give exactly one of DataSourceId and Uri.")
        access = source.get("MountAccess")
        _need(access in (None, "", "RO", "RW"), f"{where}.MountAccess {access!r} is invalid: RO or RW.")


def _check_string_map(holder: Mapping[str, Any], key: str) -> None:
    for name, value in _object(holder.get(key), key).items():
        _need(isinstance(value, str), f"{key}[{name!r}] must be a string.")


def _check_monitoring(arguments: Any) -> None:
    if arguments is None:
        return
    _need(isinstance(arguments, str), "Settings.ErrorMonitoringArgs must be a string.")
    try:
        flags = monitoring_flags(arguments)
        int(flags.get("max-num-of-job-restart") or 0)
    except ValueError as error:
        raise invalid_parameter(f"Settings.ErrorMonitoringArgs {arguments!r} is invalid: {error}") from None


def _object(value: Any, where: str) -> Mapping[str, Any]:
    """Return an object of the request, an empty one if it is not given."""
    _need(value is None or isinstance(value, dict), f"{where} must be an object.")
    return value or {}


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _need(holds: bool, message: str) -> None:
    if not holds:
        raise invalid_parameter(message)
