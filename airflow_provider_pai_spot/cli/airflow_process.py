"""This process as a part of Airflow: it may read the metadata database, and stdout belongs to the command."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, redirect_stdout
from typing import Any

_CONTEXT = "_AIRFLOW_PROCESS_CONTEXT"
_OURS = "airflow_provider_pai_spot"


@contextmanager
def airflow_process(*, debug: bool) -> Iterator[None]:
    """
    Look connections and variables up wherever Airflow keeps them, and let nothing but the command write to stdout.

    Connections come from AIRFLOW_CONN_* variables, configured secrets backends and the metadata database, in
    the order Airflow has; outside of its own components Airflow leaves the database out unless told.

    :param debug: whether to show Airflow's log lines; otherwise only this provider's warnings.
    """
    import airflow.sdk  # noqa: F401 - sets logging up, which would undo what is done below

    former = os.environ.get(_CONTEXT)
    os.environ[_CONTEXT] = "server"
    try:
        with redirect_stdout(sys.stderr), _logs_on_stderr(debug=debug):
            yield
    finally:
        if former is None:
            del os.environ[_CONTEXT]
        else:
            os.environ[_CONTEXT] = former


@contextmanager
def _logs_on_stderr(*, debug: bool) -> Iterator[None]:
    """Send what is logged to stderr, whether through the standard library or through structlog."""
    import structlog

    console = [one for one in logging.getLogger().handlers if type(one) is logging.StreamHandler]
    former_streams = [(handler, handler.stream) for handler in console]
    former_settings = structlog.get_config()
    for handler in console:
        handler.stream = sys.stderr
        if not debug:
            handler.addFilter(_of_standard_library)
    if not debug:
        structlog.configure(processors=[_of_structlog, *former_settings["processors"]])
    try:
        yield
    finally:
        structlog.configure(**former_settings)
        for handler, stream in former_streams:
            handler.stream = stream
            handler.removeFilter(_of_standard_library)


def _concerns_people(logger_name: str, level: int) -> bool:
    """Airflow reports what it tried next (a database that is not there); only the command's own result counts."""
    return level >= (logging.WARNING if _OURS in logger_name else logging.CRITICAL)


def _of_standard_library(record: logging.LogRecord) -> bool:
    return _concerns_people(record.name, record.levelno)


def _of_structlog(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    from structlog import DropEvent

    level = logging.getLevelNamesMapping().get("ERROR" if method == "exception" else method.upper(), logging.INFO)
    if _concerns_people(str(getattr(logger, "name", "")), level):
        return event
    raise DropEvent


@contextmanager
def progress_on_stderr() -> Iterator[logging.Logger]:
    """Yield a logger whose lines reach the person at the terminal as they are, on stderr."""
    logger = logging.Logger(f"{_OURS}.cli", logging.INFO)  # noqa: LOG001 - outside of the tree Airflow has set up
    logger.addHandler(logging.StreamHandler(sys.stderr))
    yield logger
