"""
The keys of CreateJob as its reference spells them, and what to say about a key it does not have.

The vendor SDK drops keys it does not know without a word, so that `spot_spec` for `SpotSpec` would submit an
on-demand job; that is why spelling is checked here. Request and reference as of SDK 1.11.6.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from airflow_provider_pai_spot.dlc.refusal import InvalidJobRequest, path

JOB_TYPES: Final = (
    "PyTorchJob",
    "TFJob",
    "MPIJob",
    "XGBoostJob",
    "OneFlowJob",
    "ElasticBatchJob",
    "SlurmJob",
    "RayJob",
    "DataJuicerJob",
)

TOP_LEVEL_KEYS: Final = (
    "Accessibility",
    "CodeSource",
    "CredentialConfig",
    "CustomEnvs",
    "DataSources",
    "DebuggerConfigContent",
    "Description",
    "DisplayName",
    "ElasticSpec",
    "Envs",
    "JobMaxRunningTimeMinutes",
    "JobSpecs",
    "JobType",
    "Options",
    "Priority",
    "ResourceId",
    "SchedulingStrategy",
    "Settings",
    "SuccessPolicy",
    "TemplateId",
    "TemplateVersion",
    "ThirdpartyLibDir",
    "ThirdpartyLibs",
    "UserCommand",
    "UserVpc",
    "WorkspaceId",
)

JOB_SPEC_KEYS: Final = (
    "AssignNodeSpec",
    "AutoScalingSpec",
    "ConsiderInSuccessPolicy",
    "Driver",
    "EcsSpec",
    "ElasticSpotSpecs",
    "ExtraPodSpec",
    "HyperNodeSchedulingConfig",
    "Image",
    "ImageConfig",
    "IsCheif",  # DLC's own spelling, beside the right one
    "IsChief",
    "LocalMountSpecs",
    "OversoldType",
    "PodCount",
    "QuotaId",
    "ResourceConfig",
    "RestartPolicy",
    "ServiceSpec",
    "SpotSpec",
    "StartupDependencies",
    "SystemDisk",
    "Type",
    "UseSpotInstance",
    "UserCommand",
)

SPOT_SPEC_KEYS: Final = ("SpotStrategy", "SpotDiscountLimit", "SpotPriceLimit")

USER_VPC_KEYS: Final = ("VpcId", "SwitchId", "SecurityGroupId", "ExtendedCIDRs", "DefaultRoute")

CODE_SOURCE_KEYS: Final = ("CodeSourceId", "Branch", "Commit", "MountPath", "IsSharedMountPath")

DATA_SOURCE_KEYS: Final = (
    "DataSourceId",
    "Uri",
    "DataSourceVersion",
    "MountPath",
    "MountAccess",
    "Options",
    "EnableCache",
    "AccessPointId",
    "RoleArn",
    "RoleChain",
)

SETTINGS_KEYS: Final = (
    "AdvancedSettings",
    "AllocateAllRDMADevices",
    "AllowUnschedulableNodes",
    "BusinessUserId",
    "Caller",
    "DataJuicerConfig",
    "DisableEcsStockCheck",
    "Driver",
    "ElasticSpotJobMaxRestartTimes",
    "EnableCPUAffinity",
    "EnableDSWDev",
    "EnableErrorMonitoringInAIMaster",
    "EnableOssAppend",
    "EnableRDMA",
    "EnableSanityCheck",
    "EnableTideResource",
    "ErrorMonitoringArgs",
    "JobReservedMinutes",
    "JobReservedPolicy",
    "ModelConfig",
    "OversoldType",
    "PipelineId",
    "SanityCheckArgs",
    "Shell",
    "Tags",
    "TerminationGracePeriodSeconds",
)


def suggestion(key: str, known: Iterable[str]) -> str | None:
    """Return the known key that was probably meant: another case, snake_case, or a slip of the pen."""
    by_folded = {_folded(name): name for name in known}
    if _folded(key) in by_folded:
        return by_folded[_folded(key)]
    close = difflib.get_close_matches(_folded(key), by_folded, n=1, cutoff=0.85)
    return by_folded[close[0]] if close else None


def check_keys(
    argument: str, value: Mapping[str, Any], known: tuple[str, ...], *, only_known: bool = False
) -> tuple[str, ...]:
    """
    Refuse misspelled keys; return a warning for each key that resembles none of DLC's.

    :param only_known: refuse those too.
    :raises InvalidJobRequest: a key looks like one of DLC's in another spelling.
    """
    unknown = [str(key) for key in value if key not in known]
    for key in unknown:
        _refuse_misspelled(argument, value, key, known)
    if unknown and only_known:
        raise InvalidJobRequest(
            argument, value, f"DLC has no key {unknown[0]!r} here; it knows {', '.join(sorted(known))}."
        )
    return tuple(f"{path(argument, key)} is not in the CreateJob reference; it is sent as it is." for key in unknown)


def _refuse_misspelled(argument: str, value: Mapping[str, Any], key: str, known: tuple[str, ...]) -> None:
    meant = suggestion(key, known)
    if meant is None:
        return
    if _folded(meant) == _folded(key):
        raise InvalidJobRequest(argument, value, f"DLC spells the key {key!r} as {meant!r}.")
    raise InvalidJobRequest(argument, value, f"DLC has no key {key!r} here; did you mean {meant!r}?")


def _folded(key: str) -> str:
    return key.replace("_", "").replace("-", "").casefold()
