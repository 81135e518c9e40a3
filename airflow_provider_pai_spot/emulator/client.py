"""The control verbs for another process than the emulator's, over HTTP."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_provider_pai_spot.emulator.plans import JobPlan


class EmulatorControlError(RuntimeError):
    """The emulator refused a control verb; says why."""


class EmulatorClient:
    """
    The control panel of an emulator that runs in another process; the verbs of `EmulatorControl`.

    Never goes through a proxy. Every verb raises EmulatorControlError if the emulator refuses it.

    :param base_url: `http://127.0.0.1:PORT`, or https.
    :param token: the emulator's control token.
    :param ca_file: its certificate, for https.
    """

    def __init__(self, base_url: str, token: str, ca_file: str | None = None) -> None:
        self._base_url = base_url.rstrip("/")
        self._token = token
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if ca_file is not None:
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file)))
        self._opener = urllib.request.build_opener(*handlers)

    def plan(
        self,
        plan: JobPlan | Mapping[str, Any],
        match: Mapping[str, Any] | None = None,
        times: int | None = 1,
    ) -> None:
        """Let the next job that matches follow a plan."""
        data = plan.to_dict() if isinstance(plan, JobPlan) else dict(plan)
        self._call("plan", plan=data, match=None if match is None else dict(match), times=times)

    def clear_plans(self) -> None:
        """Forget every plan but the default."""
        self._call("clear_plans")

    def revoke(self, job_id: str, nodes: int | Sequence[str] | None = None, cause: str = "taken back by hand") -> None:
        """Take machines back from a job."""
        self._call("revoke", job_id=job_id, nodes=nodes, cause=cause)

    def set_status(
        self,
        job_id: str,
        status: str,
        reason_code: str | None = None,
        reason_message: str | None = None,
    ) -> None:
        """Put a job into any status."""
        self._call("set_status", job_id=job_id, status=status, reason_code=reason_code, reason_message=reason_message)

    def set_price(self, instance_type: str, discount: float) -> float:
        """Let a type cost `discount` of its list price from now on."""
        return float(self._call("set_price", instance_type=instance_type, discount=discount))

    def set_stock(self, instance_type: str, machines: int | None) -> None:
        """Let that many spot machines of a type exist."""
        self._call("set_stock", instance_type=instance_type, machines=machines)

    def replay_prices(self, instance_type: str, path: Iterable[tuple[float, float]]) -> None:
        """Let prices follow a recorded path."""
        self._call("replay_prices", instance_type=instance_type, path=[list(point) for point in path])

    def replay_stock(self, instance_type: str, counts: Iterable[int], gap_seconds: float) -> None:
        """Let the stock follow a recorded trace."""
        self._call("replay_stock", instance_type=instance_type, counts=list(counts), gap_seconds=gap_seconds)

    def fault(self, operation: str, kind: str, **details: Any) -> None:
        """Let something go wrong; details as in `EmulatorControl.fault`."""
        self._call("fault", operation=operation, kind=kind, **details)

    def clear_faults(self) -> None:
        """Let nothing go wrong any more."""
        self._call("clear_faults")

    def switch(self, behaviour: str, value: Any) -> None:
        """Let a behaviour that is not documented have another value from now on."""
        self._call("switch", behaviour=behaviour, value=value)

    def advance(self, seconds: float) -> float:
        """Let `seconds` pass at once and return the time."""
        return float(self._call("advance", seconds=seconds))

    def now(self) -> float:
        """Return the emulated time in seconds since the epoch."""
        return float(self._call("now"))

    def add_identity(self, access_key_id: str | None = None, access_key_secret: str | None = None) -> dict[str, str]:
        """Add another RAM identity."""
        keys = {"access_key_id": access_key_id, "access_key_secret": access_key_secret}
        return dict(self._call("add_identity", **keys))

    def job(self, job_id: str) -> dict[str, Any]:
        """Return a job as GetJob shows it."""
        return dict(self._call("job", job_id=job_id))

    def jobs(self) -> list[dict[str, Any]]:
        """Return all jobs as GetJob shows them, oldest first."""
        return list(self._call("jobs"))

    def journal(self, kind: str | None = None, job_id: str | None = None) -> list[dict[str, Any]]:
        """Return what happened, oldest first."""
        return list(self._call("journal", kind=kind, job_id=job_id))

    def requests(self) -> dict[str, int]:
        """Return how often each operation was called."""
        return dict(self._call("requests"))

    def wait_for(self, job_id: str, status: str | Iterable[str], timeout: float = 10.0) -> str:
        """Wait until a job has, or had, one of these statuses and return its status."""
        wanted = status if isinstance(status, str) else list(status)
        return str(self._call("wait_for", job_id=job_id, status=wanted, timeout=timeout))

    def _call(self, verb: str, **arguments: Any) -> Any:
        request = urllib.request.Request(  # noqa: S310 - the caller's own emulator
            f"{self._base_url}/_emulator/{verb}",
            data=json.dumps(arguments).encode(),
            headers={"X-Emulator-Token": self._token, "Content-Type": "application/json"},
            method="POST",
        )
        try:
            with self._opener.open(request) as answer:
                return json.load(answer)["result"]
        except urllib.error.HTTPError as error:
            with error:
                reason = error.read().decode(errors="replace")
            raise EmulatorControlError(f"{verb} was refused ({error.code}): {reason}") from None
