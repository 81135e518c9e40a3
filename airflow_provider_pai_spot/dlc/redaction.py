"""
Masking what looks like a secret in texts that DLC or a user's program wrote: reasons, events, evidence.

A guess by shape, and rather one too many: whoever reads evidence misses a masked word less than a leaked key.
Each pattern is closed under cutting: what it leaves alone it also leaves alone in any beginning of the text,
so that masking and cutting an own result again changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

MASK: Final = "***"
LONGEST_TEXT: Final = 4_000
"""Characters that are looked at; longer texts lose their end before, at a space, so that no secret is cut in two."""

_ELLIPSIS = "…"
# A mask, or what stands before one, that was cut at the limit: masked once more it would grow.
_CUT_OFF = rf"(?!\\{{0,4}}[\"']?\*{{0,3}}{_ELLIPSIS}\Z)"
_NAME = (
    r"(?i:passw(?:or)?d|passphrase|pwd|secret|token|signature|access[_-]?key(?:[_-]?id)?|api[_-]?key|private[_-]?key"
    r"|(?<![a-z])auth)(?:[A-Z0-9_.-][\w.-]{0,40}+)?"
)
_BETWEEN = r"\\{0,4}+[\"']?+[ \t]*+[=:][ \t]*+"
_LETTERS_AND_DIGITS = r"(?=[A-Za-z0-9]*[a-z])(?=[A-Za-z0-9]*[A-Z])(?=[A-Za-z0-9]*[0-9])"
_BASE64 = "[A-Za-z0-9_+/-]"

_PATTERNS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<kept>)-----BEGIN [A-Z ]{0,30}KEY-----(?s:.*)",
        rf"(?P<kept>(?i:\b(?:proxy-)?authorization|\b(?:set-)?cookie){_BETWEEN}){_CUT_OFF}[^\n]+",
        rf"(?P<kept>{_NAME}{_BETWEEN}\\{{0,4}}+\"){_CUT_OFF}[^\"\n]*",
        rf"(?P<kept>{_NAME}{_BETWEEN}'){_CUT_OFF}[^'\n]*",
        rf"(?P<kept>{_NAME}{_BETWEEN}){_CUT_OFF}(?!\\{{0,4}}[\"'])\S+",
        rf"(?P<kept>(?<!\S)--?[\w-]{{0,40}}{_NAME}[ \t]++){_CUT_OFF}(?!-)\S+",  # --password …
        r"(?P<kept>\b(?i:bearer)[ \t]+)(?=\S*[0-9])[A-Za-z0-9._~+/=-]{8,}",
        r"(?P<kept>[A-Za-z][A-Za-z0-9+.-]{0,20}+://)[^\s/]+(?=@)",  # user:password@host
        r"(?P<kept>LTAI|STS\.)[A-Za-z0-9]{8,}",  # how Alibaba Cloud's AccessKey ids begin
        r"(?P<kept>)eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)*",  # a JSON web token
        r"(?P<kept>)(?<![0-9A-Za-z])(?<!sha256:)(?<!sha512:)[0-9a-fA-F]{32,}",  # an image's digest is none
        rf"(?P<kept>)(?<![A-Za-z0-9]){_LETTERS_AND_DIGITS}[A-Za-z0-9]{{30,}}",  # as long as an AccessKey's secret
        rf"(?P<kept>)(?<![\w+/.-])(?!/)(?={_BASE64}*[a-z])(?={_BASE64}*[A-Z])(?={_BASE64}*[0-9]){_BASE64}{{40,}}={{0,2}}",
    )
)


def without_secrets(text: str, limit: int) -> str:
    """
    Return a text without what looks like a secret, and no longer than the limit; its own results come back unchanged.

    :param limit: characters, from 1 to `LONGEST_TEXT`; a longer text ends in an ellipsis.
    """
    masked = _until_stable(_masked, _whole_words(text))
    return masked if len(masked) <= limit else masked[: limit - 1] + _ELLIPSIS


def _masked(text: str) -> str:
    for pattern in _PATTERNS:
        text = pattern.sub(lambda found: found["kept"] + MASK, text)
    return text


def _until_stable(change: Callable[[str], str], text: str) -> str:
    """One mask can bring what stands beside it to light."""
    while (changed := change(text)) != text:
        text = changed
    return text


def _whole_words(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    window = text[:LONGEST_TEXT]
    return window.rsplit(None, 1)[0] if len(window.split(None, 1)) > 1 else window
