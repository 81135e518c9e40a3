"""
The vendor SDK, imported on first use and made quiet.

It costs about 0.7 s and 560 modules, so nothing imports it at module level. Importing it adds handlers to
three loggers, and with `DEBUG=sdk` in the environment it writes whole requests to them, signature and
security token included; both are undone here, in one place, before the first request.
"""

from __future__ import annotations

import logging
import sys
import threading
from types import SimpleNamespace
from typing import Any

_NOISY_LOGGERS = ("darabonba-core", "alibabacloud-tea", "credentials")
_lock = threading.Lock()


def load() -> Any:
    """Return the names of the SDK that this room uses, as one namespace."""
    with _lock:
        from alibabacloud_credentials import client as credentials_client
        from alibabacloud_credentials import provider as providers
        from alibabacloud_pai_dlc20201203.client import Client
        from alibabacloud_tea_openapi import utils_models
        from alibabacloud_tea_openapi.utils import Utils
        from darabonba.runtime import RuntimeOptions
        from darabonba.url import Url

        _hush()
    return SimpleNamespace(
        Client=Client,
        Config=utils_models.Config,
        Params=utils_models.Params,
        OpenApiRequest=utils_models.OpenApiRequest,
        RuntimeOptions=RuntimeOptions,
        CredentialClient=credentials_client.Client,
        providers=providers,
        to_query=Utils.query,
        percent_encode=Url.percent_encode,
    )


def start_over_in_child() -> None:
    """Share neither sockets nor a held lock with the parent, after a fork."""
    global _lock  # noqa: PLW0603 - one lock per process
    _lock = threading.Lock()
    core = sys.modules.get("darabonba.core")
    if core is not None:
        core.DaraCore._sessions.clear()  # noqa: SLF001 - the SDK has no public way


def _hush() -> None:
    for name in _NOISY_LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(logging.WARNING)  # DEBUG=sdk logs at DEBUG
        for handler in list(logger.handlers):
            if type(handler) is logging.StreamHandler and handler.formatter is None:
                logger.removeHandler(handler)
