from __future__ import annotations

import asyncio
import hashlib
import http.server
import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_pai_spot.emulator.signature import (
    ALGORITHM,
    DATE_TOLERANCE,
    NonceStore,
    SignatureError,
    verify_v3,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY, SECRET = "LTAI-test", "planted-secret"
AWKWARD = "v +&=/l?#%~*'()!$,;:@[]{}|\\^`\"<>é中\U0001f600\t."


@dataclass(frozen=True)
class Recorded:
    """A request as it came over the wire."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    def verify(
        self,
        secrets: dict[str, str] | None = None,
        now: datetime | None = None,
        nonces: NonceStore | None = None,
    ) -> str:
        return verify_v3(
            self.method,
            self.path,
            self.query,
            self.headers,
            self.body,
            (secrets or {KEY: SECRET}).get,
            now or datetime.now(UTC),
            nonces or NonceStore(),
        )

    def with_headers(self, **changes: str | None) -> Recorded:
        changed = {name.replace("_", "-"): value for name, value in changes.items()}
        kept = {name: value for name, value in self.headers.items() if name not in changed}
        return replace(self, headers=kept | {name: value for name, value in changed.items() if value is not None})


class Recorder(http.server.ThreadingHTTPServer):
    """Accepts everything and remembers it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Recorded] = []


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder

    def handle_any(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(Recorded(self.command, path, query, headers, body))
        answer = b'{"RequestId": "r"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815 - http.server's names

    def log_message(self, *_arguments: object) -> None:
        """Stay silent."""


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    with Recorder() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):  # the SDK obeys them even for this machine
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def make_client(recorder: Recorder) -> Callable[..., Any]:
    from alibabacloud_pai_dlc20201203.client import Client
    from alibabacloud_tea_openapi.utils_models import Config

    def make_client(**how: str) -> Any:
        settings = {"access_key_id": KEY, "access_key_secret": SECRET} | how
        return Client(Config(endpoint=f"127.0.0.1:{recorder.server_address[1]}", protocol="http", **settings))

    return make_client


def _calls() -> dict[str, tuple[str, Callable[[Any], tuple[Any, ...]]]]:
    tags = {"airflow-ti": "abc", "k ey" + AWKWARD: AWKWARD}
    roles = [{"Type": "Worker", "PodCount": 1, "SpotSpec": {"SpotDiscountLimit": 0.4}}]
    return {
        "get": ("get_job", lambda m: ("dlc1", m.GetJobRequest(need_detail=True))),
        "get without a query": ("get_job", lambda m: ("dlc1", m.GetJobRequest())),
        "get with an odd id": ("get_job", lambda m: ("a b*c~d+e/f%2F?é中", m.GetJobRequest())),
        "list": ("list_jobs", lambda m: (m.ListJobsRequest(tags=tags, job_ids="dlc1,dlc2", page_size=100),)),
        "list with text": (
            "list_jobs",
            lambda m: (m.ListJobsRequest(display_name=AWKWARD, show_own=False, status=""),),
        ),
        "create": (
            "create_job",
            lambda m: (
                m.CreateJobRequest().from_map(
                    {
                        "DisplayName": AWKWARD,
                        "UserCommand": f"echo {AWKWARD}\n",
                        "JobSpecs": roles,
                        "Envs": tags,
                    }
                ),
            ),
        ),
        "update": ("update_job", lambda m: ("dlc1", m.UpdateJobRequest(description=AWKWARD))),
        "stop": ("stop_job", lambda _: ("dlc1",)),
        "delete": ("delete_job", lambda _: ("dlc1",)),
        "untag with lists": (
            "untag_resources",
            lambda m: (m.UntagResourcesRequest(resource_id=["a", AWKWARD], tag_key=["k", "l m"]),),
        ),
        "logs": ("get_pod_logs", lambda m: ("dlc1", "dlc1-worker-0", m.GetPodLogsRequest(max_lines=5))),
    }


CALLS = _calls()


async def _record(recorder: Recorder, client: Any, call: str, *, asynchronous: bool) -> Recorded:
    from alibabacloud_pai_dlc20201203 import models

    method, arguments = CALLS[call]
    seen_before = len(recorder.requests)
    if asynchronous:
        await getattr(client, f"{method}_async")(*arguments(models))
    else:
        getattr(client, method)(*arguments(models))
    assert len(recorder.requests) == seen_before + 1
    return recorder.requests[-1]


@pytest.mark.parametrize("how", [{}, {"security_token": "sts+token/=="}], ids=["key pair", "STS token"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("call", CALLS)
async def test_what_the_vendors_client_sends_is_accepted(
    recorder: Recorder, make_client: Callable[..., Any], call: str, asynchronous: bool, how: dict[str, str]
) -> None:
    recorded = await _record(recorder, make_client(**how), call, asynchronous=asynchronous)
    assert recorded.verify() == KEY


@pytest.fixture(scope="module")
def good(recorder: Recorder, make_client: Callable[..., Any]) -> Recorded:
    return asyncio.run(_record(recorder, make_client(), "create", asynchronous=False))


@pytest.fixture(scope="module")
def good_list(recorder: Recorder, make_client: Callable[..., Any]) -> Recorded:
    return asyncio.run(_record(recorder, make_client(security_token="sts"), "list", asynchronous=False))


def refused(request: Recorded, **how: Any) -> tuple[str, int]:
    with pytest.raises(SignatureError) as caught:
        request.verify(**how)
    assert SECRET not in f"{caught.value} {caught.value.message}"
    return caught.value.code, caught.value.status


NO_MATCH = ("SignatureDoesNotMatch", 403)
INCOMPLETE = ("IncompleteSignature", 400)
OTHER_BODY = b'{"UserCommand": "rm -rf /"}'


@pytest.mark.parametrize(
    ("tamper", "answer"),
    [
        pytest.param(lambda r: replace(r, body=OTHER_BODY), NO_MATCH, id="body"),
        pytest.param(
            lambda r: replace(r, body=OTHER_BODY).with_headers(
                x_acs_content_sha256=hashlib.sha256(OTHER_BODY).hexdigest()
            ),
            NO_MATCH,
            id="body and its hash",
        ),
        pytest.param(lambda r: replace(r, path=r.path + "/x"), NO_MATCH, id="path"),
        pytest.param(
            lambda r: replace(r, path=r.path.replace("/v1/", "%2Fv1/")),
            NO_MATCH,
            id="slash hidden in the path",
        ),
        pytest.param(lambda r: replace(r, query="a=b"), NO_MATCH, id="query"),
        pytest.param(lambda r: replace(r, method="PUT"), NO_MATCH, id="method"),
        pytest.param(lambda r: r.with_headers(host="127.0.0.1:1"), NO_MATCH, id="host"),
        pytest.param(lambda r: r.with_headers(x_acs_action="StopJob"), NO_MATCH, id="action"),
        pytest.param(lambda r: r.with_headers(x_acs_version="2019-01-01"), NO_MATCH, id="version"),
        pytest.param(lambda r: r.with_headers(x_acs_signature_nonce="other"), NO_MATCH, id="nonce"),
        pytest.param(lambda r: r.with_headers(content_type="text/plain"), NO_MATCH, id="content type"),
        pytest.param(lambda r: r.with_headers(x_acs_security_token="t"), INCOMPLETE, id="unsigned x-acs header"),
        pytest.param(lambda r: r.with_headers(x_acs_date=None), INCOMPLETE, id="date absent"),
        pytest.param(lambda r: r.with_headers(host=None), INCOMPLETE, id="host absent"),
        pytest.param(lambda r: replace(r, headers=r.headers | {"Host": "x"}), INCOMPLETE, id="host twice"),
        pytest.param(lambda r: r.with_headers(authorization=None), ("MissingAuthorization", 400), id="unsigned"),
        pytest.param(lambda r: r.with_headers(authorization="Bearer x"), INCOMPLETE, id="another scheme"),
        pytest.param(
            lambda r: r.with_headers(authorization=r.headers["authorization"].replace("SHA256", "SM3", 1)),
            INCOMPLETE,
            id="another algorithm",
        ),
        pytest.param(
            lambda r: r.with_headers(authorization=r.headers["authorization"].replace("host;", "")),
            INCOMPLETE,
            id="host not signed",
        ),
        pytest.param(
            lambda r: r.with_headers(authorization=r.headers["authorization"].replace("x-acs-action;", "")),
            INCOMPLETE,
            id="action not signed",
        ),
        pytest.param(
            lambda r: r.with_headers(authorization=r.headers["authorization"][:-1] + "g"),
            INCOMPLETE,
            id="not hex",
        ),
        pytest.param(
            lambda r: r.with_headers(authorization=r.headers["authorization"][:-64] + "0" * 64),
            NO_MATCH,
            id="signature",
        ),
        pytest.param(
            lambda r: r.with_headers(x_acs_date="yesterday"),
            ("InvalidTimeStamp.Format", 400),
            id="date unreadable",
        ),
    ],
)
def test_a_tampered_request_is_refused(
    good: Recorded, tamper: Callable[[Recorded], Recorded], answer: tuple[str, int]
) -> None:
    good.verify()
    assert refused(tamper(good)) == answer


@pytest.mark.parametrize(
    ("old", "new"),
    [("dlc1", "dlc9"), ("PageSize=100", "PageSize=10"), ("PageSize=100", "PageSize=100&ShowOwn=False")],
)
def test_a_tampered_query_is_refused(good_list: Recorded, old: str, new: str) -> None:
    assert old in good_list.query
    assert refused(replace(good_list, query=good_list.query.replace(old, new))) == NO_MATCH


def test_another_security_token_is_refused(good_list: Recorded) -> None:
    assert refused(good_list.with_headers(x_acs_security_token="other")) == NO_MATCH


def test_another_access_key_beside_the_signing_one_is_refused(good_list: Recorded) -> None:
    answer = refused(good_list.with_headers(x_acs_accesskey_id="other"), secrets={KEY: SECRET, "other": SECRET})
    assert answer == ("InvalidAccessKeyId.NotFound", 404)


@pytest.mark.parametrize(
    ("secrets", "answer"),
    [
        ({KEY: "another"}, NO_MATCH),
        ({"another": SECRET}, ("InvalidAccessKeyId.NotFound", 404)),
        ({KEY: ""}, ("InvalidAccessKeyId.NotFound", 404)),
    ],
    ids=["wrong secret", "unknown key", "key without a secret"],
)
def test_only_who_knows_the_secret_gets_in(good: Recorded, secrets: dict[str, str], answer: tuple[str, int]) -> None:
    assert refused(good, secrets=secrets) == answer


@pytest.mark.parametrize("sign", [1, -1], ids=["too old", "from the future"])
def test_a_date_is_good_for_fifteen_minutes_either_way(good: Recorded, sign: int) -> None:
    signed_at = datetime.strptime(good.headers["x-acs-date"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert good.verify(now=signed_at + sign * DATE_TOLERANCE) == KEY
    late = signed_at + sign * (DATE_TOLERANCE + timedelta(seconds=1))
    assert refused(good, now=late) == ("InvalidTimeStamp.Expired", 400)


def test_a_nonce_serves_once(good: Recorded) -> None:
    nonces = NonceStore()
    good.verify(nonces=nonces)
    assert refused(good, nonces=nonces) == ("SignatureNonceUsed", 400)


def test_a_refused_request_uses_no_nonce_up(good: Recorded) -> None:
    nonces = NonceStore()
    refused(replace(good, body=b"other"), nonces=nonces)
    assert len(nonces._expiry) == 0
    assert good.verify(nonces=nonces) == KEY


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_nonces_are_remembered_as_long_as_their_request_could_be_good() -> None:
    nonces = NonceStore()
    assert nonces.use(KEY, "n", NOW)
    assert not nonces.use(KEY, "n", NOW + 2 * DATE_TOLERANCE)
    assert nonces.use(KEY, "n", NOW + 2 * DATE_TOLERANCE + timedelta(seconds=1))
    assert len(nonces._expiry) == 1


def test_nonces_belong_to_their_access_key() -> None:
    nonces = NonceStore()
    assert nonces.use("a", "n", NOW)
    assert nonces.use("b", "n", NOW)


def test_the_store_is_bounded_and_forgets_the_oldest() -> None:
    nonces = NonceStore(limit=3)
    for nonce in "abcd":
        assert nonces.use(KEY, nonce, NOW)
    assert len(nonces._expiry) == 3
    assert not nonces.use(KEY, "d", NOW)
    assert nonces.use(KEY, "a", NOW)


TEXT = st.text(st.characters(codec="utf-8"))
SEGMENT = TEXT.filter(lambda text: text not in {".", ".."})


@settings(deadline=None)
@given(query=st.dictionaries(st.from_regex(r"[A-Za-z][A-Za-z0-9_-]*", fullmatch=True), TEXT), job_id=SEGMENT)
def test_any_query_and_any_id_signed_by_the_vendor_is_accepted(query: dict[str, str], job_id: str) -> None:
    """The vendor's own signer; the query encoded as its sync transport does."""
    from alibabacloud_tea_openapi.utils import Utils
    from darabonba.url import Url

    headers = {
        "host": "h",
        "x-acs-action": "GetJob",
        "x-acs-content-sha256": hashlib.sha256(b"").hexdigest(),
        "x-acs-date": "2026-01-01T00:00:00Z",
        "x-acs-signature-nonce": "n",
        "x-acs-version": "2020-12-03",
    }
    path = f"/api/v1/jobs/{Url.percent_encode(job_id)}"
    request = SimpleNamespace(method="GET", pathname=path, query=query, headers=headers)
    signature = Utils.get_authorization(request, ALGORITHM, headers["x-acs-content-sha256"], KEY, SECRET)
    recorded = Recorded("GET", path, urlencode(query), headers | {"authorization": signature}, b"")
    assert recorded.verify(now=NOW) == KEY
