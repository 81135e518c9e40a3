"""Who may call: access keys made at start, and the user each belongs to."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Identity:
    """
    A RAM identity with one access key.

    :param access_key_id: DLC's AccessKey id.
    :param access_key_secret: its secret; not in the repr.
    :param user_id: DLC's UserId.
    """

    access_key_id: str
    access_key_secret: str = field(repr=False)
    user_id: str = ""


class Identities:
    """Every identity, by access key id."""

    def __init__(self) -> None:
        self._by_key: dict[str, Identity] = {}

    def add(self, access_key_id: str | None = None, access_key_secret: str | None = None) -> Identity:
        """Add an identity; whatever is not given is generated."""
        key = access_key_id or "LTAI" + secrets.token_hex(10)
        user_id = str(200_000_000_000_000_001 + len(self._by_key))
        identity = Identity(key, access_key_secret or secrets.token_hex(15), user_id)
        self._by_key[key] = identity
        return identity

    def secret_of(self, access_key_id: str) -> str | None:
        """Return the secret of an access key, None if there is no such key."""
        identity = self._by_key.get(access_key_id)
        return identity.access_key_secret if identity else None

    def user_id(self, access_key_id: str) -> str:
        """Return the user of an access key; a key nobody made is a user of its own."""
        identity = self._by_key.get(access_key_id)
        return identity.user_id if identity else access_key_id
