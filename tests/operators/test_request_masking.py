"""Credentials inside a request are known to Airflow's masker, whatever form they came in."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from airflow.sdk.log import redact

from airflow_provider_pai_spot.operators.options import mask_request_secrets


@pytest.fixture
def secret() -> str:
    return f"planted-{uuid.uuid4().hex}"


def role(section: str, content: Any) -> dict[str, Any]:
    return {"Type": "Worker", "Image": "i", section: content}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda spec: [spec], id="job_specs"),
        pytest.param(lambda spec: json.dumps([spec]), id="job_specs as text"),
        pytest.param(lambda spec: [json.dumps(spec)], id="a role as text"),
        pytest.param(lambda spec: f"\n {json.dumps([spec], indent=2)}\n", id="indented text"),
        pytest.param(lambda spec: {"JobSpecs": [spec]}, id="job_overrides"),
        pytest.param(lambda spec: json.dumps({"JobSpecs": [spec]}), id="job_overrides as text"),
        pytest.param(lambda spec: {"JobSpecs": json.dumps([spec])}, id="text inside job_overrides"),
    ],
)
def test_a_registry_password_is_masked_in_every_form_it_may_be_given_in(secret: str, given: Any) -> None:
    mask_request_secrets(given(role("ImageConfig", {"Username": "robot", "Password": secret})))
    assert secret not in str(redact(f"pulling with {secret}"))


@pytest.mark.parametrize("section", ["ImageConfig", "CredentialConfig"])
def test_everything_in_a_section_of_credentials_is_masked_also_where_the_section_is_text(
    secret: str, section: str
) -> None:
    mask_request_secrets(json.dumps(role(section, json.dumps({"Items": [{"Policy": secret}]}))))
    assert secret not in str(redact(f"injecting {secret}"))


def test_a_password_is_masked_as_it_stands_in_json_text_too(secret: str) -> None:
    password = f'{secret}"\\{secret[::-1]}'
    text = json.dumps([role("ImageConfig", {"Password": password})])
    mask_request_secrets(text)
    assert secret not in str(redact(text))


def test_a_password_of_five_characters_is_masked_as_airflow_itself_would() -> None:
    mask_request_secrets([role("ImageConfig", {"Password": "q7#Zx"})])
    assert "q7#Zx" not in str(redact("password q7#Zx"))


@pytest.mark.parametrize("text", ["", "{not json", "[", "[" * 100_000, "{}", "[1]", '{"ImageConfig": 5}', "null"])
def test_text_that_holds_no_credentials_is_passed_over(text: str) -> None:
    mask_request_secrets(text, None, [text], {"JobSpecs": text})


def test_what_is_no_credential_stays_readable(secret: str) -> None:
    mask_request_secrets(json.dumps([role("Description", {"Password": secret})]))
    assert secret in str(redact(f"reading {secret}"))
