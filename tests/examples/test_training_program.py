import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="the examples train with scikit-learn: pip install '.[examples]'")


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    printed = capsys.readouterr().out.splitlines()
    return [json.loads(line.removeprefix("PAI_SPOT_PROGRESS ")) for line in printed]


def train(training: ModuleType, folder: Path, *arguments: str) -> dict[str, Any]:
    model: dict[str, Any] = training.train(training.parse(list(arguments)), folder)
    return model


def test_it_learns(training: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(training, tmp_path, "--steps", "120")
    steps = lines(capsys)
    assert steps[0]["accuracy"] < 0.2
    assert steps[-1]["accuracy"] > 0.9


def test_killed_and_resumed_it_ends_with_the_very_same_weights(
    training: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = train(training, tmp_path / "a", "--steps", "30")
    steps_made = 0

    def lose_the_machine(_seconds: float) -> None:
        nonlocal steps_made
        steps_made += 1
        if steps_made == 17:
            raise KeyboardInterrupt

    monkeypatch.setattr(training.time, "sleep", lose_the_machine)
    with pytest.raises(KeyboardInterrupt):
        train(training, tmp_path / "b", "--steps", "30")
    resumed = train(training, tmp_path / "b", "--steps", "30")
    assert all(np.array_equal(undisturbed[name], resumed[name]) for name in undisturbed)


def test_the_first_line_after_resuming_names_the_last_checkpoint(
    training: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(training, tmp_path, "--steps", "20")
    capsys.readouterr()
    train(training, tmp_path, "--steps", "23")
    assert [(line["step"], line["checkpoint"]) for line in lines(capsys)] == [(20, 20), (21, 20), (22, 20), (23, 23)]


def test_a_checkpoint_half_written_is_not_read(training: ModuleType, tmp_path: Path) -> None:
    train(training, tmp_path, "--steps", "10")
    (tmp_path / "digits.npz.part").write_bytes(b"half of a")
    assert training.restore(tmp_path, inputs=64)[1] == 10


def test_jinja_leaves_the_program_alone(training: ModuleType) -> None:
    assert "{% endraw" not in Path(str(training.__file__)).read_text()
