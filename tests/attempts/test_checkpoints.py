"""The newest checkpoint, wherever Airflow can reach it; and whatever goes wrong there."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from airflow_provider_pai_spot.attempts.checkpoints import look_at_checkpoints, newest_of, where

OSS = "oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/nightly/dag/train/0123/"
PLACES: dict[str, tuple[str, str, tuple[str, str | None, str]]] = {
    "as DLC is told, without a connection": (OSS, "", ("oss", None, "bucket/nightly/dag/train/0123")),
    "through a connection that speaks S3": (OSS, "s3://oss_conn", ("s3", "oss_conn", "bucket/nightly/dag/train/0123")),
    "another scheme without a connection": (OSS, "s3://", ("s3", None, "bucket/nightly/dag/train/0123")),
    "a bucket without an endpoint": ("oss://bucket/a/", "", ("oss", None, "bucket/a")),
    "a path without a bucket": ("file:///mnt/a/", "", ("file", None, "/mnt/a")),
}


@pytest.mark.parametrize(("uri", "storage", "place"), PLACES.values(), ids=PLACES)
def test_dlc_s_uri_is_told_in_airflow_s_words(uri: str, storage: str, place: tuple[str, str | None, str]) -> None:
    assert where(uri, storage) == place


def test_the_newest_file_counts_at_any_depth(tmp_path: Path) -> None:
    for age, name in ((300, "step-2.pt"), (200, "deep/step-3.pt"), (400, "step-9.pt")):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
        os.utime(file, (1_700_000_000 - age,) * 2)
    seen = look_at_checkpoints(tmp_path.as_uri(), "")
    assert seen.newest == f"2023-11-14T22:10:00Z {tmp_path}/deep/step-3.pt"
    assert seen.problem == ""


def test_an_empty_folder_and_none_at_all_are_no_checkpoint(tmp_path: Path) -> None:
    assert look_at_checkpoints(tmp_path.as_uri(), "").newest == ""
    assert look_at_checkpoints((tmp_path / "none").as_uri(), "").newest == ""


TIMES: dict[str, Any] = {
    "s3": {"LastModified": datetime(2026, 11, 30, 12, 0, tzinfo=UTC)},
    "a number": {"mtime": 1796040000.0},
    "text": {"updated": "2026-11-30T12:00:00Z"},
}


@pytest.mark.parametrize("info", TIMES.values(), ids=TIMES)
def test_each_filesystem_s_own_name_for_the_time_is_read(info: dict[str, Any]) -> None:
    assert newest_of({"b/a.pt": {"type": "file", **info}, "b": {"type": "directory"}}) == "2026-11-30T12:00:00Z b/a.pt"


def test_without_times_the_names_decide() -> None:
    assert newest_of({"b/1": {"type": "file"}, "b/2": {"type": "file", "mtime": None}}) == " b/2"


UNREACHABLE: dict[str, tuple[str, str, str]] = {
    "no provider knows the scheme": (OSS, "", "No filesystem registered for scheme oss"),
    "nor the one that is asked for": (OSS, "s4://conn", "No filesystem registered for scheme s4"),
    "switched off": (OSS, "off", "checkpoint_storage is off"),
    "no URI at all": ("not a uri", "", "checkpoint_storage"),
}


@pytest.mark.parametrize(("uri", "storage", "problem"), UNREACHABLE.values(), ids=UNREACHABLE)
def test_storage_that_cannot_be_reached_is_no_reason_to_lose_the_task(uri: str, storage: str, problem: str) -> None:
    seen = look_at_checkpoints(uri, storage)
    assert seen.newest is None
    assert problem in seen.problem


class Bucket(MemoryFileSystem):
    """Keeps objects below `/bucket`; each test's own."""

    cachable = False

    def __init__(self, *names: str, raises: bool = False) -> None:
        super().__init__()
        self.store: dict[str, Any] = {}
        self.pseudo_dirs: list[str] = ["", "/bucket"]
        self.raises = raises
        for name in names:
            self.pipe_file(f"/bucket/{name}", b"x")

    def find(self, path: str, *rest: Any, **options: Any) -> Any:
        """Say of a folder that has no files what s3fs says, or what ossfs says."""
        files = super().find(path, *rest, **options)
        if self.raises and not files:
            raise FileNotFoundError(path)
        return files


EMPTY: dict[str, bool] = {"by an error, as s3fs": True, "by no files, as ossfs": False}


@pytest.mark.parametrize("raises", EMPTY.values(), ids=EMPTY)
def test_a_bucket_that_is_not_there_is_not_a_folder_without_checkpoints(raises: bool) -> None:
    fs = Bucket("other/file", raises=raises)
    assert look_at_checkpoints("oss://bucket/nightly/", "", lambda *_: fs).newest == ""
    seen = look_at_checkpoints("oss://bukket/nightly/", "", lambda *_: fs)
    assert seen.newest is None
    assert seen.problem == "'bukket' is not there or may not be read ([pai_spot] checkpoint_storage)"


def test_nor_is_a_mount_that_is_not_there() -> None:
    assert look_at_checkpoints("file:///no-such-mount/nightly/", "").newest is None


def test_a_filesystem_that_remembers_what_it_listed_is_asked_anew() -> None:
    class Remembering(Bucket):
        listed: Any = None

        def invalidate_cache(self, path: str | None = None) -> None:
            del path
            self.listed = None

        def find(self, path: str, *rest: Any, **options: Any) -> Any:
            self.listed = super().find(path, *rest, **options) if self.listed is None else self.listed
            return self.listed

    fs = Remembering("nightly/1.pt")
    assert look_at_checkpoints("oss://bucket/nightly/", "", lambda *_: fs).newest.endswith("1.pt")
    fs.pipe_file("/bucket/nightly/2.pt", b"x")
    assert look_at_checkpoints("oss://bucket/nightly/", "", lambda *_: fs).newest.endswith("2.pt")
