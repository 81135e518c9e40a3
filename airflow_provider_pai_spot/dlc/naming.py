"""The name a job gets when nobody gave one."""

from __future__ import annotations

import re

MAX_DEFAULT_NAME = 63
"""DLC's reference allows 256 characters, some accounts report 63: a default keeps to the lower."""


def default_display_name(dag_id: str, task_id: str, key: str) -> str:
    """
    Return `<dag>-<task>-<key>` in the characters DLC allows, 63 at most.

    The key makes the name unique, so it is the start that is cut.

    :param key: what tells this task instance from others, such as the first characters of its hash.
    """
    tail = _legal(key)[-MAX_DEFAULT_NAME:]
    room = MAX_DEFAULT_NAME - len(tail) - 1
    head = _legal(f"{dag_id}-{task_id}")[: max(room, 0)].rstrip("-._")
    return f"{head}-{tail}" if head and tail else head or tail or "job"


def _legal(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-")
