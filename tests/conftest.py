"""One data folder for the whole test session, never the user's own."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import settings

settings.register_profile("podium", deadline=None)  # a slow machine is no failure
settings.load_profile("podium")

# Set before any test module imports the product, so that nothing can touch a person's data folder.
_FOLDER = tempfile.TemporaryDirectory(prefix="podium-tests-")
os.environ["PODIUM_HOME"] = _FOLDER.name
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.pop("PODIUM_DATABASE_URL", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first: the browser's last, and before them what starts processes or loads a model."""
    slow = (
        "browser/",
        "test_bench",
        "test_local_model",
        "test_commands",
        "test_user_commands",
        "test_serve",
        "test_sandbox",
        "test_evaluate",
        "test_fit",
        "test_rollouts",
        "test_training",
        "test_durability",
        "test_vllm",
    )
    items.sort(key=lambda item: sum(name in item.nodeid for name in slow) + 2 * ("browser/" in item.nodeid))
