"""
The instance types this emulator rents out: shapes and list prices.

List prices of Lingjun types are the vendor's published ones (USD per hour), converted at an assumed rate. Those
of general computing types are assumed; ecs.g7.xlarge is set so that the two bids of the vendor's sample page
(discount 0.4, and 0.011 CNY per minute) are the same bid.
"""

from __future__ import annotations

from dataclasses import dataclass

CNY_PER_USD = 7.2
"""Assumed; no DLC document converts."""
UNKNOWN_TYPE_LIST_PRICE = 0.05
"""CNY per minute for a type without a row; assumed."""


@dataclass(frozen=True, slots=True)
class InstanceType:
    """
    One instance type.

    :param name: DLC's name.
    :param resource_type: `ECS` or `Lingjun`.
    :param list_price: pay-as-you-go price, CNY per minute.
    :param assumed: whether that price is a guess rather than a published number.
    :param memory: GiB.
    :param gpu_memory: GiB of each GPU.
    """

    name: str
    resource_type: str
    list_price: float
    assumed: bool
    cpu: int
    memory: int
    gpu: int = 0
    gpu_type: str = ""
    gpu_memory: int = 0


def _lingjun(  # noqa: PLR0917 - rows of a table, read in columns
    name: str, usd_per_hour: float, cpu: int, memory: int, gpu_type: str, gpu_memory: int
) -> InstanceType:
    price = usd_per_hour * CNY_PER_USD / 60
    return InstanceType(name, "Lingjun", price, False, cpu, memory, 8, gpu_type, gpu_memory)


def _ecs(  # noqa: PLR0917 - rows of a table, read in columns
    name: str, price: float, cpu: int, memory: int, gpu: int = 0, gpu_type: str = ""
) -> InstanceType:
    return InstanceType(name, "ECS", price, True, cpu, memory, gpu, gpu_type, 24 if gpu else 0)


INSTANCE_TYPES: dict[str, InstanceType] = {
    row.name: row
    for row in (
        _lingjun("ml.gu7ef.8xlarge-gu100", 57.0, 128, 1024, "GU100", 80),
        _lingjun("ml.gu7xf.8xlarge-gu108", 50.4, 128, 1024, "GU108", 96),
        _lingjun("ml.gu8xf.8xlarge-gu108", 122.4, 192, 2048, "GU108", 96),
        _lingjun("ml.gu8ef.8xlarge-gu100", 232.2, 192, 2048, "GU100", 80),
        _ecs("ecs.g7.xlarge", 0.0275, 4, 16),
        _ecs("ecs.g7.2xlarge", 0.055, 8, 32),
        _ecs("ecs.c7.large", 0.012, 2, 4),
        _ecs("ecs.gn7i-c8g1.2xlarge", 0.2, 8, 30, 1, "A10"),
        _ecs("ecs.gn7i-c32g1.8xlarge", 0.35, 32, 188, 1, "A10"),
        _ecs("ecs.gn6i-c4g1.xlarge", 0.14, 4, 15, 1, "T4"),
    )
}


def list_price(instance_type: str) -> float:
    """Return the list price in CNY per minute; an assumed one for a type without a row."""
    row = INSTANCE_TYPES.get(instance_type)
    return row.list_price if row else UNKNOWN_TYPE_LIST_PRICE


def is_lingjun(instance_type: str) -> bool:
    """Whether a type is Lingjun's: by its row, else by its name (assumed: `ml.gu…`)."""
    row = INSTANCE_TYPES.get(instance_type)
    return row.resource_type == "Lingjun" if row else instance_type.startswith("ml.gu")
