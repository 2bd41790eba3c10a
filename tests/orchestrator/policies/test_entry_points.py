"""Policies of other packages: what a wheel with an entry point in `podium.policies` adds, and what a bad one breaks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.medium

ROOT = Path(__file__).parents[3]
TOY = """
from orchestrator.policies.base import agent_step, only_turn, write_turn
from orchestrator.policies.registry import Policy
from orchestrator.plan import Step

class Shout:
    name = "shout"

    async def turn(self, episode):
        return only_turn(episode, write_turn([Step(1, "calc", {"expression": "6*7"})], "$1!"))

POLICY = Policy("shout", "Shout", "Calculates loudly.", lambda request: Shout(), "[:AGENT]", takes_agent=True)
ORACLE = Policy("oracle", "Oracle", "An impostor.", lambda request: Shout())
NOT_A_POLICY = 42
"""
RUN = """
import asyncio
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.registry import POLICIES, explain_stay, make_orchestrator
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

pool = Pool(name="p", workers=(WorkerSpec(name="calc", kind="calculator", description="d"),))

async def run(name):
    async with live_pool(pool) as live:
        return await run_episode(EpisodeSpec("q"), make_orchestrator(name, live), live)
"""


def install(site: Path, package: str, *entries: str, module: str = "") -> None:
    """Lay down what pip leaves of a wheel: a module and its metadata."""
    if module:
        (site / f"{package}.py").write_text(module)
    metadata = site / f"{package}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("\n".join(("[podium.policies]", *entries, "")))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages: one good policy, and four bad ones around it."""
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, "toy_shout", "shout = toy_shout:POLICY", module=TOY)
    install(folder, "toy_broken", "broken = toy_broken:POLICY", module="raise RuntimeError('no such luck')")
    install(folder, "toy_clash", "oracle = toy_shout:ORACLE")
    install(folder, "toy_again", "shouting = toy_shout:POLICY")
    install(folder, "toy_wrong", "wrong = toy_shout:NOT_A_POLICY")
    return folder


def python(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(site), str(ROOT)))
    environment = os.environ | {"PYTHONPATH": path, "COLUMNS": "400", "PODIUM_HOME": str(site / "home")}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=site, env=environment)


def test_a_policy_of_another_package_runs_an_episode_on_a_pool(site):
    code = f"""{RUN}
assert asyncio.run(run("shout")).answer == "42!"
assert list(POLICIES)[-1] == "shout" and POLICIES["oracle"].label == "Oracle"
assert explain_stay("shout:boss") == "comes with the package toy_shout 1.0"
"""
    done = python(site, "-c", code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("broken", "'broken' (podium.policies) of toy_broken 1.0 cannot be loaded: RuntimeError: no such luck"),
        ("oracle", "'oracle' (podium.policies) of toy_clash 1.0 takes the name of a built-in one"),
        ("shouting", "'shouting' (podium.policies) of toy_again 1.0 gives a row named 'shout'"),
        ("wrong", "'wrong' (podium.policies) of toy_wrong 1.0 gives a int, not a Policy"),
    ],
)
def test_a_bad_entry_point_is_named_with_its_package(site, name, sentence):
    done = python(site, "-c", f"{RUN}\nprint(POLICIES.problems[{name!r}])\nasyncio.run(run({name!r}))")
    assert sentence in done.stdout
    assert sentence in done.stderr, "the log, or the error of who asks for it"
    assert "UnknownOrchestrator" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("studio", "run"),
        *(pytest.param(words, marks=pytest.mark.slow) for words in (("studio", "serve"), ("trainer", "evaluate"))),
    ],
)
def test_command_line_help_lists_it(site, command):
    done = python(site, "-m", *command, "--help")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.replace("│", " ").split())
    assert "shout[:AGENT]" in text and "model[:AGENT[:DIALECT]]" in text and "POLICY_NAMES" not in text


@pytest.mark.slow
def test_the_page_offers_it(site):
    code = (
        "from studio.orchestrators.choices import orchestrator_choices, orchestrator_name\n"
        "print(orchestrator_choices(), orchestrator_name('shout', 'b', ''))"
    )
    done = python(site, "-c", code)
    assert done.returncode == 0, done.stderr
    assert "('Shout', 'shout')" in done.stdout and "shout:b" in done.stdout
