"""
Which task instance a job belongs to, written on the job itself as tags and Envs.

The tags are what a lost state store is rebuilt from, and what `pai-spot sweep` decides by.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from airflow_provider_pai_spot.dlc.wire import integer_of

TAG_TASK_INSTANCE = "airflow-ti"
TAG_NAMESPACE = "airflow-namespace"
TAG_ATTEMPT = "airflow-attempt"
TAG_GENERATION = "airflow-generation"
TAG_REQUEST = "airflow-request"
TAG_OWNER = "airflow-owner"
TAG_LEDGER = "airflow-ledger"
"""Names the ledger that submitted: a run id can repeat, in another run or another installation; this does not."""

TAG_ON_DEMAND = "airflow-on-demand"
"""On jobs that do not bid although their task does: what takes their machines is not the spot market."""

ENV_DAG_ID = "AIRFLOW_CTX_DAG_ID"
ENV_RUN_ID = "AIRFLOW_CTX_DAG_RUN_ID"
ENV_TASK_ID = "AIRFLOW_CTX_TASK_ID"
ENV_MAP_INDEX = "AIRFLOW_CTX_MAP_INDEX"

ENV_CHECKPOINT_DIR = "PAI_SPOT_CHECKPOINT_DIR"
ENV_ATTEMPT = "PAI_SPOT_ATTEMPT"
ENV_RESUME = "PAI_SPOT_RESUME"

_KEY_LENGTH = 32
_LOCAL_NAMES = ("", "localhost", "host.docker.internal")


class Owner(StrEnum):
    """Whose end also ends the job: the task instance's, or (two-task form) the DAG run's."""

    TASK = "task"
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskIdentity:
    """
    One task instance of one Airflow installation.

    :param namespace: tells this installation from another one that uses the same DLC account.
    """

    namespace: str
    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    @property
    def key(self) -> str:
        """32 hex characters that stand for all five parts; the value of the `airflow-ti` tag."""
        parts = [self.namespace, self.dag_id, self.run_id, self.task_id, self.map_index]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_KEY_LENGTH]

    @property
    def tags(self) -> dict[str, str]:
        """The tags that all jobs of this task instance share."""
        return {TAG_TASK_INSTANCE: self.key, TAG_NAMESPACE: hash_namespace(self.namespace)}

    @property
    def envs(self) -> dict[str, str]:
        """The identity in clear, under the names Airflow itself gives to a task's environment."""
        return {
            ENV_DAG_ID: self.dag_id,
            ENV_RUN_ID: self.run_id,
            ENV_TASK_ID: self.task_id,
            ENV_MAP_INDEX: str(self.map_index),
        }

    @property
    def checkpoint_subfolder(self) -> str:
        """Where under `checkpoint_uri` this task instance keeps its checkpoints; the same for every attempt."""
        return f"{_path_part(self.dag_id)}/{_path_part(self.task_id)}/{self.key[:12]}"


def hash_namespace(namespace: str) -> str:
    """Return the namespace as a tag value: DLC restricts what a tag may hold, a host name and port may not fit."""
    return hashlib.sha256(namespace.encode()).hexdigest()[:16]


def attempt_tags(
    *, attempt: int, generation: int, request_hash: str, owner: Owner, ledger: str, on_demand: bool = False
) -> dict[str, str]:
    """Return the tags that tell one attempt from another."""
    return {
        TAG_ATTEMPT: str(attempt),
        TAG_GENERATION: str(generation),
        TAG_REQUEST: request_hash,
        TAG_OWNER: owner.value,
        TAG_LEDGER: ledger,
        **({TAG_ON_DEMAND: "1"} if on_demand else {}),
    }


def bids_for_spot(tags: Mapping[str, str]) -> bool:
    """Whether a job of ours bids, by its tags."""
    return TAG_ON_DEMAND not in tags


def resolve_namespace(configured: str, of_connection: str, api_base_url: str) -> str:
    """
    Return the namespace: `[pai_spot] namespace`, else the connection's, else the host of `[api] base_url`.

    :param api_base_url: a URL such as `https://airflow.example.com/prod`; host, port and path all count.
    """
    if configured or of_connection:
        return configured or of_connection
    url = urlsplit(api_base_url)
    return f"{url.netloc}{url.path.rstrip('/')}" or "localhost"


def is_local_namespace(namespace: str) -> bool:
    """Whether the namespace is a name that many installations call themselves, such as `localhost:8080`."""
    host = (urlsplit(f"//{namespace}").hostname or "").lower()
    if host in _LOCAL_NAMES or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def tag_number(tags: Mapping[str, str], name: str, default: int) -> int:
    """Read a numeric tag; `default` if it is missing or somebody wrote something else into it."""
    number = integer_of(tags.get(name))
    return default if number is None else number


def _path_part(name: str) -> str:
    return "".join(char if char.isalnum() or char in "._-" else "_" for char in name)
