import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PAI_SPOT = "import sys; from airflow_provider_pai_spot.cli.main import main; sys.exit(main())"
DEMO = [sys.executable, "-c", PAI_SPOT, "demo", "--exit"]
PATIENCE_SECONDS = 90


def inhabitants(folder: Path) -> list[int]:
    """Processes that work in this folder or below: everything the demo starts does."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "It did not happen."
        time.sleep(0.2)


def test_training_goes_on_at_its_last_checkpoint_after_the_market_took_the_machine(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the demo trains with scikit-learn: pip install '.[examples]'")
    report = tmp_path / "out.json"
    demo = subprocess.run([*DEMO, "--json", str(report)], capture_output=True, text=True, check=False)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    said = json.loads(report.read_text())
    first, second = said["attempts"]
    assert (first["verdict"], second["verdict"]) == ("revoked", "succeeded")
    assert 0 < first["last_checkpoint_step"] == second["first_step"]
    assert first["bid"] < second["bid"]
    assert (said["dag_run_state"], said["tries"], said["resumed"]) == ("success", {"train": 1}, True)
    assert said["jobs_left_running"] == 0
    assert said["steps_lost"] == first["last_step"] - second["first_step"]


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_demo_that_is_ended_early_leaves_no_process(number: signal.Signals, tmp_path: Path) -> None:
    demo = subprocess.Popen([*DEMO, "--home", str(tmp_path)], stdout=subprocess.PIPE, text=True)
    eventually(lambda: bool(inhabitants(tmp_path)) or demo.poll() is not None)
    demo.send_signal(number)
    printed = demo.communicate()[0]
    assert "Starting" in printed
    eventually(lambda: inhabitants(tmp_path) == [])
