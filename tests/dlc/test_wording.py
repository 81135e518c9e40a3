"""Which sentences say that the market took capacity back; doubt is never called a revocation."""

from __future__ import annotations

import pytest

from airflow_provider_pai_spot.dlc.wording import taken_back

TAKEN = (
    "Pod dlc1-worker-0 has been preempted",
    "Spot instance preempted: price above bid",
    "the pod was evicted.",
    "Evicted",
    'reason="Evicted"',
    "the instance was reclaimed, bidding again",
    "Spot instance i-bp1 was released",
    "spot preemption",
    "released the spot instance",
    "preemption of spot capacity",
    "Not enough stock: the pod was evicted",
    "the pod cannot be evicted gracefully; it was preempted",
    "no pod was preempted, then worker-0 was evicted",
    "2026-01-01T02:00:00Z not reachable since its node was preempted",
    "Node is not ready and was evicted",
    "Training could not finish before being preempted",
)
NOT_TAKEN = (
    'Pulling image "registry/team/spot-train:release-1.2"',
    "Pulling image registry/spot:released",
    'Pulling image "team/evicted-cache:1"',
    "Created pod: preempted-tests-worker-0",
    "release 1.2 of the spot trainer",
    "spot-train released version 2",
    "preemptible capacity, spot strategy SpotWithPriceLimit",
    "no preemption victims found for incoming pod",
    "the pod was not preempted",
    "the pod could not be evicted",
    "pod can't be evicted",
    "pod can\u2019t be evicted",
    "the pod wasn't reclaimed",
    "no pod was preempted",
    "no spot instance was released",
    "none of the pods was evicted",
    "the spot instance was never released",
    "ended without being preempted",
)


@pytest.mark.parametrize("text", TAKEN)
def test_a_resource_taken_back_is_known_by_its_words(text: str) -> None:
    assert taken_back(text)


@pytest.mark.parametrize("text", NOT_TAKEN)
def test_names_and_denials_are_none(text: str) -> None:
    assert taken_back(text) is None


@pytest.mark.parametrize("text", ["no " * 20_000, "spot " * 12_000, "released " * 7_000, "n't a" * 12_000])
@pytest.mark.timeout(120)  # which takes a moment, or far longer than this where a pattern goes back and forth
def test_a_long_text_is_read_at_once(text: str) -> None:
    assert taken_back(text) is None
