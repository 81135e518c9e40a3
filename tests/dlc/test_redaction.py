"""What looks like a secret does not get into evidence; what only resembles one may be lost, too."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_pai_spot.dlc.outcome import JobOutcome, Verdict
from airflow_provider_pai_spot.dlc.redaction import LONGEST_TEXT, without_secrets

HEX = "0123456789abcdef" * 2
BASE64 = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY99aZ"
MASKED = {
    "an AccessKey id": ("key LTAI5tPlantedKey0001 is wrong", "key LTAI*** is wrong"),
    "a temporary AccessKey id": ("STS.NUplantedKey0001", "STS.***"),
    "an AccessKey secret": ("with 7fQx2LkPz0Rr8VbN3mWcY5tHdJ1sGa here", "with *** here"),
    "a password": ("password=hunter2 rest", "password=*** rest"),
    "a password with a colon": ("Password: hunter2", "Password: ***"),
    "a variable": ("MY_DB_PASSWD=hunter2", "MY_DB_PASSWD=***"),
    "a variable with more to its name": ("TOKEN_FOR_HUB=hunter2", "TOKEN_FOR_HUB=***"),
    "an STS token": ("SecurityToken=CAISplanted==", "SecurityToken=***"),
    "a secret that holds separators": ("secret=a,b;c&d x", "secret=*** x"),
    "a query": ("oss?Expires=1&Signature=abc", "oss?Expires=1&Signature=***"),
    "JSON": ('{"password": "two words", "a": 1}', '{"password": "***", "a": 1}'),
    "JSON within JSON": (r"{\"api_key\": \"hunter2\"}", r'{\"api_key\": \"***"}'),
    "Python": ("{'access_key_secret': 'two words'}", "{'access_key_secret': '***'}"),
    "a registry's auth": ('"auth": "dXNlcg=="', '"auth": "***"'),
    "an option": ("train.py --hub-token hunter2 --lr 1", "train.py --hub-token *** --lr 1"),
    "a header": ("Authorization: Basic dXNlcjpwYXNz", "Authorization: ***"),
    "a header among others": ('{"authorization": "acs a:b", "x": 1}', '{"authorization": ***'),
    "a cookie": ("Cookie: a=b; c=d", "Cookie: ***"),
    "a bearer token": ("Bearer abcdefg12345 given", "Bearer *** given"),
    "a user in a URL": ("https://robot:p@ss@hub.example.com/v2", "https://***@hub.example.com/v2"),
    "a bucket's credentials": ("oss://id:key@bucket/x", "oss://***@bucket/x"),
    "a web token": ("eyJhbGciOiJIUzI1.eyJzdWIi.SflKxw", "***"),
    "a key in hex": (f"key {HEX}.", "key ***."),
    "a key in base64": (f"key {BASE64}= end", "key *** end"),
    "a private key": ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "***"),
}
LEFT_ALONE = [
    "pod worker-7 on cn-hangzhou.10.1.2.3 Evicted, exit code 143",
    "PyTorchJob dlc1a2b3c4d5e6f7 is failed because 1 Worker replica(s) failed.",
    "pull access denied: unauthorized: authentication required",
    "Failed to pull image registry-vpc.cn-hangzhou.aliyuncs.com/PAI-DLC/PyTorch-Training-2.3:gpu-py310-Ubuntu22.04",
    f"image team/train@sha256:{HEX}{HEX}",
    "MountVolume failed for /mnt/pai_spot/checkpoints/Nightly-2026/Train-01/a-very-long-name-of-a-folder-42",
    "tokenizer: not found; 3 tokens; the secretary; an author",
    "RequestId 1C9D4F4A-3E3B-5B6C-8D2F-0123456789AB",
]


@pytest.mark.parametrize(("text", "masked"), MASKED.values(), ids=MASKED)
def test_a_secret_is_masked_and_the_rest_stays(text: str, masked: str) -> None:
    assert without_secrets(text, 200).replace(r"***\"", '***"') == masked


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_people_look_for_stays(text: str) -> None:
    assert without_secrets(text, 200) == text


def test_a_secret_is_not_cut_in_two_by_the_limit() -> None:
    for length in range(1, 60):
        cut = without_secrets(f"registry says password=hunter2 and {BASE64}", length)
        assert len(cut) <= length
        assert "hunter" not in cut
        assert BASE64[:5] not in cut


def test_a_secret_is_not_cut_in_two_where_looking_ends() -> None:
    secrets = "LTAI5tPlantedKey0001 " * 400  # masked, all of it is short enough to be shown to its end
    assert "Planted" not in without_secrets(secrets, LONGEST_TEXT)
    assert len(without_secrets("x" * 100_000, LONGEST_TEXT)) == LONGEST_TEXT


PIECES = st.one_of(
    st.sampled_from([text for text, _ in MASKED.values()]),
    st.sampled_from(
        ["password", "token=", '"', "'", "\\", ": ", "=", " ", "\n", "…", "*", "***", "--", "://", "@", "/"]
    ),
    st.sampled_from([HEX, BASE64, "Authorization:", "Bearer ", "LTAI", "eyJ", "sha256:", "-", ".", "aB3", "\ud800"]),
    st.text(max_size=4),
)


@given(st.lists(PIECES, max_size=12).map("".join), st.integers(1, 120))
@example("password= …", 12)
@example(r"{\"api_key\": \"hunter2\"}", 16)
@example("token=" + "x" * 200, 8)
def test_results_fit_and_are_their_own_results(text: str, limit: int) -> None:
    once = without_secrets(text, limit)
    assert len(once) <= limit
    assert without_secrets(once, limit) == once


@given(st.lists(st.lists(PIECES, max_size=12).map("".join), max_size=30), st.lists(PIECES, max_size=40).map("".join))
def test_an_outcome_keeps_two_thousand_bytes_of_evidence_and_no_more_when_read_again(
    evidence: list[str], message: str
) -> None:
    outcome = JobOutcome(
        job_id="j", verdict=Verdict.FAILED, status="Failed", evidence=tuple(evidence), reason_message=message
    )
    shown = outcome.to_dict()
    assert len(json.dumps(shown["evidence"])) <= 2_000
    assert len(shown["reason_message"]) <= 500
    assert not any("\n" in line for line in shown["evidence"])
    assert JobOutcome.from_dict(json.loads(json.dumps(shown))).to_dict() == shown
