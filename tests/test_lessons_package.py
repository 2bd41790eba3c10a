"""podium-lessons, installed as a stranger's package is; and the product where nobody has installed it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.medium

ROOT = Path(__file__).parents[1]
FIRST_ANSWER = "2025-02-10"
COMMAND = "Install it with: pip install ./lessons"
LOOK = """
import asyncio, json
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.baselines.oracle import OraclePolicy
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.kinds import KINDS, kind_of
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from studio.orchestrators.choices import FIRST_QUERY
from studio.pages.compare.commands import CompareCommands
from studio.prepare import prepare_store
from studio.runtime import Runtime
from studio.pages.train.commands import _choose_first, list_preset_documents
from trainer.tasks import SUITES, find_task
from trainer.tasks.registry import PROVIDERS, open_source

async def solve(task):
    async with live_pool(task.pool or starter_pool()) as pool:
        episode = await run_episode(EpisodeSpec(task.query), OraclePolicy(task.oracle_turn), pool)
    return task.verifier.accepts(episode.answer)

def name_problem(kind):
    try:
        return kind_of(WorkerSpec(name="w", kind=kind, description="d")).distribution
    except InvalidPool as error:
        return str(error)
"""
WITHOUT = """
presets = list_preset_documents()
runtime = Runtime(prepare_store(None))
compare = CompareCommands(runtime).commands["open"]({}).fields
runtime.close()
print(json.dumps({
    "compare": [compare["query"], compare["families"], compare["suites"]],
    "right": asyncio.run(solve(find_task(FIRST_QUERY[0], FIRST_QUERY[1], "test", FIRST_QUERY[2]))),
    "suites": list(SUITES), "packages": [name for name in (*KINDS, *PROVIDERS) if KINDS.package_of(name)],
    "first": _choose_first(presets), "needs": {preset.name: preset.needs for preset in presets},
    "kind": name_problem("world"),
}))
"""
WITH = """
sources = ("worlds:held_out", "projects", "everyday", "casual", "ledger,atlas,forge,itinerary", "workshop,dossier")
tasks = {source: open_source(source).tasks("test", 4) for source in sources}
tasks = {source: [task for task in drawn if task.oracle_turn] for source, drawn in tasks.items()}
print(json.dumps({
    "right": {source: [asyncio.run(solve(task)) for task in drawn] for source, drawn in tasks.items()},
    "suites": list(SUITES), "problems": [*KINDS.problems.values(), *PROVIDERS.problems.values()],
    "needs": [preset.needs for preset in list_preset_documents()], "kind": name_problem("world"),
    "package": PROVIDERS.package_of("worlds"),
}))
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the product and all that it needs, and without podium-lessons."""
    folder = tmp_path_factory.mktemp("without_lessons")
    (layer := folder / "layer").mkdir()
    for packages in [Path(path) for path in sys.path if path.endswith("site-packages")]:
        for path in packages.iterdir():
            if path.suffix != ".pth" and "podium_lessons" not in path.name and not (layer / path.name).exists():
                (layer / path.name).symlink_to(path)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True, timeout=120)
    own = next((folder / "venv" / "lib").glob("python*")) / "site-packages"
    (own / "product.pth").write_text(f"{ROOT}\n{layer}\n")
    return folder / "venv" / "bin" / "python"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with podium-lessons, as pip builds and installs it."""
    folder = tmp_path_factory.mktemp("lessons")
    ignored = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "lessons", folder / "lessons", ignore=ignored)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(folder / "lessons")], check=True, timeout=300)
    return folder / "site"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder. What is built from files that ship lies in PODIUM_BUILT, for all tests."""
    return tmp_path_factory.mktemp("home")


def run(python: Path, *arguments: str, home: Path, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PODIUM_HOME": str(home), "COLUMNS": "300"} | ({"PYTHONPATH": str(site)} if site else {})
    return subprocess.run(
        [str(python), *arguments], cwd=home, env=environment, capture_output=True, text=True, timeout=300
    )


def look(python: Path, code: str, home: Path, site: Path | None = None) -> dict[str, object]:
    done = run(python, "-c", LOOK + code, home=home, site=site)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_product_works_without_the_lessons_and_says_what_needs_them(product, home):
    view = look(product, WITHOUT, home)
    assert view["right"] is True and view["suites"] == [] and view["packages"] == []
    needless = sorted(name for name, package in view["needs"].items() if not package)
    assert needless == ["dpo-own-episodes", "own-agents", "own-pool"] and set(view["needs"].values()) == {
        "",
        "podium-lessons",
    }
    assert view["first"] == "own-pool", "the page opens with a preset that can start"
    query, families, suites = view["compare"]
    assert query.startswith("A flight leaves") and families == ["examples"] and suites == []
    assert view["kind"].startswith("kind: the kind 'world' comes with the package podium-lessons")
    assert COMMAND in view["kind"]


def test_the_commands_work_without_the_lessons(product, home):
    query = (
        "A flight leaves at 2025-02-06 16:45 local time from UIQ and flies the great circle at 660 km/h to TYN. After "
        "640 minutes there it flies the great circle at 900 km/h to TVI. Which is the next business day after its last "
        "local landing date in the country of that landing? Answer as YYYY-MM-DD."
    )
    done = run(product, "-m", "studio", "run", query, "--orchestrator", "oracle", home=home)
    assert done.returncode == 0 and FIRST_ANSWER in done.stdout, done.stderr
    done = run(product, "-m", "trainer", "train", "cpu-first-steps", home=home)
    output = " ".join((done.stdout + done.stderr).split())
    assert done.returncode != 0 and "Traceback" not in output and "Ctrl-C stops it" not in output, "no job is queued"
    assert "the task source 'ledger' comes with the package podium-lessons, which is not installed" in output
    assert COMMAND in output


def test_the_lessons_install_as_a_strangers_package_does(product, site, home):
    view = look(product, WITH, home, site)
    assert view["problems"] == [] and set(view["needs"]) == {""}
    assert view["suites"] == ["atlas", "dossier", "forge", "itinerary", "ledger", "workshop"]
    assert view["kind"] == "podium-lessons" and view["package"].startswith("podium-lessons ")
    assert all(all(right) and right for right in view["right"].values()), view["right"]
