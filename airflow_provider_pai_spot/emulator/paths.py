"""
Where a job's files are on this machine: everything below one root folder.

Ids and URIs come from whoever talks to the emulator, so they never become path components as they are.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

Mount = tuple[str, str, str]  # mount path, Uri, access (RO | RW)

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_SHELL_SAFE_PATH = re.compile(r"[\w/.+@%,:=-]+")
# A match must be a whole path: not the middle of a longer one (`$HOME/mnt/data`, `oss://b/mnt/data`) ...
_NOT_WITHIN_A_PATH = r"(?:(?<![\w./~*})-])|(?<=file://))"
# ... and not the beginning of another name (`/mnt/data2`, `/mnt/data.bak`); a full stop may end a sentence.
_NAME_ENDS = r"(?![\w@%+~-]|\.\w)"


class PathEscapeError(ValueError):
    """A folder would lie outside the emulator's root: somebody planted a symbolic link."""


def checked_root(root: Path) -> Path:
    """
    Create and return the root folder, resolved.

    :raises ValueError: if its name needs quoting; mount paths are replaced inside commands, where nobody can
        tell whether a quoted or an unquoted word is being written.
    """
    resolved = root.resolve()
    if not _SHELL_SAFE_PATH.fullmatch(str(resolved)):
        raise ValueError(
            f"The emulator's folder is {str(resolved)!r}: "
            "choose one without spaces and characters that a shell interprets."
        )
    resolved.mkdir(mode=0o700, parents=True, exist_ok=True)
    return resolved


def safe_name(text: str) -> str:
    """Return `text` if it is a plain name, else a readable rest of it with a hash of the whole."""
    return text if _PLAIN_NAME.fullmatch(text) else _slug_with_hash(text)


def new_pod_folder(root: Path, job_id: str, pod_id: str) -> Path:
    """Create root/jobs/<job>/<pod>; a pod that starts again under the same name gets <pod>.2 and so on."""
    job_folder = _made_below(root, "jobs", safe_name(job_id))
    pod_name = safe_name(pod_id)
    for number in itertools.count(1):
        folder = job_folder / (pod_name if number == 1 else f"{pod_name}.{number}")
        try:
            folder.mkdir(mode=0o700)  # never takes over what is there, be it a folder or a link
        except FileExistsError:
            continue
        return folder
    raise AssertionError("unreachable: the counter has no end")


def mount_folder(root: Path, uri: str) -> Path:
    """Create and return the folder that stands for `uri`: one for all jobs, so that checkpoints survive."""
    return _made_below(root, "mounts", _slug_with_hash(uri.rstrip("/")))


class MountMap:
    """
    Mount paths of one job and the folders that stand for them.

    Replaces text only: a mount path that a program holds in its own source is not mapped, nor is a path that
    no mount names. RO is not enforced: another job may have the same Uri mounted RW, and file modes mean
    nothing to root.
    """

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = {path.rstrip("/"): str(folder) for path, folder in folders.items() if path.rstrip("/")}
        longest_first = sorted(self._folders, key=len, reverse=True)
        names = "|".join(map(re.escape, longest_first))
        self._pattern = re.compile(f"{_NOT_WITHIN_A_PATH}(?:{names}){_NAME_ENDS}") if names else None

    @classmethod
    def create(cls, root: Path, mounts: Iterable[Mount]) -> MountMap:
        """Create the folders below `root` and return their map; `/` and relative mount paths are ignored."""
        return cls({path: mount_folder(root, uri) for path, uri, _access in mounts if path.startswith("/")})

    def rewrite(self, text: str) -> str:
        """Return `text` with each mount path replaced, in one pass: what was put in is not looked at."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._folders[match[0]], text)


def _slug_with_hash(text: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:48].strip("-")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{slug}-{digest}" if slug else digest


def _made_below(root: Path, *names: str) -> Path:
    """Create the folder and return it; the second look sees a link that was there before we came."""
    folder = root.joinpath(*names)
    if not folder.resolve().is_relative_to(root):
        raise PathEscapeError(f"{folder} leads out of {root}: remove the symbolic link on the way.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
