"""docs/extend.md, done as a reader would: its files are pasted into a folder, installed with pip and used."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from studio.access.accounts import Accounts
from studio.access.roles import UserRole
from studio.prepare import prepare_store
from studio.runtime import Runtime

pytestmark = pytest.mark.medium

ROOT = Path(__file__).parents[1]
PASSWORD = "correct horse battery"
PAGE = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
USE = """
import asyncio, json
from orchestrator.engine.episode_loop import EpisodeSpec, NoSink, run_episode
from orchestrator.policies.registry import POLICIES, make_orchestrator
from pool_registry.actions import Action
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from trainer.evaluation.trials import run_task
from trainer.methods.grpo.rewards import REWARDS, make_sample
from trainer.tasks.registry import open_source

async def main():
    mirror = WorkerSpec(name="mirror", kind="reverse", description="d", config={"upper": True})
    async with live_pool(Pool(name="p", workers=(mirror,))) as pool:
        turned = await pool.call(Action("mirror", {"text": "podium"}))
    task = open_source("squares").tasks("train", 1)[0]
    async with live_pool(starter_pool()) as pool:
        episode = await run_task(task, make_orchestrator("oracle", pool, task.oracle_turn), pool, NoSink())
        reward = REWARDS["brevity"].function(make_sample(task, episode, pool.pool.limits), [])
    print(json.dumps([turned.value, POLICIES["second_opinion"].label, episode.graded.correct, reward]))

asyncio.run(main())
"""
FORM = """
import json
from trainer.methods.table import METHODS
from trainer.recipe_schema import build_recipe_schema
schema = build_recipe_schema()
rule = schema["properties"]["control"]
section = schema["$defs"][rule["anyOf"][0]["$ref"].rpartition("/")[2]]
own = {key: rule[key] for key in ("title", "method")}
print(json.dumps([section["title"].removesuffix("Settings"), own, METHODS.package_of("control")]))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages that holds the page's own, as pip installs it."""
    folder = tmp_path_factory.mktemp("extend")
    files = re.findall(r"^`([\w./]+)`:\n\n```\w+\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    for name, content in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    assert len(files) == 8
    target = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(target), str(folder)], check=True, timeout=300)
    return target


@pytest.fixture
def clients(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[TestClient]]:
    """A viewer and an editor of a studio in which the package is installed."""
    from studio.app import create_app
    from studio.frame.navigation import PAGES

    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(vars(PAGES), "_extensions", raising=False)  # entry points are read once in a process
    runtime = Runtime(prepare_store(str(tmp_path)))
    people = Accounts(runtime.store.engine)
    people.add("olga", PASSWORD, UserRole.OWNER)
    app = create_app(runtime, login=True, loopback=False)
    opened = []
    for name, role in (("vera", UserRole.VIEWER), ("eddy", UserRole.EDITOR)):
        people.add(name, PASSWORD, role)
        opened.append(TestClient(app, base_url="http://studio.example"))
        opened[-1].post("/login", data={"name": name, "password": PASSWORD})
    yield opened
    runtime.close()
    vars(PAGES).pop("_extensions", None)


def run(site: Path, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(site), str(ROOT))), "COLUMNS": "300"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_of_the_page_works(site):
    assert json.loads(run(site, "-c", USE)) == ["MUIDOP", "Second opinion", True, 1.0]


def test_a_page_of_the_package_stands_in_the_navigation_and_holds_to_its_roles(clients):
    vera, eddy = clients
    page = vera.get("/example")
    assert 'href=\\"/example\\" aria-current=\\"page\\"' in page.text and "/podium/web/example/page.js" in page.text
    assert "/podium/web/example/example.css" in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    for name in ("page.js", "example.css"):
        assert vera.get(f"/podium/web/example/{name}").status_code == 200, name
    assert vera.get("/api/example/pools").json() == {"pools": ["starter"]}
    assert "POST /api/pages/example/write" in vera.get("/api/me").json()["refused"]
    refusal = vera.post("/api/pages/example/write", json={"note": "hello"}).json()["message"]
    assert refusal == "Only editors and owners may do this (example: write), and you are a viewer; ask olga."
    assert eddy.post("/api/pages/example/write", json={"note": "hello"}).json()["message"] == "Written."
    assert vera.post("/api/pages/example/show", json={}).json()["note"] == "hello"


def test_a_method_of_the_package_is_a_section_of_recipes_that_a_job_runs(site, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("tasks: {source: squares, levels: [], count: 2}\nmodel: {prompt: query}\ncontrol: {steps: 3}\n")
    run(site, "-m", "trainer", "control", str(recipe), "--home", str(tmp_path / "home"))
    (manifest,) = (tmp_path / "home" / "jobs").glob("*/checkpoints/3/podium.json")
    assert json.loads(manifest.read_text())["stage"] == "control"
    form = json.loads(run(site, "-c", FORM))
    assert form == ["Control", {"title": "Control", "method": "Control"}, "podium-example 0.1.0"]


@pytest.mark.slow
def test_the_command_line_knows_its_policy_and_its_tasks(site):
    assert "second_opinion" in run(site, "-m", "studio", "run", "--help")
    assert "What is the square of" in run(
        site, "-m", "trainer", "tasks", "show", "--source", "squares", "--split", "train"
    )
