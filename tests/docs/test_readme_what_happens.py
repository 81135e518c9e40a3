"""Each row of "What happens when …" is what tests show: cells that a real Airflow walks, or other tests."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kill_cells import DEFERRED, ENDS, REFUSED, ROWS, UNHEARD, WALKED, Event, NotWalked, Phase

TESTS = Path(__file__).parents[1]

_WALK = "end_to_end/test_what_happens_to_the_job.py"
_SAME_WORK = "end_to_end/test_the_same_work_again.py"
_DOWN = "end_to_end/test_when_airflow_dies.py"
_DOUBT = "attempts/test_doubtful_answers.py"
_TERMS = "dag_runs/test_spot_terms_dropped.py"
_JOBS = "attempts/test_find_or_create.py"
Cells = tuple[tuple[Phase, Event], ...]


def cells(*phases: Phase, of: tuple[Event, ...]) -> Cells:
    """Return the walked cells of these phases and events."""
    return tuple((phase, event) for phase, event in WALKED if phase in phases and event in of)


@dataclass(frozen=True)
class Shown:
    """
    What shows that a row is true.

    :param cells: of the kill table; the row says of the job what each of them says.
    :param tests: others, as file below `tests/` and name.
    """

    cells: Cells = ()
    tests: tuple[str, ...] = ()


BY: dict[str, Shown] = {
    "the market takes the machine back": Shown(
        tests=(
            "dag_runs/test_operator.py::test_a_revocation_is_resubmitted_within_the_try",
            "dag_runs/test_operator.py::test_attempts_share_a_checkpoint_folder_and_know_that_they_resume",
        )
    ),
    "you clear a task that has not ended": Shown(
        cells(Phase.CREATED, *DEFERRED, Phase.BETWEEN_ATTEMPTS, *UNHEARD, of=(Event.CLEAR,)),
        (
            f"{_WALK}::test_a_job_that_was_taken_over_is_what_the_task_succeeds_with",
            f"{_SAME_WORK}::test_clearing_a_waiting_task_whose_command_was_edited_replaces_the_job_and_says_what_differs",
        ),
    ),
    "you clear a task that waits in its worker (`deferrable=False`)": Shown(cells(Phase.IN_WORKER, of=(Event.CLEAR,))),
    "you clear a failed task": Shown(
        tests=(f"{_SAME_WORK}::test_a_task_that_is_marked_failed_and_then_cleared_gets_a_new_job",)
    ),
    "you clear a successful task": Shown(
        tests=(f"{_SAME_WORK}::test_a_success_that_a_person_clears_is_another_job_in_another_checkpoint_folder",)
    ),
    "you mark the task, or its run, failed or successful": Shown(
        cells(Phase.CREATED, *DEFERRED, Phase.IN_WORKER, of=ENDS)
    ),
    "… while CreateJob's answer is on its way, as between two attempts": Shown(
        cells(Phase.BETWEEN_ATTEMPTS, of=ENDS),
        (
            "attempts/test_kill.py::test_a_job_whose_createjob_is_unanswered_is_found_by_its_tags",
            "attempts/test_kill.py::test_a_job_that_comes_to_be_after_the_request_is_stopped_at_the_next_point",
        ),
    ),
    "… while the task is queued for its resume, or up for retry": Shown(cells(*UNHEARD, of=ENDS)),
    "… with `cancel_on_kill=False`": Shown(cells(Phase.LEFT_ALONE, of=ENDS)),
    "you delete the DAG while the task is deferred": Shown(cells(*DEFERRED, of=(Event.DAG_DELETED,))),
    "… while the task is queued for its resume or up for retry, or has `cancel_on_kill=False`": Shown(
        cells(*UNHEARD, Phase.LEFT_ALONE, of=(Event.DAG_DELETED,))
    ),
    "you pause the DAG": Shown(cells(Phase.RUNNING, of=(Event.DAG_PAUSED,))),
    "you stop the job in the console": Shown(
        tests=("dag_runs/test_operator.py::test_a_job_stopped_in_the_console_is_never_submitted_again",)
    ),
    "the triggerer restarts or dies": Shown(
        cells(*DEFERRED, of=(Event.TRIGGERER_KILLED,)),
        ("triggers/test_spot_job_trigger.py::test_a_deadline_that_passed_while_nobody_looked_still_counts",),
    ),
    "a worker is killed": Shown(
        cells(Phase.CREATED, Phase.BETWEEN_ATTEMPTS, Phase.IN_WORKER, of=(Event.WORKER_KILLED,))
    ),
    "… and no retry is left": Shown(cells(Phase.LAST_TRY, of=(Event.WORKER_KILLED,))),
    "CreateJob's answer is lost": Shown(
        tests=(
            f"{_JOBS}::test_a_lost_answer_and_a_list_that_lags_still_make_one_job",
            f"{_DOUBT}::test_a_no_after_a_lost_answer_leaves_the_intent_and_the_next_try_finds_the_job",
        )
    ),
    "DLC makes a job that does not bid as asked": Shown(
        tests=(f"{_TERMS}::test_a_job_that_was_made_on_other_terms_is_stopped_and_never_retried",)
    ),
    "all of Airflow is down": Shown(
        tests=(
            f"{_DOWN}::test_a_success_while_nobody_was_alive_is_a_success",
            f"{_DOWN}::test_another_end_while_nobody_was_alive_is_paid_from_its_own_budget",
        )
    ),
    "DLC does not answer for 15 minutes": Shown(
        tests=(
            "attempts/test_follow.py::test_errors_that_last_give_up_without_a_claim_about_the_job",
            "attempts/test_out_of_sight.py::test_a_job_that_can_be_seen_is_waited_for_again",
            "attempts/test_out_of_sight.py::test_one_that_cannot_is_stopped_if_no_try_is_left",
        )
    ),
    "two-task form: you end the run between the two tasks, or while a sensor with `cancel_on_kill=False` waits": Shown(
        cells(Phase.BETWEEN_TASKS, Phase.SENSOR, of=ENDS)
    ),
    "… while a sensor with `cancel_on_kill=True` waits": Shown(cells(Phase.SENSOR_CANCELS, of=ENDS)),
    "two-task form: you clear `submit` after a loss": Shown(
        tests=(f"{_JOBS}::test_a_cleared_submit_task_finds_the_successors_that_its_sensor_submitted",)
    ),
    "two-task form: two sensors see one loss at once": Shown(
        tests=("sensors/test_successor.py::test_two_sensors_that_look_at_the_same_moment_keep_the_older_job",)
    ),
    "a run is deleted, and made anew with the same id": Shown(
        tests=(
            f"{_SAME_WORK}::test_a_run_that_is_made_anew_gets_a_new_job_and_never_last_week_s_success",
            f"{_SAME_WORK}::test_a_job_that_a_deleted_run_left_running_is_stopped_first_if_it_can_be_told_to_be_ours",
            f"{_JOBS}::test_under_a_name_that_everybody_has_no_job_of_another_installation_is_touched",
        )
    ),
}


@pytest.fixture
def rows(readme: Any) -> dict[str, str]:
    """What the page says of the job, row by row."""
    table = readme.table("…", "the job")
    return dict(zip(table.column("…"), table.column("the job"), strict=True))


def test_each_row_is_shown_by_something_and_nothing_shown_is_left_out(rows: dict[str, str]) -> None:
    assert list(rows) == list(BY)
    assert all(shown.cells or shown.tests for shown in BY.values())


@pytest.mark.parametrize("row", [row for row, shown in BY.items() if shown.cells])
def test_a_row_says_of_the_job_what_its_cells_say(rows: dict[str, str], row: str) -> None:
    assert {WALKED[cell].job.value for cell in BY[row].cells} == {rows[row]}


def test_each_cell_is_told_in_exactly_one_row() -> None:
    told = Counter(cell for shown in BY.values() for cell in shown.cells)
    assert told == dict.fromkeys(WALKED, 1)


@pytest.mark.parametrize("name", sorted({name for shown in BY.values() for name in shown.tests}))
def test_a_test_that_is_named_exists(name: str) -> None:
    path, function = name.split("::")
    defined = ast.walk(ast.parse((TESTS / path).read_text(encoding="utf-8")))
    assert function in {node.name for node in defined if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_phase_meets_each_event_or_says_why_not() -> None:
    assert set(ROWS) == set(Phase)
    assert {phase: set(row) for phase, row in ROWS.items()} == {phase: set(Event) for phase in Phase}
    assert all(end.why for row in ROWS.values() for end in row.values() if isinstance(end, NotWalked))


def test_what_airflow_refuses_is_told(readme: Any) -> None:
    assert {event for _, event in REFUSED} == {Event.DAG_DELETED, Event.RUN_DELETED}
    assert "Airflow does not delete a DAG with a running task, nor a running run" in readme.text
