"""Small rules about operator arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from airflow.sdk.log import mask_secret

from airflow_provider_pai_spot.settings import SHORTEST_MASKED_SECRET

_SECRET_SECTIONS = ("ImageConfig", "CredentialConfig")


def mask_request_secrets(*arguments: Any) -> None:
    """
    Register registry passwords and injected credentials with Airflow's masker.

    They are found wherever they are nested, also inside JSON text, which a template renders to.
    """
    for argument in arguments:
        for secret in _secrets(argument, inside=False):
            if len(secret) >= SHORTEST_MASKED_SECRET:
                mask_secret(secret)


def _secrets(value: Any, *, inside: bool) -> Iterator[str]:
    value = _parsed(value)
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secrets(item, inside=inside or key in _SECRET_SECTIONS)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _secrets(item, inside=inside)
    elif inside and isinstance(value, str):
        yield from {value, json.dumps(value)[1:-1]}  # as it is, and as it stands in JSON text


def _parsed(value: Any) -> Any:
    """Return the content of a text that is a JSON object or array; anything else as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
