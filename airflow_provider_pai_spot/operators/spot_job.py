"""SubmitSpotJobOperator: run training on preemptible capacity of PAI DLC, to its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowTaskTimeout, TaskDeferralError, TaskDeferralTimeout

from airflow_provider_pai_spot import settings as provider_settings
from airflow_provider_pai_spot.dlc.duration import as_timedelta
from airflow_provider_pai_spot.dlc.job_request import InvalidJobRequest, check_static_arguments
from airflow_provider_pai_spot.exceptions import SpotSubmissionRefused
from airflow_provider_pai_spot.links.pai_console import PaiJobLink
from airflow_provider_pai_spot.operators.options import mask_request_secrets
from airflow_provider_pai_spot.recovery import SpotRecovery
from airflow_provider_pai_spot.recovery.checks import check_against

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context, RetryPolicy

    from airflow_provider_pai_spot.attempts.identity import TaskIdentity
    from airflow_provider_pai_spot.attempts.moment import TryMoment
    from airflow_provider_pai_spot.attempts.task_jobs import Wanted
    from airflow_provider_pai_spot.dlc.job_request import JobRequest
    from airflow_provider_pai_spot.hooks.pai_dlc import PaiDlcHook
    from airflow_provider_pai_spot.operators.flow import OperatorFlow

JOB_ARGUMENTS = (
    "image",
    "user_command",
    "ecs_spec",
    "pod_count",
    "job_type",
    "spot_discount_limit",
    "spot_price_limit",
    "job_specs",
    "envs",
    "data_sources",
    "code_source",
    "user_vpc",
    "settings",
    "priority",
    "checkpoint_uri",
    "resource_type",
    "display_name",
    "workspace_id",
    "job_overrides",
)
"""The arguments that describe the job; all are templated and coerced after rendering."""


_FORGETS = (
    "[state_store] clear_on_success is on: nothing will be known of this task's jobs once it has succeeded. A clear "
    "then gives the old success again or, once the run is over, begins anew in the checkpoint folder of the finished "
    "work, with PAI_SPOT_RESUME=0. Switch it off."
)
_DURATIONS = ("poll_interval", "log_poll_interval", "pending_timeout", "run_timeout", "total_timeout")


class SubmitSpotJobOperator(BaseOperator):
    """
    Run one job on spot capacity of PAI DLC: submit, wait for capacity, run, and submit again what the market took.

    Arguments that describe the job carry the names of DLC's CreateJob in snake_case and are templated; nested values
    are in DLC's own keys. Give exactly one of `spot_discount_limit` and `spot_price_limit`, or `job_specs`.

    XComs: `return_value` and `job_id` (str), `outcome` (a `JobOutcome` as dict), `attempts` (list of dicts).

    :param image: container image of the role.
    :param user_command: shell command that every pod runs. `${#array[@]}` opens a Jinja comment: put such a command
        between `{% raw %}` and `{% endraw %}`.
    :param ecs_spec: instance type, such as `ecs.gn7i-c8g1.2xlarge`, or `ml.gu8ef.8xlarge-gu100` for Lingjun.
    :param pod_count: pods of the role, 1 if not given.
    :param job_type: DLC's framework, `PyTorchJob` if not given.
    :param spot_discount_limit: highest price to pay as a fraction of list price, 0.1 to 0.9 in steps of 0.1.
    :param spot_price_limit: highest price to pay in CNY per minute; not on Lingjun, which takes discounts only.
    :param job_specs: several roles in DLC's keys, instead of the role arguments above; each carries its own SpotSpec.
    :param envs: environment variables, text to text.
    :param data_sources: mounts in DLC's keys.
    :param code_source: code configuration in DLC's keys.
    :param user_vpc: network in DLC's keys; required on Lingjun.
    :param settings: `Settings` of CreateJob; AIMaster is switched on here.
    :param priority: 1 to 9, for quota resources.
    :param checkpoint_uri: folder (`oss://…`) that is mounted read-write for checkpoints; each task instance has a
        subfolder, `$PAI_SPOT_CHECKPOINT_DIR`, which stays the same over all attempts.
    :param resource_type: `ECS` or `Lingjun`; inferred from `ecs_spec` (`ml.` is Lingjun, an assumption) if not given.
    :param display_name: the job's name; `<dag>-<task>-<key>`, 63 characters at most, if not given.
    :param region_id: overrides the connection's.
    :param workspace_id: overrides the connection's.
    :param job_overrides: any top-level keys of CreateJob, merged last.
    :param pai_dlc_conn_id: connection of type `pai_dlc`.
    :param poll_interval: seconds between two looks at the job.
    :param log_poll_interval: copy the pods' logs into the task log while the job runs, at this interval; timedelta or
        seconds. None: only the last lines of pods that failed, once the job is over.
    :param deferrable: wait in the triggerer, without a worker.
    :param wait_for_completion: False returns the job id at once, for a `SpotJobSensor` downstream.
    :param cancel_on_kill: stop the job when the task is ended in Airflow (marked failed or success, run ended).
    :param reattach: take over a live job of an earlier try; False stops it first.
    :param recovery: what to do about a loss: a `SpotRecovery` or a dict of its fields.
    :param pending_timeout: limit from a job's creation to Running; timedelta or seconds, None for no limit.
    :param run_timeout: limit for a job's time in Running; timedelta or seconds, None for no limit.
    :param total_timeout: limit for all attempts of one try together, counted from the start of the try.
    :raises SpotSubmissionRefused: the arguments cannot work, or DLC refuses them. Never retried.
    :raises SpotCapacityRevoked: more losses than `recovery.max_revocations` within one try.
    :raises SpotJobFailed: the job failed for another reason.
    :raises SpotJobStopped: somebody stopped the job outside Airflow. Never retried.
    :raises SpotTimeout: a limit passed; the job was stopped first.
    """

    template_fields: Sequence[str] = (*JOB_ARGUMENTS, "region_id", "pai_dlc_conn_id")
    template_ext: Sequence[str] = ()
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "user_command": "bash",
        "job_specs": "json",
        "job_overrides": "json",
        "envs": "json",
        "settings": "json",
    }
    operator_extra_links = (PaiJobLink(),)
    ui_color = "#e8f3ec"
    default_retry_policy: ClassVar[RetryPolicy | None] = None
    """For subclasses, where no `retry_policy` is given: Airflow ignores a class attribute of that name."""

    def __init__(
        self,
        *,
        image: str | None = None,
        user_command: str | None = None,
        ecs_spec: str | None = None,
        pod_count: int | str | None = None,
        job_type: str | None = None,
        spot_discount_limit: float | str | None = None,
        spot_price_limit: float | str | None = None,
        job_specs: Sequence[Mapping[str, Any]] | str | None = None,
        envs: Mapping[str, str] | str | None = None,
        data_sources: Sequence[Mapping[str, Any]] | str | None = None,
        code_source: Mapping[str, Any] | str | None = None,
        user_vpc: Mapping[str, Any] | str | None = None,
        settings: Mapping[str, Any] | str | None = None,
        priority: int | str | None = None,
        checkpoint_uri: str | None = None,
        resource_type: str | None = None,
        display_name: str | None = None,
        region_id: str | None = None,
        workspace_id: str | None = None,
        job_overrides: Mapping[str, Any] | str | None = None,
        pai_dlc_conn_id: str = provider_settings.DEFAULT_CONN_ID,
        poll_interval: timedelta | float = 30,
        log_poll_interval: timedelta | float | None = None,
        deferrable: bool = True,
        wait_for_completion: bool = True,
        cancel_on_kill: bool = True,
        reattach: bool = True,
        recovery: SpotRecovery | Mapping[str, Any] | None = None,
        pending_timeout: timedelta | float | None = None,
        run_timeout: timedelta | float | None = None,
        total_timeout: timedelta | float = timedelta(days=7),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if self.retry_policy is None:  # neither given nor among default_args; a mapped task passes an explicit None
            self.retry_policy = self.default_retry_policy
        self.image = image
        self.user_command = user_command
        self.ecs_spec = ecs_spec
        self.pod_count = pod_count
        self.job_type = job_type
        self.spot_discount_limit = spot_discount_limit
        self.spot_price_limit = spot_price_limit
        self.job_specs = job_specs
        self.envs = envs
        self.data_sources = data_sources
        self.code_source = code_source
        self.user_vpc = user_vpc
        self.settings = settings
        self.priority = priority
        self.checkpoint_uri = checkpoint_uri
        self.resource_type = resource_type
        self.display_name = display_name
        self.region_id = region_id
        self.workspace_id = workspace_id
        self.job_overrides = job_overrides
        self.pai_dlc_conn_id = pai_dlc_conn_id
        self.poll_interval = as_timedelta("poll_interval", poll_interval)
        self.log_poll_interval = as_timedelta("log_poll_interval", log_poll_interval)
        self.deferrable = deferrable
        self.wait_for_completion = wait_for_completion
        self.cancel_on_kill = cancel_on_kill
        self.reattach = reattach
        self.pending_timeout = as_timedelta("pending_timeout", pending_timeout)
        self.run_timeout = as_timedelta("run_timeout", run_timeout)
        self.total_timeout = as_timedelta("total_timeout", total_timeout)
        try:
            self.recovery = SpotRecovery.coerce(recovery)
            self._check_pending_timeout()
            grid = provider_settings.bid_grid()
            request = check_static_arguments(self.job_arguments(), bid_grid=grid)
            if request is not None:
                check_against(self.recovery, request, grid)
        except InvalidJobRequest as error:
            raise SpotSubmissionRefused(f"{self.task_id}: {error}") from None
        self._flow: OperatorFlow | None = None

    # --- what Airflow calls; the flow itself loads only where a job is dealt with, not where a DAG is parsed ---

    def execute(self, context: Context) -> str | None:
        """Take over what an earlier try left, or submit; then wait."""
        flow = self._begin(context)
        if flow.jobs.ledger.is_blank and _forgets_on_success():
            self.log.warning(_FORGETS)
        try:
            return flow.begin()
        except AirflowTaskTimeout:
            flow.stop_at_execution_timeout()
            raise

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> str | None:
        """Act on the trigger's event: return, submit the next attempt, or raise."""
        flow = self._begin(context)
        try:
            return flow.resume(event)
        except AirflowTaskTimeout:
            flow.stop_at_execution_timeout()
            raise

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Let no job go on unwatched when Airflow ends the deferral itself (timeout, or a trigger that failed)."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout:
            return self._begin(context).end_after_deferral_timeout()
        except TaskDeferralError as error:
            return self._begin(context).end_after_failed_trigger(error)

    def on_kill(self) -> None:
        """Stop the job if Airflow has given the task up; runs in a signal handler."""
        if self._flow is not None:
            self._flow.kill.pull()

    def _begin(self, context: Context) -> OperatorFlow:
        from airflow_provider_pai_spot.operators.flow import OperatorFlow

        for name in _DURATIONS:  # an attribute may have been set to seconds after the task was made
            setattr(self, name, as_timedelta(name, getattr(self, name)))
        self._flow = OperatorFlow(self, context)
        return self._flow

    # --- what the task asks for ---

    def _check_pending_timeout(self) -> None:
        answer = self.recovery.on_pending_timeout
        if answer != "fail" and (self.pending_timeout is None or not self.wait_for_completion):
            raise InvalidJobRequest(
                "recovery.on_pending_timeout", answer, "it needs pending_timeout, and a task that waits for its job."
            )

    def wanted(self, identity: TaskIdentity, hook: PaiDlcHook, moment: TryMoment) -> Wanted:
        """
        Return what this task asks for; a sensor asks its submit task for the same.

        Rendered arguments that cannot work are its `refusal`.
        """
        from airflow_provider_pai_spot.operators.wanted import wanted_by

        return wanted_by(self, identity, hook, moment)

    def request(self, identity: TaskIdentity, hook: PaiDlcHook) -> JobRequest:
        """
        Return the checked request, with the defaults that the connection and the task's own name supply.

        :raises SpotSubmissionRefused: the rendered arguments cannot work.
        """
        from airflow_provider_pai_spot.operators.wanted import request_of

        return request_of(self, identity, hook)

    def job_arguments(self) -> dict[str, Any]:
        """Return the arguments that describe the job, by name."""
        return {name: getattr(self, name) for name in JOB_ARGUMENTS}

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        """Render one field at a time, so that a template error can name its argument; then mask secrets."""
        import jinja2

        for name in template_fields:
            try:
                super()._do_render_template_fields(parent, (name,), context, jinja_env, seen_oids)
            except jinja2.TemplateError as error:
                raise SpotSubmissionRefused(
                    f"{self.task_id}: {name} is not a valid Jinja template: {error}. Text that only looks like one "
                    "(${#array[@]}, {{, {%) goes between {% raw %} and {% endraw %}."
                ) from None
        mask_request_secrets(self.job_specs, self.job_overrides)


def _forgets_on_success() -> bool:
    """Whether Airflow empties a task's state store when it succeeds, as far as this process's configuration tells."""
    return bool(conf.getboolean("state_store", "clear_on_success", fallback=False))
