"""
The newest file in an attempt's checkpoint folder, where the worker can reach it: the best sign of progress there is.

Reads through Airflow's object storage (the filesystems of installed providers). Whatever goes wrong there is said and
never the task's problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from airflow_provider_pai_spot.dlc.wire import iso, time_of

OFF: Final = "off"
_TIMES: Final = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")
"""What filesystems call the time of a file's last change: s3fs, adlfs, local files, gcsfs, ..."""
_ENDPOINT: Final = ".oss-"
"""Begins OSS's endpoint in DLC's URIs: oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/path/."""
_LONGEST_NAME: Final = 120

FindFilesystem = Callable[[str, str | None], Any]
"""Returns an fsspec filesystem for a scheme and a connection id."""


@dataclass(frozen=True, slots=True)
class Sight:
    """
    What a look at a checkpoint folder showed.

    :param newest: time and name of the newest file, '' for an empty folder; None if it could not be looked at.
    :param problem: why it could not.
    """

    newest: str | None
    problem: str = ""


def look_at_checkpoints(uri: str, storage: str, filesystem: FindFilesystem | None = None) -> Sight:
    """
    Return the newest file below a folder; never raises.

    :param uri: as DLC is told it, with the attempt's own folder at its end.
    :param storage: `[pai_spot] checkpoint_storage`.
    :param filesystem: None: Airflow's object storage.
    """
    if storage == OFF:
        return Sight(None, "[pai_spot] checkpoint_storage is off")
    try:
        scheme, conn_id, path = where(uri, storage)
        return Sight(_newest_below((filesystem or _filesystem)(scheme, conn_id), path))
    except Exception as error:  # noqa: BLE001 - a filesystem may raise anything, and the task must go on
        problem = str(error).splitlines()[0][:_LONGEST_NAME] if str(error) else type(error).__name__
        return Sight(None, f"{problem} ([pai_spot] checkpoint_storage)")


def where(uri: str, storage: str) -> tuple[str, str | None, str]:
    """
    Return scheme, connection id and path under which Airflow knows DLC's URI.

    :param storage: '' for the URI's own scheme without a connection, else `scheme://conn_id`.
    """
    seen, asked = urlsplit(uri), urlsplit(storage)
    bucket = seen.netloc.split(_ENDPOINT, 1)[0]
    path = f"{bucket}/{seen.path.strip('/')}" if bucket else seen.path.rstrip("/")
    return asked.scheme or seen.scheme, asked.netloc or None, path


def _newest_below(fs: Any, path: str) -> str:
    """
    Return the newest file of a folder, '' if there is none.

    :raises FileNotFoundError: the bucket is not there. Filesystems say so in the same words as of an empty folder:
        s3fs by this error, ossfs by no files, and so of a bucket that may not be read.
    """
    fs.invalidate_cache()  # ossfs would show what it saw after the loss before
    try:
        newest = newest_of(fs.find(path, detail=True))
    except FileNotFoundError:
        newest = ""
    if not newest and not fs.exists(_root_of(path)):
        raise FileNotFoundError(f"{_root_of(path)!r} is not there or may not be read")
    return newest


def _root_of(path: str) -> str:
    """Return the bucket of a path, or the topmost folder of one that begins with `/`."""
    head, _, rest = path.partition("/")
    return head or f"/{rest.split('/', 1)[0]}"


def newest_of(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return time and name of the newest file; '' if there is none."""
    seen = [
        f"{_time(info)} {name}"[:_LONGEST_NAME] for name, info in files.items() if info.get("type", "file") == "file"
    ]
    return max(seen, default="")


def _filesystem(scheme: str, conn_id: str | None) -> Any:
    from airflow.sdk.io import attach

    return attach(scheme, conn_id).fs


def _time(info: Mapping[str, Any]) -> str:
    value = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = datetime.fromtimestamp(value, UTC)
    return iso(value if isinstance(value, datetime) else time_of(value))
