"""Whether a job came further than the jobs before it, by what its command printed and by the checkpoints it left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

COUNTERS: Final = ("step", "global_step", "iteration", "epoch", "samples", "tokens", "percent")
"""Keys of a PAI_SPOT_PROGRESS object that count upwards. One may begin anew in each epoch while another goes on."""


def came_further(progress: Mapping[str, Any] | None, before: Iterable[Mapping[str, Any] | None]) -> bool | None:
    """
    Return whether a progress object is beyond all earlier ones; None where no job ever printed one.

    Without a known counter anything else than before is taken for progress: the breaker must not end work that goes on.

    :param progress: the last one that the job printed, None for none.
    :param before: those of the jobs before it.
    """
    earlier = [one for one in before if one is not None]
    if progress is None:
        return False if earlier else None
    if not earlier:
        return True
    beyond = [is_beyond for counter in COUNTERS if (is_beyond := _is_beyond(counter, progress, earlier)) is not None]
    return any(beyond) if beyond else all(progress != one for one in earlier)


def newer_checkpoint(newest: str | None, before: Iterable[str | None]) -> bool | None:
    """
    Return whether a checkpoint was written since the jobs before; None where nobody could look.

    :param newest: time and name of the newest file in the folder, '' for an empty folder, None if not looked at.
    :param before: what was seen after each of the jobs before.
    """
    if newest is None:
        return None
    return newest > max((one for one in before if one is not None), default="")


def either(*signs: bool | None) -> bool | None:
    """Return True if any sign shows progress, None if none can tell."""
    known = [sign for sign in signs if sign is not None]
    return any(known) if known else None


def _is_beyond(counter: str, progress: Mapping[str, Any], earlier: Iterable[Mapping[str, Any]]) -> bool | None:
    """Compare one counter; None where it cannot be compared."""
    reached = _number(progress.get(counter))
    known = [number for one in earlier if (number := _number(one.get(counter))) is not None]
    return reached > max(known) if reached is not None and known else None


def _number(value: Any) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, (int, float)) else value
