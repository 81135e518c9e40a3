"""ListJobs: which jobs a query means."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_pai_spot.emulator import DlcEmulator


def test_a_page_has_ten_jobs_unless_asked_otherwise(sdk: Any) -> None:
    made = [sdk.create() for _ in range(12)]
    answer = sdk.client.list_jobs(sdk.models.ListJobsRequest()).body
    assert (len(answer.jobs), answer.total_count) == (10, 12)
    assert set(sdk.list(page_size=100)) == set(made)


def test_pages_follow_each_other_newest_first(sdk: Any, emulator: DlcEmulator) -> None:
    made = []
    for _ in range(5):
        made.append(sdk.create())
        emulator.control.advance(1)
    pages = [sdk.list(page_size=2, page_number=number) for number in (1, 2, 3)]
    assert [job for page in pages for job in page] == made[::-1]


@pytest.mark.parametrize("size", [0, 101])
def test_a_page_size_out_of_range_is_refused(sdk: Any, size: Any) -> None:
    with pytest.raises(Exception, match="PageSize"):
        sdk.list(page_size=size)


def test_jobs_of_others_are_hidden_unless_show_own_is_false(sdk: Any, sdk_for: Any, emulator: DlcEmulator) -> None:
    other = sdk_for(emulator, emulator.control.add_identity())
    job_id = other.create()
    assert sdk.list() == []
    assert other.list() == [job_id]
    assert sdk.list(show_own=False) == [job_id]


def test_jobs_of_every_workspace_are_shown_unless_one_is_asked_for(sdk: Any, body: Any, emulator: DlcEmulator) -> None:
    here, there = (sdk.create(body(WorkspaceId=workspace)) for workspace in ("1", "7"))
    assert set(sdk.list()) == {here, there}
    assert sdk.list(workspace_id="7") == [there]
    emulator.control.switch("list_without_workspace", "the default workspace")
    assert sdk.list() == [here]
    assert set(sdk.list(from_all_workspaces=True)) == {here, there}


@pytest.mark.parametrize("also", [{"show_own": False}, {"workspace_id": "7"}])
def test_from_all_workspaces_goes_with_ones_own_jobs_only(sdk: Any, also: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="FromAllWorkspaces"):
        sdk.list(from_all_workspaces=True, **also)


def test_data_sources_are_listed_without_their_uri(sdk: Any, body: Any) -> None:
    job_id = sdk.create(body(DataSources=[{"Uri": "oss://bucket/", "MountPath": "/mnt"}]))
    [listed] = sdk.client.list_jobs(sdk.models.ListJobsRequest()).body.jobs
    told = sdk.client.get_job(job_id, sdk.models.GetJobRequest()).body
    assert [source.mount_path for source in listed.data_sources] == ["/mnt"]
    assert "Uri" not in listed.data_sources[0].to_map()
    assert told.data_sources[0].uri == "oss://bucket/"


def test_jobs_older_than_a_week_need_a_start_time(sdk: Any, emulator: DlcEmulator) -> None:
    job_id = sdk.create()
    emulator.control.advance(8 * 86_400)
    assert sdk.list() == []
    assert sdk.list(start_time="2020-01-01T00:00:00Z") == [job_id]


def test_tags_of_create_job_are_found_again(sdk: Any, body: Any) -> None:
    tags = {"airflow-ti": "a b&c/ü", "airflow-attempt": "0"}
    job_id = sdk.create(body(Settings={"Tags": tags}))
    sdk.create(body(Settings={"Tags": {"airflow-ti": "other"}}))
    assert sdk.list(tags=tags) == [job_id]
    assert sdk.list(tags={"airflow-ti": "a b&c/ü", "airflow-attempt": "1"}) == []


def test_ids_are_looked_up_and_unknown_ones_are_left_out(sdk: Any) -> None:
    first, second, _ = sdk.create(), sdk.create(), sdk.create()
    assert set(sdk.list(job_ids=f"{first},dlc0000000000000,{second}")) == {first, second}


def test_an_id_wins_over_a_list_of_ids(sdk: Any) -> None:
    first, second = sdk.create(), sdk.create()
    assert sdk.list(job_id=first, job_ids=second) == [first]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"display_name": "TRAIN"}, {"spot", "paid"}),
        ({"display_name": "train-s"}, {"spot"}),
        ({"payment_type": "Spot"}, {"spot"}),
        ({"payment_type": "PostPaid"}, {"paid"}),
        ({"status": "Succeeded,Failed"}, {"spot", "paid"}),
        ({"status": "Running"}, set()),
        ({"workspace_id": "7"}, {"paid"}),
        ({"job_type": "TFJob"}, {"paid"}),
    ],
    ids=lambda part: str(sorted(part) if isinstance(part, set) else part),
)
def test_each_filter_finds_what_it_names(sdk: Any, emulator: DlcEmulator, body: Any, query: Any, found: Any) -> None:
    jobs = {
        sdk.create(body(DisplayName="train-spot")): "spot",
        sdk.create(body(DisplayName="train-paid", bid=None, WorkspaceId="7", JobType="TFJob")): "paid",
    }
    emulator.control.advance(60)
    assert {jobs[job_id] for job_id in sdk.list(**query)} == found


def test_a_filter_the_emulator_does_not_know_is_refused_rather_than_ignored(sdk: Any) -> None:
    with pytest.raises(Exception, match="does not know Username"):
        sdk.list(username="somebody")


def test_created_jobs_can_show_late(sdk_for: Any) -> None:
    with DlcEmulator(clock="manual", behaviours={"list_lag_seconds": 30}) as emulator:
        sdk = sdk_for(emulator)
        job_id = sdk.create()
        assert sdk.status(job_id) == "Creating"
        assert sdk.list() == []
        emulator.control.advance(30)
        assert sdk.list() == [job_id]


@pytest.mark.parametrize("shown", [True, False])
def test_whether_items_have_settings_can_be_switched(sdk: Any, emulator: DlcEmulator, body: Any, shown: Any) -> None:
    emulator.control.switch("settings_in_list", shown)
    sdk.create(body(Settings={"Tags": {"a": "b"}}))
    (job,) = sdk.client.list_jobs(sdk.models.ListJobsRequest()).body.jobs
    assert (job.settings is not None) is shown


def test_times_and_order(sdk: Any, emulator: DlcEmulator) -> None:
    first = sdk.create()
    emulator.control.advance(60)
    between = emulator.control.job(first)["GmtSuccessedTime"]
    second = sdk.create()
    assert sdk.list(end_time=between) == [first]
    assert sdk.list(order="asc", sort_by="GmtCreateTime") == [first, second]
