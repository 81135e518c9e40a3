import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "dags_examples"


@pytest.fixture(scope="session")
def training() -> ModuleType:
    pytest.importorskip("sklearn", reason="the examples train with scikit-learn: pip install '.[examples]'")
    spec = importlib.util.spec_from_file_location("train_digits", EXAMPLES / "training" / "train_digits.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
