import io
from dataclasses import replace

from rich.console import Console

from airflow_provider_pai_spot.cli.demo.live_view import view_on
from airflow_provider_pai_spot.cli.demo.story import Attempt, Progress, Snapshot

RUNNING = Attempt(
    job_id="dlc1",
    status="Running",
    bid=0.4,
    instance_type="ecs.g7.xlarge",
    progress=(Progress(step=3, of=120, checkpoint=0, accuracy=0.5),),
)
NOW = Snapshot(
    run_id="manual__1",
    seconds=5,
    run_state="running",
    task_state="deferred",
    try_number=1,
    market_price=0.3,
    attempts=(RUNNING,),
)
EVICTED = replace(NOW, seconds=9, attempts=(replace(RUNNING, status="Failed", evicted=True),))


def shown(*, terminal: bool) -> str:
    output = io.StringIO()
    with view_on(Console(file=output, force_terminal=terminal, width=100)) as view:
        view.say("Triggered")
        for snapshot in (NOW, NOW, EVICTED):
            view.show(snapshot)
    return output.getvalue()


def test_without_a_terminal_each_change_is_one_line() -> None:
    assert shown(terminal=False).splitlines() == [
        "Triggered",
        "    5 s  market price 0.3 of list price",
        "    5 s  Airflow task: deferred, try 1",
        "    5 s  attempt 0: dlc1 bids 0.4 of list price",
        "    5 s  attempt 0: dlc1 starts at step 3",
        "    5 s  attempt 0: dlc1 Running",
        "    9 s  attempt 0: dlc1 Failed, evicted",
    ]


def test_on_a_terminal_one_picture_replaces_the_other() -> None:
    *_, last = shown(terminal=True).split("task deferred")
    for piece in ("Failed, evicted", "3/120", "Triggered"):
        assert piece in last
