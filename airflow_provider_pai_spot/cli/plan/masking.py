"""A CreateJob body as it may be shown: values of variables and of registry and injected credentials are masked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk.log import redact  # type: ignore[attr-defined]  # the masker that Airflow fills, in public reach

from airflow_provider_pai_spot.attempts.identity import (
    ENV_ATTEMPT,
    ENV_CHECKPOINT_DIR,
    ENV_DAG_ID,
    ENV_MAP_INDEX,
    ENV_RESUME,
    ENV_RUN_ID,
    ENV_TASK_ID,
)

MASK = "***"
# By full name, not by prefix: these are set by us, whatever the DAG says; another PAI_SPOT_… may be anything.
_OUR_VARIABLES = frozenset(
    {ENV_DAG_ID, ENV_RUN_ID, ENV_TASK_ID, ENV_MAP_INDEX, ENV_ATTEMPT, ENV_RESUME, ENV_CHECKPOINT_DIR}
)
_SECRET_SECTIONS = ("ImageConfig", "CredentialConfig")


def masked(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy that holds no secret: names stay, values of `Envs` and the like do not, at any depth."""
    return {key: _masked(key, value) for key, value in body.items()}


def redacted(text: str) -> str:
    """Return a text without what Airflow knows to be secret: passwords of connections, sensitive variables."""
    return str(redact(text))


def _masked(key: str, value: Any) -> Any:
    if key == "Envs":
        return _variables(value)
    if key == "CustomEnvs":
        return _custom_variables(value)
    if key in _SECRET_SECTIONS:
        return _all_masked(value)
    if isinstance(value, Mapping):
        return masked(value)
    if isinstance(value, (list, tuple)):
        return [_masked(key, item) for item in value]
    return redact(value, key) if isinstance(value, str) else value


def _variables(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return MASK
    return {name: content if name in _OUR_VARIABLES else MASK for name, content in value.items()}


def _custom_variables(value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        return MASK
    return [{"Key": item.get("Key"), "Value": MASK} if isinstance(item, Mapping) else MASK for item in value]


def _all_masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _all_masked(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_all_masked(item) for item in value]
    return MASK
