"""Renders a task's arguments one by one; one that cannot be rendered yet is marked, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_pai_spot.cli.plan.masking import redacted
from airflow_provider_pai_spot.cli.plan.unknown import KNOWN_AT_RUN_TIME, KnownAtRunTime, Unknown, result_of
from airflow_provider_pai_spot.dlc.refusal import path
from airflow_provider_pai_spot.operators.options import mask_request_secrets
from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


def render(operator: SubmitSpotJobOperator, context: Context) -> Unknown:
    """Render the operator's arguments in place and return what is known at run time only."""
    unknown = Unknown()
    renderer = _Renderer(operator, context)
    for name in operator.template_fields:
        value = getattr(operator, name)
        if not value:
            continue
        rendered = renderer.rendered(name, value)
        setattr(operator, name, rendered)
        reasons = renderer.take_reasons()
        if name in reasons:
            unknown.arguments[name] = reasons[name]
        elif reasons:
            unknown.parts[name] = reasons
    mask_request_secrets(operator.job_specs, operator.job_overrides)
    return unknown


class _Renderer:
    def __init__(self, operator: SubmitSpotJobOperator, context: Context) -> None:
        self._operator = operator
        self._context = context
        self._environment = operator.get_template_env()
        self._reasons: dict[str, str] = {}

    def take_reasons(self) -> dict[str, str]:
        """Return why parts of the last argument are not known."""
        reasons, self._reasons = self._reasons, {}
        return reasons

    def rendered(self, where: str, value: Any) -> Any:
        """Return the value with everything rendered that can be, and a mark for the rest."""
        if isinstance(value, Mapping):
            return {key: self.rendered(path(where, key), item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.rendered(path(where, index), item) for index, item in enumerate(value)]
        try:
            return self._leaf(value)
        except Exception as error:  # noqa: BLE001 - whatever a template does wrong, the rest of the plan holds
            self._reasons[where] = _reason(error)
            return KNOWN_AT_RUN_TIME

    def _leaf(self, value: Any) -> Any:
        if reason := result_of(value):
            raise KnownAtRunTime(reason)
        if callable(value):
            return value(context=self._context, jinja_env=self._environment)
        return self._operator.render_template(value, self._context, self._environment)


def _reason(error: Exception) -> str:
    text = redacted(" ".join(str(error).split()))
    if isinstance(error, KnownAtRunTime):
        return text
    if "SUPERVISOR_COMMS" in text:
        return "it asks the Airflow that runs the task"
    return f"{type(error).__name__}: {text}"
