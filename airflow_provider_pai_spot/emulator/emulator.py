"""`DlcEmulator`: one service, put together and started."""

from __future__ import annotations

import random
import secrets
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

from airflow_provider_pai_spot.emulator.behaviours import Behaviours
from airflow_provider_pai_spot.emulator.clock import EmulatorClock, make_clock
from airflow_provider_pai_spot.emulator.commands import CommandRunner
from airflow_provider_pai_spot.emulator.control import EmulatorControl
from airflow_provider_pai_spot.emulator.faults import FaultBook
from airflow_provider_pai_spot.emulator.gate import ASGIApp, Gate
from airflow_provider_pai_spot.emulator.guard import LoopbackGuard, loopback_hosts
from airflow_provider_pai_spot.emulator.identities import Identities
from airflow_provider_pai_spot.emulator.journal import Journal
from airflow_provider_pai_spot.emulator.lifecycle import Phases
from airflow_provider_pai_spot.emulator.market import Market, MarketModel
from airflow_provider_pai_spot.emulator.plans import JobPlan, PlanBook
from airflow_provider_pai_spot.emulator.pods import PodMaker
from airflow_provider_pai_spot.emulator.routes import make_app
from airflow_provider_pai_spot.emulator.server import ServerThread
from airflow_provider_pai_spot.emulator.service import DlcService
from airflow_provider_pai_spot.emulator.simulation import Simulation
from airflow_provider_pai_spot.emulator.timeline import Timeline
from airflow_provider_pai_spot.emulator.tls import self_signed

REGION = "cn-hangzhou"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class DlcEmulator:
    """
    A DLC service on this machine, running inside a `with` block or between `start` and `stop`.

    :param host: address to listen on; anything but loopback is refused with `execute`.
    :param port: port to listen on; 0: a free one.
    :param tls: serve https with a certificate made now (see `ca_file`) instead of http.
    :param execute: really run commands as local processes; signatures are then always verified.
    :param root: folder for certificates, mounts and working folders; None: a temporary one, gone at the end.
    :param seed: of every random choice: job ids, prices, jitter, probabilities.
    :param clock: `real`, `manual` (time passes by `control.advance` only) or a clock such as `ScaledClock(60)`.
    :param default_plan: what a job does that no `control.plan` matches.
    :param phases: how long Creating, Queuing and the other phases take.
    :param market: how prices behave when nobody scripts them.
    :param behaviours: switches for what is not documented (see `behaviours`).
    :param verify_signatures: None: only with `execute`. Without, any key is taken for the identity it names.
    :param access_key_id: of the first identity; generated if None.
    :param access_key_secret: of the first identity; generated if None.
    Raises ValueError for settings that exclude each other.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: bool = False,
        execute: bool = False,
        root: Path | None = None,
        seed: int = 0,
        clock: str | EmulatorClock = "real",
        default_plan: JobPlan | None = None,
        phases: Phases | None = None,
        market: MarketModel | None = None,
        behaviours: Mapping[str, Any] | None = None,
        verify_signatures: bool | None = None,
        access_key_id: str | None = None,
        access_key_secret: str | None = None,
    ) -> None:
        if execute and verify_signatures is False:
            raise ValueError("verify_signatures=False and execute=True: whoever sends a command must prove who it is.")
        if execute and host not in LOOPBACK:
            raise ValueError(f"host is {host!r} and execute=True: commands are taken from this machine only.")
        self.host = host
        self.tls = tls
        self.execute = execute
        self.control_token = secrets.token_urlsafe(24)
        self._verify = execute if verify_signatures is None else verify_signatures
        self._wanted_port = port
        self._root = root
        self._seed = seed
        self._behaviours = Behaviours(behaviours)
        self._identities = Identities()
        first = self._identities.add(access_key_id, access_key_secret)
        self.access_key_id = first.access_key_id
        self.access_key_secret = first.access_key_secret
        self._clock = make_clock(clock)
        self._default_plan = default_plan or JobPlan()
        self._phases = phases or Phases()
        self._model = market or MarketModel()
        self._stack = ExitStack()
        self._server: ServerThread | None = None
        self._control: EmulatorControl | None = None
        self._ca_file: Path | None = None

    # --- running --------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start serving. Raises OSError if the port is taken, RuntimeError if it runs already."""
        if self._server is not None:
            raise RuntimeError(f"The emulator runs already, on {self.endpoint}.")
        with ExitStack() as stack:
            runner = self._make_runner(stack)
            service = self._make_service(runner)
            stack.callback(service.simulation.timeline.close)
            if runner is not None:
                stack.callback(runner.close)
            server = ServerThread(self.host, self._wanted_port, self._certificate(stack))
            stack.callback(server.stop)
            control = EmulatorControl(service)
            server.start(self._make_app(service, control, server))
            service.simulation.timeline.start()
            self._server, self._control = server, control
            self._stack = stack.pop_all()
        return self

    def stop(self) -> None:
        """End everything: the socket, the threads, and every process that was started."""
        self._stack.close()
        self._server = self._control = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # --- how to reach it ------------------------------------------------------------------------------

    @property
    def control(self) -> EmulatorControl:
        """The control panel, while it runs."""
        if self._control is None:
            raise RuntimeError("The emulator does not run: use it in a `with` block, or call start().")
        return self._control

    @property
    def port(self) -> int:
        """The port it listens on, while it runs."""
        if self._server is None:
            raise RuntimeError("The emulator does not run: use it in a `with` block, or call start().")
        return self._server.port

    @property
    def endpoint(self) -> str:
        """`host:port`, as the SDK's Config and a connection's host take it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def protocol(self) -> str:
        """`http` or `https`."""
        return "https" if self.tls else "http"

    @property
    def base_url(self) -> str:
        """The address with its protocol, for `EmulatorClient`."""
        return f"{self.protocol}://{self.endpoint}"

    @property
    def ca_file(self) -> Path | None:
        """The certificate that clients must trust with https (`Config.ca`, or SSL_CERT_FILE)."""
        return self._ca_file

    def connection_uri(self, **extras: str) -> str:
        """
        Return an Airflow connection as a URI, for AIRFLOW_CONN_PAI_DLC_DEFAULT.

        :param extras: further fields of the connection's extra, or other values for region_id, workspace_id,
            protocol and studio_endpoint.
        """
        own = {"region_id": REGION, "workspace_id": "1", "protocol": self.protocol, "studio_endpoint": self.endpoint}
        fields = own | extras
        login, password = quote(self.access_key_id, safe=""), quote(self.access_key_secret, safe="")
        return f"pai-dlc://{login}:{password}@{self.endpoint}/?{urlencode(fields)}"

    # --- putting it together --------------------------------------------------------------------------

    def _folder(self, stack: ExitStack) -> Path:
        if self._root is None:
            name = stack.enter_context(tempfile.TemporaryDirectory(prefix="dlc-emulator-", ignore_cleanup_errors=True))
            return Path(name)
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._root

    def _certificate(self, stack: ExitStack) -> tuple[Path, Path] | None:
        if not self.tls:
            return None
        certificate, key = self_signed(self._folder(stack) / "tls")
        self._ca_file = certificate
        return certificate, key

    def _make_runner(self, stack: ExitStack) -> CommandRunner | None:
        if not self.execute:
            return None
        from airflow_provider_pai_spot.emulator.execution import LocalExecutor

        return CommandRunner(LocalExecutor(self._folder(stack)), self._behaviours)

    def _make_service(self, runner: CommandRunner | None) -> DlcService:
        rng = random.Random(self._seed)  # noqa: S311 - a simulation, not secrets
        timeline = Timeline(self._clock)
        average = float(self._behaviours["lingjun_average_seconds"])
        simulation = Simulation(
            timeline=timeline,
            market=Market(self._model, timeline.now, average),
            phases=self._phases,
            behaviours=self._behaviours,
            journal=Journal(),
            rng=rng,
            pod_maker=PodMaker(rng, self._behaviours, REGION),
            runner=runner,
        )
        ids = random.Random(self._seed)  # noqa: S311 - a simulation, not secrets
        return DlcService(simulation, PlanBook(self._default_plan), FaultBook(self._seed), self._identities, ids)

    def _make_app(self, service: DlcService, control: EmulatorControl, server: ServerThread) -> ASGIApp:
        app: Any = make_app(service, control, self.control_token)
        gate = Gate(app, service, verify_signatures=self._verify, hang_up=server.connections.cut)
        if not self.execute:
            return gate
        hosts = loopback_hosts([server.port])
        return LoopbackGuard(gate, lambda: hosts)
