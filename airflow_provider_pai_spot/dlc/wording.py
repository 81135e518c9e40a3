"""The words of DLC and of Kubernetes that tell why a job ended; never looked for where a user's program writes."""

from __future__ import annotations

import re
from typing import Final

_TAKEN_BACK: Final = re.compile(
    r"(?<![\w/.-])(?:preempted|evicted|reclaimed)(?![\w/-])"
    r"|(?<!\S)spot(?=[\s.,;:]).{0,60}\s(?:preemption|released)\b"
    r"|\b(?:preemption|released)\s.{0,60}(?<!\S)spot(?=[\s.,;:]|$)",
    re.IGNORECASE,
)
"""
Words for a resource taken back, none of them part of a name such as `team/spot-train:release-1.2`. Not `preemptible`,
which is what spot capacity is called while it lasts, nor `preemption` by itself, of which Kubernetes' scheduler writes
when it finds no room ("no preemption victims").
"""

_NOT_TAKEN_BACK: Final = re.compile(
    r"\b(?:not|no|none|never|cannot|without|nothing|\w{1,9}n['\u2019]t)(?:\s+(?!(?:and|as|because|before|but|since|so|then|when|while)\b)[\w-]{1,40}){0,4}?"
    r"\s+(?:preempted|evicted|reclaimed|released|preemption)\b",
    re.IGNORECASE,
)
"""The same words denied in their own clause: "cannot be evicted", "pod can't be preempted", "no pod was reclaimed"."""

NODE_PRESSURE: Final = re.compile(
    r"low on resource|(Disk|Memory|PID)Pressure|ephemeral[- ](local )?storage|EmptyDir volume", re.IGNORECASE
)
"""
The kubelet evicts pods also for what they use themselves: that is no loss of capacity. It does not say "evicted":
"The node was low on resource: …", "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi.",
"Container x exceeded its local ephemeral storage limit …", "Usage of EmptyDir volume "x" exceeds the limit "1Gi"."
"""

IMAGE_PULL: Final = re.compile(
    r"\b(ErrImagePull|ImagePullBackOff|InvalidImageName|manifest unknown"
    r"|(?:pull|image)\b.{0,120}\bunauthorized)\b",
    re.IGNORECASE,
)

MOUNT: Final = re.compile(r"\b(FailedMount|FailedAttachVolume|MountVolume|[Uu]nable to (?:attach or )?mount)\b")

OUT_OF_MEMORY: Final = re.compile(r"\bOOM[- ]?Killed\b", re.IGNORECASE)


def taken_back(text: str) -> re.Match[str] | None:
    """Return where a text says that a resource was taken back, None if it does not, or denies it."""
    denied = [found.span() for found in _NOT_TAKEN_BACK.finditer(text)]
    found = _TAKEN_BACK.finditer(text)
    return next((one for one in found if not any(start < one.end() <= end for start, end in denied)), None)
