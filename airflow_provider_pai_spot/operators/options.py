"""Small rules about operator arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, overload

from airflow.sdk.log import mask_secret

_SECRET_SECTIONS = ("ImageConfig", "CredentialConfig")
_SHORTEST_SECRET = 6


@overload
def as_timedelta(argument: str, value: timedelta | float) -> timedelta: ...
@overload
def as_timedelta(argument: str, value: None) -> None: ...
@overload
def as_timedelta(argument: str, value: timedelta | float | None) -> timedelta | None: ...
def as_timedelta(argument: str, value: timedelta | float | None) -> timedelta | None:
    """
    Return a limit as timedelta; numbers are seconds.

    :raises TypeError: not a duration.
    :raises ValueError: not above zero.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, timedelta)):
        raise TypeError(f"{argument} is {value!r}: expected a timedelta or a number of seconds.")
    limit = value if isinstance(value, timedelta) else timedelta(seconds=value)
    if limit <= timedelta(0):
        raise ValueError(f"{argument} is {value!r}: expected a duration above zero.")
    return limit


def mask_request_secrets(*arguments: Any) -> None:
    """Register registry passwords and injected credentials, wherever they are nested, with Airflow's masker."""
    for argument in arguments:
        for secret in _secrets(argument, inside=False):
            mask_secret(secret)


def _secrets(value: Any, *, inside: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secrets(item, inside=inside or key in _SECRET_SECTIONS)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _secrets(item, inside=inside)
    elif inside and isinstance(value, str) and len(value) >= _SHORTEST_SECRET:
        yield value
