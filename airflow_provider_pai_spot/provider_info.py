"""What Airflow asks about this provider: form, links, modules, configuration. Plain data, no imports."""

from __future__ import annotations

from typing import Any

_PACKAGE = "airflow_provider_pai_spot"
_INTEGRATION = "Alibaba Cloud PAI DLC"
_FIRST_VERSION = "0.1.0"


def get_provider_info() -> dict[str, Any]:
    """Return the provider's metadata; the entry point `apache_airflow_provider` names this function."""
    return {
        "package-name": "airflow-provider-pai-spot",
        "name": "PAI DLC spot training",
        "description": "Schedule training on spot (preemptible) capacity of Alibaba Cloud PAI DLC.",
        "integrations": [
            {
                "integration-name": _INTEGRATION,
                "external-doc-url": "https://www.alibabacloud.com/help/en/pai/",
                "tags": ["service"],
            }
        ],
        "operators": [_modules("operators.spot_job")],
        "sensors": [_modules("sensors.spot_job")],
        "hooks": [_modules("hooks.pai_dlc")],
        "triggers": [_modules("triggers.spot_job")],
        "connection-types": [
            {
                "connection-type": "pai_dlc",
                "hook-class-name": f"{_PACKAGE}.hooks.pai_dlc.PaiDlcHook",
                "hook-name": "Alibaba Cloud PAI DLC",
                "ui-field-behaviour": _form_behaviour(),
                "conn-fields": _form_fields(),
            }
        ],
        "extra-links": [f"{_PACKAGE}.links.pai_console.PaiJobLink"],
        "config": {
            "pai_spot": {
                "description": "Settings of airflow-provider-pai-spot, for all tasks of this installation.",
                "options": _options(),
            }
        },
    }


def _modules(name: str) -> dict[str, Any]:
    return {"integration-name": _INTEGRATION, "python-modules": [f"{_PACKAGE}.{name}"]}


def _form_behaviour() -> dict[str, Any]:
    return {
        "hidden-fields": ["schema", "port"],
        "relabeling": {
            "login": "AccessKey ID",
            "password": "AccessKey Secret",
            "host": "Endpoint (host[:port])",
        },
        "placeholders": {
            "login": "empty: credentials come from the environment",
            "host": "empty: the SDK's endpoint of the region",
            "region_id": "cn-hangzhou",
            "workspace_id": "12345",
            "role_arn": "acs:ram::1234567890123456:role/airflow",
        },
    }


def _form_fields() -> dict[str, Any]:
    return {
        "region_id": _text_field("Region ID", "DLC's region. Needed unless an endpoint is given."),
        "workspace_id": _text_field(
            "Workspace ID", "PAI workspace of the jobs. Empty: the caller's default workspace, silently."
        ),
        "credential_source": _choice_field(
            "Credential source",
            "auto: the AccessKey above, else the SDK's default chain. A machine's own sources must be "
            "set up where workers and triggerers run.",
            ["auto", "access_key", "rrsa", "ecs_ram_role", "profile", "uri"],
        ),
        "security_token": _text_field("Security token", "Of a temporary (STS) AccessKey; it expires.", secret=True),
        "role_arn": _text_field("Role ARN", "RAM role to assume with these credentials."),
        "role_session_name": _text_field("Role session name", "How the assumed role appears in audit logs."),
        "protocol": _choice_field("Protocol", "http only for an emulator or a trusted proxy.", ["https", "http"]),
        "network": _text_field("Network", "vpc: the region's endpoint inside a VPC. Empty: the public one."),
        "connect_timeout": _milliseconds_field("Connect timeout (ms)", "Empty: 5000, the SDK's default."),
        "read_timeout": _milliseconds_field(
            "Read timeout (ms)", "Empty: 10000, the SDK's default (30000 for CreateJob)."
        ),
        "http_proxy": _text_field(
            "HTTP proxy",
            "URL; else HTTP_PROXY of the environment. The SDK does not obey NO_PROXY.",
            secret=True,
        ),
        "https_proxy": _text_field(
            "HTTPS proxy",
            "URL; else HTTPS_PROXY of the environment. The SDK does not obey NO_PROXY.",
            secret=True,
        ),
        "console_base_url": _text_field(
            "Console URL", "Base of links to jobs, https only. Empty: https://pai.console.aliyun.com"
        ),
        "studio_endpoint": _text_field(
            "PAI Studio endpoint (host[:port])",
            "Asked only why a job waits for its quota. Empty: the region's public one, unless Network or Endpoint "
            "is filled.",
        ),
        "namespace": _text_field(
            "Namespace", "Tells this installation's jobs from another's, unless [pai_spot] namespace does."
        ),
    }


def _text_field(label: str, description: str, *, secret: bool = False) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": ["string", "null"]}
    if secret:
        schema["format"] = "password"
    return {"label": label, "description": description, "schema": schema}


def _choice_field(label: str, description: str, choices: list[str]) -> dict[str, Any]:
    schema = {"type": ["string", "null"], "enum": choices, "default": choices[0]}
    return {"label": label, "description": description, "schema": schema}


def _milliseconds_field(label: str, description: str) -> dict[str, Any]:
    return {
        "label": label,
        "description": description,
        "schema": {"type": ["integer", "null"], "minimum": 1},
    }


def _options() -> dict[str, Any]:
    return {
        "namespace": _option(
            "string",
            "",
            "Tells the jobs of this Airflow installation from those of another that uses the same workspace. "
            "Empty: the connection's namespace, else the host of [api] base_url.",
            example="airflow-prod",
        ),
        "bid_grid": _option(
            "string",
            "refuse",
            "What happens to a discount bid off DLC's documented steps (0.1, 0.2, ... 0.9): refuse or warn.",
            example="warn",
        ),
        "verify_spot_terms": _option(
            "string",
            "stop",
            "What happens when a created job contradicts the spot terms that were asked for: stop (stop it "
            "and fail the task), warn or off.",
            example="warn",
        ),
        "trigger_min_dwell": _option(
            "float",
            "15",
            "Seconds a trigger waits at least before it fires. Airflow 3.3 can fail a try whose trigger "
            "fires while the scheduler still settles the deferral.",
        ),
        "submit_lookup_patience": _option(
            "float",
            "120",
            "Seconds to look for a job that may have been created although no answer came, before another is "
            "submitted. Assumed upper bound of how late a new job shows in ListJobs.",
        ),
        "submissions_per_second": _option(
            "float",
            "10",
            "How many jobs the workers of one machine submit a second at most, so that a burst of mapped tasks is not "
            "throttled (assumed: DLC publishes no limit); slower while DLC throttles. With KubernetesExecutor each "
            "task is a machine of its own: limit such a burst by a pool. 0: no limit.",
        ),
        "poll_error_tolerance": _option(
            "float",
            "900",
            "Seconds without one good answer from DLC, or without a usable connection, after which waiting for a job "
            "is given up.",
        ),
        "unusual_wait": _option(
            "float",
            "600",
            "Seconds a job may wait for capacity before the task log says why: its bid against the market, stock, "
            "DLC's reason and newest event. Said again after 2, 4, 8 ... times as long. 0: never.",
        ),
        "checkpoint_storage": _option(
            "string",
            "",
            "How a worker reaches the folder of checkpoint_uri, to see after a loss whether one was written: a "
            "scheme that an installed provider knows, and a connection (s3://oss_default). Empty: the scheme of "
            "checkpoint_uri. off: do not look.",
            example="s3://oss_default",
        ),
        "jobs_per_list": _option(
            "integer",
            "100",
            "How many waiting jobs the triggerer asks for with one ListJobs, 100 at most. A list that DLC refuses "
            "as too large is asked for in halves all the same.",
        ),
        "log_tail_lines": _option(
            "integer", "50", "How many lines of each failing pod's log are copied into the task log."
        ),
        "log_lines_per_look": _option(
            "integer",
            "5000",
            "With log_poll_interval: how many new log lines of a job are copied at one look at most. The rest is left "
            "out, and a line says so.",
        ),
        "log_pods": _option(
            "integer", "8", "With log_poll_interval: how many pods of a job are streamed at most, one request each."
        ),
        "log_lag": _option(
            "integer",
            "5",
            "With log_poll_interval: seconds that a log line may show late in GetPodLogs (assumed). So much overlap "
            "is asked for, and so long is waited for the last lines of a job.",
        ),
        "log_time_zone": _option(
            "string",
            "auto",
            "Zone of the time in front of DLC's log lines, which is not documented: auto (found out from the lines), "
            "UTC, or an offset such as +08:00.",
            example="+08:00",
        ),
        "event_time_zone": _option(
            "string",
            "+08:00",
            "Zone of the time in front of DLC's event lines, as observed; UTC, or another offset.",
            example="UTC",
        ),
        "repeat_trigger_logs": _option(
            "string",
            "auto",
            "Airflow 3.3's triggerer overwrites its log of a try when the task waits again, and uploads it only when a "
            "wait ends in order. A trigger copies again: auto: what was overwritten or, with [logging] remote_logging, "
            "what a triggerer that was ended did not upload; all: both; no: nothing.",
            example="all",
        ),
        "verdict_rules": _option(
            "string",
            "",
            "Import path of a list of your own rules of how a failed job ended, asked before this provider's. "
            "Imported in workers and triggerers.",
            example="my_package.rules.RULES",
        ),
    }


def _option(kind: str, default: str, description: str, *, example: str | None = None) -> dict[str, Any]:
    return {
        "description": description,
        "version_added": _FIRST_VERSION,
        "type": kind,
        "example": example,
        "default": default,
    }
