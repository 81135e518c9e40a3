from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pai_spot.emulator.paths import (
    MountMap,
    PathEscapeError,
    checked_root,
    mount_folder,
    new_pod_folder,
    safe_name,
)

HOSTILE = [
    "..",
    "../../etc",
    "/etc",
    "a/../../b",
    ".",
    "",
    "~root",
    "a\0b",
    "a\nb",
    "-rf",
    "x" * 5000,
    "é/中",
    "\ud800",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return checked_root(tmp_path / "root")


@pytest.mark.parametrize("name", HOSTILE)
def test_no_id_and_no_uri_leads_out_of_the_root(root: Path, name: str) -> None:
    pod, mount = new_pod_folder(root, name, name), mount_folder(root, name)
    assert pod.resolve().parent.parent == root / "jobs"
    assert mount.resolve().parent == root / "mounts"
    assert {entry.name for entry in root.parent.iterdir()} == {"root"}


@given(name=st.text())
def test_a_safe_name_is_one_plain_path_component(name: str) -> None:
    made = safe_name(name)
    assert Path(made).parts == (made,)
    assert made.isascii()
    assert len(made) <= 63
    assert not made.startswith((".", "-"))


def test_dlcs_own_ids_stay_as_they_are() -> None:
    assert safe_name("dlc1a2b3c4d5e6f7-worker-0") == "dlc1a2b3c4d5e6f7-worker-0"


def test_ids_that_look_alike_once_cleaned_stay_apart() -> None:
    assert len({safe_name(text) for text in ("a/b", "a-b", "a.b", "a b", "/a/b")}) == 5


@pytest.mark.parametrize("planted", ["jobs", "jobs/dlc1"])
def test_a_planted_link_is_refused(root: Path, tmp_path: Path, planted: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / planted).parent.mkdir(exist_ok=True)
    (root / planted).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PathEscapeError, match="symbolic link"):
        new_pod_folder(root, "dlc1", "w")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_in_a_mounts_place_is_refused(root: Path, tmp_path: Path) -> None:
    folder = mount_folder(root, "oss://b/x")
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(PathEscapeError):
        mount_folder(root, "oss://b/x")


def test_a_link_in_a_pods_place_is_passed_by(root: Path, tmp_path: Path) -> None:
    (root / "jobs" / "dlc1").mkdir(parents=True)
    (root / "jobs" / "dlc1" / "w").symlink_to(tmp_path)
    assert new_pod_folder(root, "dlc1", "w").name == "w.2"


@pytest.mark.parametrize("name", ["with space", "semi;colon", "dollar$HOME", "quote'"])
def test_a_root_that_would_need_quoting_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="choose one without"):
        checked_root(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("ls /mnt/data", "ls D", id="whole word"),
        pytest.param("ls /mnt/data/", "ls D/", id="trailing slash"),
        pytest.param("--to=/mnt/data/a/b.txt", "--to=D/a/b.txt", id="below it, after an equals sign"),
        pytest.param("\"/mnt/data\" '/mnt/data'", "\"D\" 'D'", id="quoted"),
        pytest.param("/usr/lib:/mnt/data:/mnt/data/x", "/usr/lib:D:D/x", id="in a list"),
        pytest.param("file:///mnt/data/x", "file://D/x", id="file URI"),
        pytest.param("saved to /mnt/data.", "saved to D.", id="at the end of a sentence"),
        pytest.param("/mnt/data/nested/x", "N/x", id="the longest path wins"),
        pytest.param("/mnt/data/nested2", "D/nested2", id="not a longer name of a nested one"),
        pytest.param(
            "/mnt/data2 /mnt/data-old /mnt/data.bak",
            "/mnt/data2 /mnt/data-old /mnt/data.bak",
            id="other name",
        ),
        pytest.param("$HOME/mnt/data ${X}/mnt/data ./mnt/data", "$HOME/mnt/data ${X}/mnt/data ./mnt/data", id="inside"),
        pytest.param("oss://bucket/mnt/data", "oss://bucket/mnt/data", id="inside a URI"),
        pytest.param("/mnt /etc/passwd /", "/mnt /etc/passwd /", id="nothing mounted there"),
    ],
)
def test_mount_paths_are_replaced_where_they_are_whole_paths(text: str, expected: str) -> None:
    mapped = MountMap({"/mnt/data/": Path("D"), "/mnt/data/nested": Path("N")})
    assert mapped.rewrite(text) == expected


def test_what_was_put_in_is_not_replaced_again() -> None:
    mapped = MountMap({"/a": Path("/b"), "/b": Path("/a")})
    assert mapped.rewrite("/a /b") == "/b /a"


@pytest.mark.parametrize("path", ["/", "", "//", "relative/path"])
def test_a_mount_path_that_is_no_folder_of_its_own_maps_nothing(root: Path, path: str) -> None:
    assert MountMap.create(root, [(path, "oss://b/", "RW")]).rewrite("/ /x relative/path") == "/ /x relative/path"


def test_a_uri_has_one_folder_with_a_readable_name(root: Path) -> None:
    folder = mount_folder(root, "oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/nightly/")
    assert folder == mount_folder(root, "oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/nightly")
    assert folder != mount_folder(root, "oss://bucket.oss-cn-hangzhou-internal.aliyuncs.com/Nightly/")
    assert folder.name.startswith("oss-bucket-oss-cn-hangzhou-internal")
