"""
Save at the last moment: when SIGTERM comes the program finishes its step, writes a checkpoint and leaves.

Alibaba does not say whether a spot machine that is taken back sends SIGTERM first, nor how long it then waits, nor
whether `TerminationGracePeriodSeconds` counts there. So this spares steps where there is a grace; the checkpoint every
ten steps is for where there is none. The emulator sends SIGTERM and waits for as long as the setting says.
"""

from datetime import timedelta

import pendulum
from airflow.sdk import DAG

from airflow_provider_pai_spot.operators.spot_job import SubmitSpotJobOperator

EXPECTED_STATE = {"train": "success"}
EXPECTED_LOG = {"train": ("resubmitting: revocation 1 of 5", "succeeded: dlc")}
STEPS = 40

# `exec`: the signal goes to the container's first process, which would otherwise be the shell.
USER_COMMAND = f"""
exec python - <<'END_OF_PROGRAM'
import json, os, pathlib, signal, sys, time

checkpoint = pathlib.Path(os.environ["PAI_SPOT_CHECKPOINT_DIR"], "step")
checkpoint.parent.mkdir(parents=True, exist_ok=True)
told_to_leave = []
signal.signal(signal.SIGTERM, lambda *_: told_to_leave.append(True))

def save(step):
    unfinished = checkpoint.with_suffix(".part")
    unfinished.write_text(str(step))
    unfinished.replace(checkpoint)

step = int(checkpoint.read_text()) if checkpoint.exists() else 0
while step < {STEPS} and not told_to_leave:
    time.sleep(0.5)
    step += 1
    if step % 10 == 0 or step == {STEPS} or told_to_leave:
        save(step)
    print("PAI_SPOT_PROGRESS", json.dumps({{"step": step, "of": {STEPS}}}), flush=True)
sys.exit(143 if told_to_leave else 0)
END_OF_PROGRAM
"""

with DAG(
    "checkpoint_on_sigterm",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="Asia/Shanghai"),
    catchup=False,
):
    SubmitSpotJobOperator(
        task_id="train",
        image="your-registry-vpc.cn-hangzhou.cr.aliyuncs.com/team/training:1",
        user_command=USER_COMMAND,
        ecs_spec="ecs.c7.large",
        spot_discount_limit=0.5,
        checkpoint_uri="oss://your-bucket.oss-cn-hangzhou-internal.aliyuncs.com/sigterm/",
        settings={"TerminationGracePeriodSeconds": 60},
        poll_interval=timedelta(seconds=10),
    )
