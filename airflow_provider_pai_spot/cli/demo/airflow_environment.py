"""The environment of a local Airflow: everything about it is decided here, nothing by the caller's shell."""

from __future__ import annotations

import base64
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

_CONNECTION = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
_LOCK_PATIENCE_SECONDS = 60
_FOREIGN_PREFIXES = ("AIRFLOW_", "_AIRFLOW", "ALIBABA_CLOUD_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "no_proxy")


def clean_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """
    Return the caller's environment without proxies, other Airflows and Alibaba Cloud credentials.

    The vendor SDK obeys HTTP_PROXY for loopback addresses too and ignores NO_PROXY.
    """
    inherited = os.environ if base is None else base
    kept = {name: value for name, value in inherited.items() if not _is_foreign(name)}
    kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    return kept


def airflow_environment(
    *, home: Path, dags_folder: Path, port: int, connections: Mapping[str, str], parallelism: int
) -> dict[str, str]:
    """
    Return the environment that all components of one local Airflow share.

    :param home: AIRFLOW_HOME; database, logs and passwords live there.
    :param dags_folder: where the DAG files are.
    :param port: of the API server, on 127.0.0.1.
    :param connections: connection id -> connection URI or JSON.
    :param parallelism: how many tasks run at the same time.
    """
    settings = {
        **_storage(home, dags_folder),
        **_api_server(port),
        **_quick_local_loops(parallelism),
    }
    return {
        **clean_environment(),
        "AIRFLOW_HOME": str(home),
        "PYTHONUNBUFFERED": "1",
        **{f"AIRFLOW__{name}": value for name, value in settings.items()},
        **{f"AIRFLOW_CONN_{name.upper()}": value for name, value in connections.items()},
    }


def patient_with_sqlite(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a component that waits for an API server's lock: a scheduler that cannot, ends."""
    connection = environment[_CONNECTION]
    if "?" in connection or not connection.startswith("sqlite:"):
        return dict(environment)
    return {**environment, _CONNECTION: f"{connection}?timeout={_LOCK_PATIENCE_SECONDS}"}


def _is_foreign(name: str) -> bool:
    return name.lower() in _PROXIES or name.startswith(_FOREIGN_PREFIXES)


def _storage(home: Path, dags_folder: Path) -> dict[str, str]:
    return {
        "CORE__DAGS_FOLDER": str(dags_folder),
        "CORE__PLUGINS_FOLDER": str(home / "plugins"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        # SQLite's default of 5 s to wait for a lock stays for the API server: Airflow 3.3 writes its audit log on the
        # event loop, where it can wait for a lock that only the loop can have released; the wait must end.
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "LOGGING__COLORED_CONSOLE_LOG": "False",
        # Each component would compare schemas again, a second or two each, right after `db migrate`.
        "DATABASE__CHECK_MIGRATIONS": "False",
        # A name look-up can take seconds on a laptop.
        "CORE__HOSTNAME_CALLABLE": "socket.gethostname",
    }


def _api_server(port: int) -> dict[str, str]:
    address = f"http://127.0.0.1:{port}"
    return {
        "API__HOST": "127.0.0.1",
        "API__PORT": str(port),
        "API__BASE_URL": address,
        "API__WORKERS": "1",
        "API__SECRET_KEY": secrets.token_hex(32),
        "API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        # One user, on loopback only: no password to hunt for.
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        # A busy laptop answers late; giving up after the default of 5 s would only add work.
        "WORKERS__EXECUTION_API_TIMEOUT": "30.0",
    }


def _quick_local_loops(parallelism: int) -> dict[str, str]:
    return {
        "CORE__PARALLELISM": str(parallelism),
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
        # Only runs that somebody asked for: a nightly DAG must not start by itself here.
        "SCHEDULER__USE_JOB_SCHEDULE": "False",
        # New and changed DAG files show up within seconds, unchanged ones are not parsed over and over.
        "DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
        "CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "0",
    }
