"""DLC's operations as FastAPI routes: parse the request, ask the service, render the answer."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from airflow_provider_pai_spot.emulator.control import EmulatorControl
from airflow_provider_pai_spot.emulator.control_routes import add_control_routes
from airflow_provider_pai_spot.emulator.errors import DlcError, invalid_parameter, unsupported
from airflow_provider_pai_spot.emulator.gate import request_id
from airflow_provider_pai_spot.emulator.listing import flag
from airflow_provider_pai_spot.emulator.operations import NAMES, OPERATIONS, operation_of
from airflow_provider_pai_spot.emulator.service import DlcService

log = logging.getLogger(__name__)


def make_app(service: DlcService, control: EmulatorControl, control_token: str) -> FastAPI:
    """Return the application: DLC's operations, and the control verbs below /_emulator."""
    app = FastAPI(title="DLC emulator", openapi_url=None, docs_url=None, redoc_url=None)
    endpoints = _Endpoints(service)
    for name, method, path in OPERATIONS:
        app.add_route(path, getattr(endpoints, _snake(name)), methods=[method])
    add_control_routes(app, control, control_token)
    app.add_exception_handler(DlcError, _refused)
    app.add_exception_handler(HTTPException, _unknown)
    app.add_exception_handler(Exception, _broken)
    return app


class _Endpoints:
    def __init__(self, service: DlcService) -> None:
        self._service = service

    async def create_job(self, request: Request) -> Response:
        answer = self._service.create_job(await _body(request), _caller(request))
        return await self._in_time("CreateJob", answer["JobId"], answer)

    async def list_jobs(self, request: Request) -> Response:
        return _ok(self._service.list_jobs(request.query_params, _caller(request)))

    async def get_job(self, request: Request) -> Response:
        job_id = request.path_params["job_id"]
        return await self._in_time("GetJob", job_id, self._service.get_job(job_id))

    async def update_job(self, request: Request) -> Response:
        return _ok(self._service.update_job(request.path_params["job_id"], await _body(request)))

    async def delete_job(self, request: Request) -> Response:
        return _ok(self._service.delete_job(request.path_params["job_id"]))

    async def stop_job(self, request: Request) -> Response:
        return _ok(self._service.stop_job(request.path_params["job_id"]))

    async def get_job_events(self, request: Request) -> Response:
        return _ok(self._service.job_events(request.path_params["job_id"], request.query_params))

    async def get_pod_events(self, request: Request) -> Response:
        return _ok(self._service.pod_events(**request.path_params, query=request.query_params))

    async def get_pod_logs(self, request: Request) -> Response:
        return _ok(self._service.pod_logs(**request.path_params, query=request.query_params))

    async def list_ecs_specs(self, request: Request) -> Response:
        return _ok(self._service.list_ecs_specs(request.query_params))

    async def get_quota_workload_diagnosis(self, request: Request) -> Response:
        return _ok(self._service.diagnose_queue(**request.path_params))

    async def tag_resources(self, request: Request) -> Response:
        return _ok(self._service.tag_resources(await _body(request)))

    async def untag_resources(self, request: Request) -> Response:
        query = request.query_params
        every = flag(query, "All", default=False)
        job_ids, keys = _json_list(query.get("ResourceId")), _json_list(query.get("TagKey"))
        return _ok(self._service.untag_resources(job_ids, keys, every))

    async def _in_time(self, operation: str, job_id: str, answer: dict[str, Any]) -> Response:
        await asyncio.sleep(self._service.lateness(operation, job_id))
        return _ok(answer)


def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).removeprefix("_")


def _caller(request: Request) -> str:
    return str(request.scope["emulator.caller"])


async def _body(request: Request) -> Any:
    try:
        return json.loads(await request.body())
    except ValueError:
        raise invalid_parameter("The body is not JSON.") from None


def _json_list(text: str | None) -> list[Any]:
    try:
        value = json.loads(text or "[]")
    except ValueError:
        value = None
    if not isinstance(value, list):
        raise invalid_parameter(f"{text!r} is not a JSON list.")
    return value


def _ok(answer: dict[str, Any]) -> Response:
    return _json(200, {**answer, "RequestId": request_id()})


def _json(status: int, content: dict[str, Any]) -> Response:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode(), status, media_type="application/json")


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, DlcError)  # noqa: S101 - registered for that type
    return _json(error.status, error.body(request_id()))


async def _unknown(request: Request, _: Exception) -> Response:
    operation = request.headers.get("x-acs-action") or operation_of(request.method, request.url.path)
    error = unsupported(operation, NAMES)
    return _json(error.status, error.body(request_id()))


async def _broken(request: Request, error: Exception) -> Response:
    log.error("The emulator failed on %s %s", request.method, request.url.path, exc_info=error)
    answer = DlcError(500, "InternalError", f"The emulator itself failed: {type(error).__name__}: {error}")
    return _json(500, answer.body(request_id()))
