"""
Why a job waits, in one line: its bids against the market, stock, DLC's own reason, the newest event.

Pure words over what was found out; whatever DLC does not show is left out or said to be not shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_provider_pai_spot.attempts.quota_words import quota_words
from airflow_provider_pai_spot.dlc import status
from airflow_provider_pai_spot.dlc.bids import Bid, read_bid
from airflow_provider_pai_spot.dlc.duration import duration
from airflow_provider_pai_spot.dlc.job import Job
from airflow_provider_pai_spot.dlc.redaction import without_secrets
from airflow_provider_pai_spot.dlc.wire import mapping_of, text_of
from airflow_provider_pai_spot.exceptions import PaiDlcError, PaiDlcRefused
from airflow_provider_pai_spot.market import Offer

_TYPES_NAMED = 4
_LONGEST_QUOTE = 240
_TIMED = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_STOCK = {True: "spot stock is left", False: "there is no spot stock", None: "spot stock is not shown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """
    What was found out about a job that waits.

    :param offers: what the market offers of its instance types; None if nothing is to be said about prices.
    :param trouble: why there are no offers.
    :param diagnosis: what PAI Studio says of the job's place in its quota; None: not asked, or no answer.
    :param quota_trouble: why there is no diagnosis.
    :param events: lines of the job's events.
    :param pod_events: lines of its pods' events, where it has pods.
    """

    offers: Sequence[Offer] | None = None
    trouble: PaiDlcError | None = None
    diagnosis: Mapping[str, Any] | None = None
    quota_trouble: PaiDlcError | None = None
    events: Sequence[str] = ()
    pod_events: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Wish:
    """
    What one role waits for.

    :param bid: None: it does not bid, or DLC does not show it.
    """

    instance_type: str
    bid: Bid | None


def wishes_of(job: Job) -> tuple[Wish, ...]:
    """Return what the job's roles wait for, each once, as far as DLC shows it."""
    roles = ((text_of(role.get("EcsSpec")), read_bid(mapping_of(role.get("SpotSpec")))) for role in job.roles)
    return tuple(dict.fromkeys(Wish(name, bid) for name, bid in roles if name))


def quota_of(job: Job) -> str:
    """Return the quota it queues for, '' for public resources, which is where spot capacity is documented."""
    return text_of(job.raw.get("ResourceId"))


def has_machines(job: Job) -> bool:
    """Whether it has won its machines and only prepares them: then no price explains the wait."""
    return status.has_machines(job.status)


def waiting_line(job: Job, now: datetime, found: Findings) -> str:
    """Return why the job waits, in one line."""
    since = job.pending_since(now) or now
    head = f"{job.job_id} has been waiting for {duration((now - since).total_seconds())} and is {job.status}"
    return _one_line("; ".join((head, *_reasons(job, found))))


def _reasons(job: Job, found: Findings) -> Iterator[str]:
    if has_machines(job):
        yield "it has its machines, so what it waits for is its image, its mounts or its checks"
    else:
        yield from _market(job, found)
        yield from _quota(job, found)
    if reason := ": ".join(filter(None, (job.reason_code, job.reason_message))):
        yield f"DLC says {_quoted(reason)}"
    for kind, lines in (("pod event", found.pod_events), ("event", found.events)):
        if lines:
            yield f"newest {kind}: {_quoted(newest(lines))}"


def newest(lines: Sequence[str]) -> str:
    """Return the newest of some event lines: by their times if all have one, otherwise the last; '' of none."""
    if lines and all(_TIMED.match(line) for line in lines):
        return max(reversed(lines), key=lambda line: line[:19])
    return lines[-1] if lines else ""


def _market(job: Job, found: Findings) -> Iterator[str]:
    if found.trouble is not None:
        yield _no_prices(found.trouble)
    elif found.offers is not None:
        wishes = wishes_of(job)
        offers = {offer.instance_type: offer for offer in found.offers}
        yield from (_wish(wish, offers, job) for wish in wishes[:_TYPES_NAMED])
        if not wishes:
            yield "DLC does not show its instance types"


def _quota(job: Job, found: Findings) -> Iterator[str]:
    quota = quota_of(job)
    if quota and found.diagnosis is not None:
        yield quota_words(quota, found.diagnosis)
    elif quota:
        why = f" ({_quoted(str(found.quota_trouble))})" if found.quota_trouble is not None else ""
        yield f"it queues for quota {quota}, which the PAI console can diagnose{why}"


def _no_prices(trouble: PaiDlcError) -> str:
    if isinstance(trouble, PaiDlcRefused):
        return f"without prices, since ListEcsSpecs was refused ({_quoted(str(trouble))})"
    return f"prices could not be read ({_quoted(str(trouble))})"


def _wish(wish: Wish, offers: Mapping[str, Offer], job: Job) -> str:
    offer = offers.get(wish.instance_type)
    if offer is None:
        return f"ListEcsSpecs does not show {wish.instance_type}"
    if wish.bid is None and job.spot_specs:  # a role without a bid beside one that bids
        return f"{wish.instance_type} is wanted on demand{_on_demand(offer)}"
    return f"{wish.instance_type} {_price(wish.bid, offer, job)}, {_STOCK[offer.has_spot_stock]}{_on_demand(offer)}"


def _price(bid: Bid | None, offer: Offer, job: Job) -> str:
    if offer.spot_discount is None:
        return "shows no spot price"
    costs = f"costs {format(offer.spot_discount.normalize(), 'f')} of list price"
    if bid is None:
        return f"{costs} (DLC does not show the bid)"
    if bid.kind == "price":
        return f"{costs} (the bid is {bid}, and DLC shows no list price to compare with)"
    relation = "within" if bid.amount >= offer.spot_discount else "above"
    # Help pages: Lingjun bids are compared with the average price, which no call of DLC shows.
    average = " now (its average decides)" if job.resource_type == "Lingjun" else ""
    return f"{costs}{average}, {relation} the bid of {bid.value}"


def _on_demand(offer: Offer) -> str:
    return ", nor is it available on demand" if offer.is_available is False else ""


def _quoted(text: str) -> str:
    """Fold a text into one line of bearable length, without what looks like a secret."""
    return without_secrets(_one_line(text), _LONGEST_QUOTE)


def _one_line(text: str) -> str:
    return " ".join(text.split())
