"""The CreateJob body as a dict: putting it together, merging overrides, and what must fit together in it."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from airflow_provider_pai_spot.dlc import arguments, vocabulary
from airflow_provider_pai_spot.dlc.refusal import Described, InvalidJobRequest, path
from airflow_provider_pai_spot.dlc.roles import FLAT_ARGUMENTS, ResourceType, flat_role

CHECKPOINT_MOUNT: Final = "/mnt/pai_spot/checkpoints"
"""Where `checkpoint_uri` is mounted in every pod."""

MAX_REQUEST_BYTES: Final = 65_536
"""CreateJob's limit for the whole request, in bytes of compact JSON."""

ATTEMPT_BYTES: Final = 2_048
"""Kept free for the tags and variables of an attempt: ids of 250 letters, each up to three times, and hashes."""

_DEFAULT_JOB_TYPE = "PyTorchJob"  # the one framework DLC offers spot capacity for on both kinds of resources
_LINGJUN_VPC = ("VpcId", "SwitchId", "SecurityGroupId")
_SPOT_FRAMEWORKS: dict[ResourceType, tuple[str, ...]] = {
    "ECS": ("PyTorchJob",),
    "Lingjun": ("PyTorchJob", "MPIJob"),
}
_REQUIRED = {
    "display_name": "expected a name for the job.",
    "workspace_id": "expected a PAI workspace: set `workspace_id` on the task or in the connection's extra; "
    "without one DLC takes the caller's default workspace without a word.",
    "user_command": "expected the command to run ('' for the image's own entry point).",
}


def composed(given: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the body that coerced arguments make, with `job_overrides` merged last.

    :raises InvalidJobRequest: arguments are missing or exclude each other.
    """
    overrides = given.get("job_overrides", {})
    body: dict[str, Any] = {"JobType": _DEFAULT_JOB_TYPE}
    body |= {key: given[name] for name, (key, _) in arguments.FIELDS.items() if name in given}
    _refuse_two_descriptions(given, overrides)
    if "job_specs" in given:
        body["JobSpecs"] = given["job_specs"]
    elif "JobSpecs" not in overrides:
        body["JobSpecs"] = [flat_role(given)]
    body = merged(body, _checked(overrides))
    _check_required(body)
    return body


def merged(base: Any, override: Any) -> Any:
    """Merge dicts at every depth; anything else, lists included, is replaced. Shares nothing with either."""
    if not isinstance(base, Mapping) or not isinstance(override, Mapping):
        return copy.deepcopy(override)
    result = {key: copy.deepcopy(value) for key, value in base.items()}
    for key, value in override.items():
        result[key] = merged(result.get(key), value)
    return result


def check_network(body: Mapping[str, Any], resource_type: ResourceType) -> None:
    """
    Refuse Lingjun resources without a network.

    :raises InvalidJobRequest: one of VpcId, SwitchId and SecurityGroupId is missing.
    """
    vpc = body.get("UserVpc") or {}
    missing = [key for key in _LINGJUN_VPC if not vpc.get(key)]
    if resource_type == "Lingjun" and missing:
        raise InvalidJobRequest(
            "user_vpc",
            vpc or None,
            f"Lingjun resources (instance types 'ml.…') need {', '.join(_LINGJUN_VPC)}; add {', '.join(missing)}.",
        )


def mount_checkpoints(body: dict[str, Any], checkpoint_uri: str) -> None:
    """
    Add the checkpoint folder to the body's mounts.

    :raises InvalidJobRequest: something else is mounted there.
    """
    sources = body.get("DataSources") or []
    if any(str(source.get("MountPath") or "").rstrip("/") == CHECKPOINT_MOUNT for source in sources):
        raise InvalidJobRequest(
            "data_sources",
            sources,
            f"{CHECKPOINT_MOUNT} is where checkpoint_uri is mounted; use another path.",
        )
    mount = {"Uri": checkpoint_uri, "MountPath": CHECKPOINT_MOUNT, "MountAccess": "RW"}
    body["DataSources"] = [*sources, mount]


def as_json(body: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the body as it arrives at the other end of JSON.

    :raises InvalidJobRequest: a value is not JSON.
    """
    plain = {}
    for key, value in body.items():
        try:
            plain[key] = json.loads(_compact(value))
        except (TypeError, ValueError, RecursionError) as problem:
            raise InvalidJobRequest(
                key,
                Described("not JSON"),
                f"it holds something JSON has no form for ({type(problem).__name__}).",
            ) from None
    return plain


def check_size(body: Mapping[str, Any], *, kept_free: int = 0) -> None:
    """
    Refuse a body that is larger than DLC takes.

    :param kept_free: bytes that what is still to be added may take.
    :raises InvalidJobRequest: it is.
    """
    size = request_size(body)
    if size <= MAX_REQUEST_BYTES - kept_free:
        return
    kept = f", of which {kept_free} are kept for the tags and variables that each attempt adds" if kept_free else ""
    largest = max(body, key=lambda key: len(_compact(body[key])))
    raise InvalidJobRequest(
        "the request",
        Described(f"{size} bytes of JSON"),
        f"DLC takes {MAX_REQUEST_BYTES} at most{kept}. The largest part is {largest}: move it into the image, a "
        "code source or a mounted file.",
    )


def request_size(body: Mapping[str, Any]) -> int:
    """Return what DLC's limit is compared with: the bytes of the body as compact JSON."""
    return len(_compact(body))


def fingerprint(value: Any, length: int) -> str:
    """Return the first hex digits of a hash that does not depend on the order of keys."""
    return hashlib.sha256(_compact(value)).hexdigest()[:length]


def warnings_about(body: Mapping[str, Any], resource_type: ResourceType) -> tuple[str, ...]:
    """Return what is allowed but worth a line in the log."""
    warnings = []
    frameworks = _SPOT_FRAMEWORKS[resource_type]
    if body["JobType"] not in frameworks:
        warnings.append(
            f"job_type is {body['JobType']!r}: as of DLC's 2025 help page, spot capacity on {resource_type} "
            f"resources is offered for {' and '.join(frameworks)}."
        )
    if not body["UserCommand"].strip():
        warnings.append("user_command is empty: the image's own entry point runs.")
    if resource_type == "ECS" and (body.get("Settings") or {}).get("EnableErrorMonitoringInAIMaster"):
        warnings.append(
            "settings['EnableErrorMonitoringInAIMaster'] is on: DLC's pages disagree whether automatic fault "
            "tolerance is supported for spot jobs on ECS resources."
        )
    return (*warnings, *_key_warnings(body))


def _refuse_two_descriptions(given: Mapping[str, Any], overrides: Mapping[str, Any]) -> None:
    flat = [name for name in FLAT_ARGUMENTS if name in given]
    other = "job_specs" if "job_specs" in given else "job_overrides" if "JobSpecs" in overrides else None
    if flat and other:
        raise InvalidJobRequest(
            flat[0],
            given[flat[0]],
            f"{other} describes every role by itself; move it there, in DLC's keys (Image, EcsSpec, "
            "PodCount, SpotSpec).",
        )


def _checked(overrides: Mapping[str, Any]) -> dict[str, Any]:
    checks = dict(arguments.FIELDS.values())
    return {
        key: checks[key](path("job_overrides", key), value) if key in checks else value
        for key, value in overrides.items()
    }


def _check_required(body: Mapping[str, Any]) -> None:
    for name, allowed in _REQUIRED.items():
        if arguments.FIELDS[name][0] not in body:
            raise InvalidJobRequest(name, None, allowed)


def _key_warnings(body: Mapping[str, Any]) -> list[str]:
    warnings: list[str] = []
    for key, known in (
        ("UserVpc", vocabulary.USER_VPC_KEYS),
        ("CodeSource", vocabulary.CODE_SOURCE_KEYS),
        ("Settings", vocabulary.SETTINGS_KEYS),
    ):
        warnings += vocabulary.check_keys(key, body.get(key) or {}, known)
    for index, source in enumerate(body.get("DataSources") or []):
        warnings += vocabulary.check_keys(path("DataSources", index), source, vocabulary.DATA_SOURCE_KEYS)
    return warnings


def _compact(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
