"""
Where PAI Studio is: the sister product that knows why a job waits for its quota, which DLC's own API does not tell.

Its published SDK has no method for that question. Path, answer and RAM action are those of Alibaba's official tooling
for DLC diagnostics (2026), which asks through the generic command line as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_pai_spot.hooks.connection import ConnectionSettings

_ODD_ADDRESSES = {"cn-hangzhou": "pai.cn-hangzhou.data.aliyun.com"}
"""As in the endpoint table of the vendor's SDK paistudio20220112 2.6.2; every other row is `pai.<region>`."""


def studio_endpoint(settings: ConnectionSettings) -> str:
    """
    Return `host[:port]` of PAI Studio, '' where it is not known.

    The table names public addresses only: a process that reaches DLC through a VPC, or at an address of its own, is
    told where PAI Studio is by the connection, or does without it.
    """
    if settings.studio_endpoint:
        return settings.studio_endpoint
    if settings.network or settings.endpoint or not settings.region_id:
        return ""
    return _ODD_ADDRESSES.get(settings.region_id, f"pai.{settings.region_id}.aliyuncs.com")
