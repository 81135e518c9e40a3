"""
One operator argument at a time: what each may be, and the form in which DLC wants it.

Templates render to text, so numbers and JSON may arrive as strings; they are coerced here, once.
Every function is idempotent: what it returned it accepts again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from airflow_provider_pai_spot.dlc import vocabulary
from airflow_provider_pai_spot.dlc.refusal import Described, InvalidJobRequest, path

Coercion = Callable[[str, object], Any]

RESOURCE_TYPES = ("ECS", "Lingjun")
OWN_TAG_PREFIX = "airflow-"
"""Tags that say whose job this is; users may not set them."""

_MAX_DISPLAY_NAME = 256
_DISPLAY_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_URI = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s]\S*")
_MOUNT_ACCESS = ("RO", "RW")


def text(argument: str, value: object) -> str:
    """Return the value, a text with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidJobRequest(argument, value, "expected a text that is not empty.")
    return value


def user_command(argument: str, value: object) -> str:
    """Return the command; '' is allowed: the image's own entry point runs."""
    if not isinstance(value, str):
        raise InvalidJobRequest(
            argument, value, "expected the shell command to run, as text ('' for the image's entry point)."
        )
    return value


def ecs_spec(argument: str, value: object) -> str:
    """Return the instance type."""
    name = text(argument, value).strip()
    if re.search(r"\s", name):
        raise InvalidJobRequest(argument, value, "expected one instance type, such as 'ecs.g7.xlarge'.")
    return name


def workspace_id(argument: str, value: object) -> str:
    """Return the workspace id as text; DLC shows it as a number and takes it as a string."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text(argument, value).strip()


def display_name(argument: str, value: object) -> str:
    """Return the job's name, of the characters DLC allows."""
    name = text(argument, value)
    if not _DISPLAY_NAME.fullmatch(name):
        raise InvalidJobRequest(argument, value, "DLC allows letters, digits, '_', '.' and '-' in a job's name.")
    if len(name) > _MAX_DISPLAY_NAME:
        raise InvalidJobRequest(
            argument, value, f"it has {len(name)} characters, DLC allows {_MAX_DISPLAY_NAME}; shorten it."
        )
    return name


def job_type(argument: str, value: object) -> str:
    """Return the framework, spelled as DLC spells it."""
    return _one_of(argument, value, vocabulary.JOB_TYPES)


def resource_type(argument: str, value: object) -> str:
    """Return `ECS` or `Lingjun`."""
    return _one_of(argument, value, RESOURCE_TYPES)


def pod_count(argument: str, value: object) -> int:
    """Return the number of instances of a role."""
    return whole_number(argument, value, lowest=1)


def priority(argument: str, value: object) -> int:
    """Return the job's priority in its quota's queue, 1 to 9, 9 highest."""
    return whole_number(argument, value, lowest=1, highest=9)


def minutes(argument: str, value: object) -> int:
    """Return a duration in minutes, 1 or more."""
    return whole_number(argument, value, lowest=1)


def whole_number(argument: str, value: object, *, lowest: int, highest: int | None = None) -> int:
    """Return an integer within bounds; digits as text are read as a number."""
    number = value
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", value):
        number = int(value)
    within = f"from {lowest} to {highest}" if highest is not None else f"of {lowest} or more"
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidJobRequest(argument, value, f"expected a whole number {within}.")
    if number < lowest or (highest is not None and number > highest):
        raise InvalidJobRequest(argument, value, f"expected a whole number {within}.")
    return number


def mapping(argument: str, value: object) -> dict[str, Any]:
    """Return a dict; JSON text of an object is read as one."""
    parsed = _from_json(argument, value)
    if not isinstance(parsed, Mapping):
        raise InvalidJobRequest(
            argument, _kind(parsed), "expected a dict (or, from a template, the text of a JSON object)."
        )
    return dict(parsed)


def list_of_mappings(argument: str, value: object) -> list[dict[str, Any]]:
    """Return a list of dicts; JSON text of an array is read as one."""
    parsed = _from_json(argument, value)
    if not isinstance(parsed, (list, tuple)):
        raise InvalidJobRequest(
            argument,
            _kind(parsed),
            "expected a list of dicts (or, from a template, the text of a JSON array).",
        )
    return [mapping(path(argument, index), item) for index, item in enumerate(parsed)]


def envs(argument: str, value: object) -> dict[str, Any]:
    """Return environment variables; a wrong one is named, its value never shown."""
    variables = mapping(argument, value)
    for name, content in variables.items():
        if not isinstance(name, str) or not name or "=" in name:
            raise InvalidJobRequest(argument, value, f"{name!r} cannot name an environment variable.")
        if not isinstance(content, str):
            raise InvalidJobRequest(
                path(argument, name),
                _kind(content),
                "environment variables are text; write str(…) around it.",
            )
    return variables


def checkpoint_uri(argument: str, value: object) -> str:
    """Return the address of the checkpoint folder."""
    uri = text(argument, value).strip()
    if not _URI.fullmatch(uri):
        raise InvalidJobRequest(
            argument,
            value,
            "expected a storage address such as "
            "'oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/folder/' (scheme://…).",
        )
    return uri


def data_sources(argument: str, value: object) -> list[dict[str, Any]]:
    """Return the mounts, each with a DataSourceId or a Uri."""
    sources = list_of_mappings(argument, value)
    for index, source in enumerate(sources):
        where = path(argument, index)
        vocabulary.check_keys(where, source, vocabulary.DATA_SOURCE_KEYS)
        if bool(source.get("DataSourceId")) == bool(source.get("Uri")):
            raise InvalidJobRequest(where, source, "give exactly one of DataSourceId and Uri.")
        if source.get("MountAccess") is not None:
            _one_of(path(where, "MountAccess"), source["MountAccess"], _MOUNT_ACCESS)
    return sources


def code_source(argument: str, value: object) -> dict[str, Any]:
    """Return the code configuration, in DLC's keys."""
    return _in_dlc_keys(argument, value, vocabulary.CODE_SOURCE_KEYS)


def user_vpc(argument: str, value: object) -> dict[str, Any]:
    """Return the network configuration, in DLC's keys."""
    return _in_dlc_keys(argument, value, vocabulary.USER_VPC_KEYS)


def settings(argument: str, value: object) -> dict[str, Any]:
    """Return the job's settings; tags that mark a job as ours are refused."""
    checked = _in_dlc_keys(argument, value, vocabulary.SETTINGS_KEYS)
    if checked.get("Tags") is not None:
        checked["Tags"] = _tags(path(argument, "Tags"), checked["Tags"])
    return checked


def overrides(argument: str, value: object) -> dict[str, Any]:
    """Return top-level CreateJob keys to merge last."""
    keys = mapping(argument, value)
    vocabulary.check_keys(argument, keys, vocabulary.TOP_LEVEL_KEYS, only_known=True)
    return keys


FIELDS: Final[dict[str, tuple[str, Coercion]]] = {
    "display_name": ("DisplayName", display_name),
    "workspace_id": ("WorkspaceId", workspace_id),
    "job_type": ("JobType", job_type),
    "user_command": ("UserCommand", user_command),
    "envs": ("Envs", envs),
    "data_sources": ("DataSources", data_sources),
    "code_source": ("CodeSource", code_source),
    "user_vpc": ("UserVpc", user_vpc),
    "settings": ("Settings", settings),
    "priority": ("Priority", priority),
    "job_max_running_time_minutes": ("JobMaxRunningTimeMinutes", minutes),
}
"""Operator argument -> the key of CreateJob it becomes, and how its value is checked."""


def as_given(_argument: str, value: object) -> object:
    """Return a bid as it is; it is checked with its role, where its rules are."""
    return value


_PARTS: dict[str, Coercion] = {
    "image": text,
    "ecs_spec": ecs_spec,
    "pod_count": pod_count,
    "spot_discount_limit": as_given,
    "spot_price_limit": as_given,
    "job_specs": list_of_mappings,
    "checkpoint_uri": checkpoint_uri,
    "resource_type": resource_type,
    "job_overrides": overrides,
}

_COERCIONS: dict[str, Coercion] = {name: check for name, (_, check) in FIELDS.items()} | _PARTS


def coerced(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the arguments that are given, each in the form DLC wants.

    :raises InvalidJobRequest: one is unknown, or is wrong by itself.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    vocabulary.check_keys("arguments", given, tuple(_COERCIONS), only_known=True)
    return {name: _COERCIONS[name](name, value) for name, value in given.items()}


def _tags(argument: str, value: object) -> dict[str, Any]:
    tags = mapping(argument, value)
    for name, content in tags.items():
        if str(name).startswith(OWN_TAG_PREFIX):
            raise InvalidJobRequest(
                path(argument, name),
                content,
                f"tags that start with {OWN_TAG_PREFIX!r} say which task a job belongs to and are set by "
                "this provider; choose another name.",
            )
        if not isinstance(content, str):
            raise InvalidJobRequest(path(argument, name), content, "tags are text.")
    return tags


def _in_dlc_keys(argument: str, value: object, known: tuple[str, ...]) -> dict[str, Any]:
    checked = mapping(argument, value)
    vocabulary.check_keys(argument, checked, known)
    return checked


def _one_of(argument: str, value: object, allowed: tuple[str, ...]) -> str:
    if value in allowed:
        return str(value)
    hint = ""
    for name in allowed:
        if str(value).strip().casefold() == name.casefold():
            hint = f" Did you mean {name!r}? Case counts."
    raise InvalidJobRequest(argument, value, f"expected one of {', '.join(allowed)}.{hint}")


def _from_json(argument: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise InvalidJobRequest(
            argument,
            _kind(value),
            "it cannot be read as JSON; in a template, end the expression with `| tojson`.",
        ) from None


def _kind(value: object) -> object:
    """Stand in for a value that may hold secrets."""
    if value is None or isinstance(value, (Mapping, list, tuple)):
        return value
    if isinstance(value, str):
        return Described(f"a text of {len(value)} characters")
    return Described(f"of type {type(value).__name__}")
