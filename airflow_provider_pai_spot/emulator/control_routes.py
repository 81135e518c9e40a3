"""The control verbs over HTTP: `POST /_emulator/<verb>` with a JSON object of arguments and the control token."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

from airflow_provider_pai_spot.emulator.control import VERBS, EmulatorControl
from airflow_provider_pai_spot.emulator.errors import DlcError

TOKEN_HEADER = "X-Emulator-Token"  # noqa: S105 - the name of a header
PREFIX = "/_emulator"
Endpoint = Callable[[Request], Awaitable[Response]]


def add_control_routes(app: FastAPI, control: EmulatorControl, token: str) -> None:
    """Add a route for each verb; every one needs the token."""
    for verb in VERBS:
        app.add_route(f"{PREFIX}/{verb}", _endpoint(getattr(control, verb), token), methods=["POST"])


def _endpoint(verb: Callable[..., Any], token: str) -> Endpoint:
    async def answer(request: Request) -> Response:
        given = request.headers.get(TOKEN_HEADER, "")
        if not hmac.compare_digest(given.encode(), token.encode()):
            return _reply(403, error=f"{TOKEN_HEADER} is missing or wrong.")
        try:
            arguments = json.loads(await request.body() or b"{}")
            return _reply(200, result=await run_in_threadpool(verb, **arguments))
        except DlcError as error:
            return _reply(error.status, error=error.message)
        except (ValueError, TypeError, RuntimeError, TimeoutError) as error:
            return _reply(400, error=f"{type(error).__name__}: {error}")

    return answer


def _reply(status: int, **content: Any) -> Response:
    return Response(json.dumps(content), status, media_type="application/json")
