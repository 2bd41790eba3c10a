"""One data folder for the whole test session, never the user's own; and the gears that tests belong to.

`slow` is marked at the tests: kills, soaks, real training, model servers. `medium` is marked at tests that start
processes, load torch or take more than a second or two. `browser` and `quick` follow from where a test stands:
`quick` is what is neither in the browser's folder, nor marked, nor asks for a fixture that loads torch or Gradio.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("podium", deadline=None)  # a slow machine is no failure
settings.register_profile("podium-quick", deadline=None, max_examples=8)
settings.load_profile("podium")

# Set before any test module imports the product, so that nothing can touch a person's data folder.
_FOLDER = tempfile.TemporaryDirectory(prefix="podium-tests-")
os.environ["PODIUM_HOME"] = _FOLDER.name
# All data folders of a run share what is built from files that ship: the database, the index, the model.
os.environ.setdefault("PODIUM_BUILT", str(Path(_FOLDER.name) / "built"))
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.pop("PODIUM_DATABASE_URL", None)
if "PYTEST_XDIST_WORKER" in os.environ:  # as many workers as cores: torch's threads would wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")

HOLDS_SLOW = re.compile(r"mark\.slow|\bWINDOWS\b")  # WINDOWS: of tests/browser/conftest.py, two of them slow
MARKED_MODULE = re.compile(r"^pytestmark = .*mark\.(medium|slow)", re.MULTILINE)
# They load torch or Gradio.
MEDIUM_FIXTURES = {"client", "tiny_base"}
# They take minutes.
LONGEST = {"test_text_growth.py", "test_form_growth.py", "test_run_recipe.py", "test_ranks.py", "test_cluster_jobs.py"}
# They take seconds to import, in every worker process: tests import them in the function that needs them.
TOO_HEAVY_TO_COLLECT = ("torch", "transformers", "trl", "gradio")


def pytest_configure(config: pytest.Config) -> None:
    """For `make quick`, try few of the examples of every property that names no number of its own."""
    if config.option.markexpr == "quick":
        settings.load_profile("podium-quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave modules out that hold nothing of the gear: importing all of them takes every worker half a minute."""
    gear = config.option.markexpr
    if gear not in ("quick", "slow") or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    if gear == "quick":
        return MARKED_MODULE.search(text) is not None or None
    return HOLDS_SLOW.search(text) is None or None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test with the gear that follows from its place, so that `-m` can select it."""
    if any(item.iter_markers("slow")) and not HOLDS_SLOW.search(item.path.read_text(encoding="utf-8")):
        raise pytest.UsageError(
            f"{item.path} holds slow tests and `make test-all` leaves it out: write mark.slow in it"
        )
    if "tests/browser/" in item.nodeid:
        item.add_marker("browser")
    elif not MEDIUM_FIXTURES.intersection(getattr(item, "fixturenames", ())) and not (
        any(item.iter_markers("medium")) or any(item.iter_markers("slow"))
    ):
        item.add_marker("quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser's tests first and together, so that they share one studio, then what takes long, the longest first:
    no worker is left with a long file at the end."""
    long = {item.path for item in items if "quick" not in item.keywords}

    def choose_place(item: pytest.Item) -> int:
        if "browser" in item.keywords:
            return 0
        return 1 if item.path.name in LONGEST else 2 if item.path in long else 3

    items.sort(key=choose_place)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse to run when collecting the tests alone imported what takes seconds to import."""
    heavy = [name for name in TOO_HEAVY_TO_COLLECT if name in sys.modules]
    if heavy:
        raise pytest.UsageError(f"collecting the tests imported {', '.join(heavy)}: import it inside a function")
