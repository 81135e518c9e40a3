"""Who holds spot machines, who waits for them, and who wins or loses when price or stock change."""

from __future__ import annotations

from airflow_provider_pai_spot.emulator.market import Market
from airflow_provider_pai_spot.emulator.record import Job, SpotRole


class Capacity:
    """The machines of one market. On-demand roles are always served."""

    def __init__(self, market: Market) -> None:
        self.market = market
        self._waiting: dict[str, Job] = {}
        self._held: dict[str, Job] = {}

    def seek(self, job: Job, at: float) -> str:
        """Give the job its machines and return ''; else let it wait and return why."""
        obstacle = next(filter(None, (self._obstacle(job, role, at) for role in job.spot_roles)), "")
        if obstacle:
            self._waiting[job.job_id] = job
            return obstacle
        self._waiting.pop(job.job_id, None)
        if job.spot_roles:
            self._held[job.job_id] = job
        return ""

    def release(self, job: Job) -> list[str]:
        """Take a job's machines back, or its place in the queue; returns the types that became free."""
        self._waiting.pop(job.job_id, None)
        if self._held.pop(job.job_id, None) is None:
            return []
        return [role.instance_type for role in job.spot_roles]

    def keep(self, job: Job) -> None:
        """Let a job hold machines without asking the market (it was put there by hand)."""
        self._waiting.pop(job.job_id, None)
        if job.spot_roles:
            self._held[job.job_id] = job

    def waiting_for(self, instance_type: str) -> list[Job]:
        """Return who waits for a type: highest bid first, then longest wait."""
        jobs = [job for job in self._waiting.values() if _uses(job, instance_type)]
        return sorted(jobs, key=lambda job: -_highest_bid(job, instance_type))

    def losers(self, instance_type: str, at: float) -> list[tuple[Job, str]]:
        """Return who must give machines of a type back, and why: outbid first, then lowest bids beyond the stock."""
        holders = [job for job in self._held.values() if _uses(job, instance_type)]
        outbid = [job for job in holders if not self._affords(job, instance_type, at)]
        lost = [(job, "the price rose above the bid") for job in outbid]
        stock = self.market.stock(instance_type)
        if stock is None:
            return lost
        kept = sorted((job for job in holders if job not in outbid), key=lambda job: self._rank(job, instance_type))
        used = sum(_count(job, instance_type) for job in kept)
        for job in kept:
            if used <= stock:
                break
            used -= _count(job, instance_type)
            lost.append((job, "the stock ran short"))
        return lost

    def free(self, instance_type: str) -> int | None:
        """Return how many machines of a type could be rented now; None: without end."""
        stock = self.market.stock(instance_type)
        return None if stock is None else max(0, stock - self._used(instance_type))

    def _obstacle(self, job: Job, role: SpotRole, at: float) -> str:
        if not self.market.accepts(role.bid, role.instance_type, at):
            price = self.market.deciding_discount(role.instance_type, at)
            return f"spot bid too low: {role.instance_type} costs {price:.3g} of list price"
        free = self.free(role.instance_type)
        wanted = _count(job, role.instance_type)
        if free is not None and free < wanted:
            return f"resource type is not enough: {role.instance_type} has {free} of {wanted} in stock"
        return ""

    def _affords(self, job: Job, instance_type: str, at: float) -> bool:
        return all(
            self.market.accepts(role.bid, instance_type, at)
            for role in job.spot_roles
            if role.instance_type == instance_type
        )

    def _rank(self, job: Job, instance_type: str) -> tuple[float, float]:
        return _highest_bid(job, instance_type), -(job.running_at or job.created_at)

    def _used(self, instance_type: str) -> int:
        return sum(_count(job, instance_type) for job in self._held.values())


def _uses(job: Job, instance_type: str) -> bool:
    return any(role.instance_type == instance_type for role in job.spot_roles)


def _count(job: Job, instance_type: str) -> int:
    return sum(role.count for role in job.spot_roles if role.instance_type == instance_type)


def _highest_bid(job: Job, instance_type: str) -> float:
    return max(r.bid.as_discount(instance_type) for r in job.spot_roles if r.instance_type == instance_type)
