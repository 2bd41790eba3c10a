"""What a published pool takes along: files on consent, what stays and what that breaks, held-out figures alone."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pool_registry.actions import Action
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool, import_pool
from pool_registry.portable_pool import travellers
from pool_registry.worker import WorkerSpec
from studio.publish.bundle import write_folder
from studio.publish.evaluations import evaluation_tables
from studio.publish.plan import make_plan
from studio.publish.request import Publication, PublishError
from tests.studio.support.recorded import record_run


def spec(name: str, kind: str, **config: object) -> WorkerSpec:
    return WorkerSpec(name=name, kind=kind, description="d", config=config)


@pytest.fixture
def pool(tmp_path) -> Pool:
    """A function, documents and a calculator."""
    (tmp_path / "tools.py").write_text(
        "import json\nimport regex\n\n\ndef double(x: float) -> float:\n    return 2 * x\n"
    )
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("A letter about tea.")
    number = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    return Pool(
        name="own",
        workers=(
            spec("double", "function", target=f"{tmp_path / 'tools.py'}:double", parameters=number),
            spec("letters", "documents", path=str(tmp_path / "letters")),
            spec("calc", "calculator"),
        ),
    )


def plan(runtime, tmp_path, **fields):
    publication = Publication(
        pool="own", repo="mine", **{"orchestrator": "random_plan", "visitors": "own_key", **fields}
    )
    return make_plan(runtime.store, publication, tmp_path / "made")


def test_files_go_along_only_where_a_person_lets_them(runtime, pool, tmp_path):
    runtime.store.pools.save(pool)
    kept = plan(runtime, tmp_path)
    assert [spec.name for spec in kept.portable.pool.workers] == ["calc"]
    assert {luggage.worker: len(luggage.files) for luggage in kept.portable.offered} == {"double": 1, "letters": 1}
    space = plan(runtime, tmp_path, take=("double", "letters")).space("mine")
    assert space.text("workers/double/tools.py").startswith("import json")
    assert space.text("workers/letters/one.txt") == "A letter about tea."
    there = import_pool(space.text("pool.json"))
    assert there.worker("double").config["target"] == "workers/double/tools.py:double"
    assert there.worker("letters").config["path"] == "workers/letters"
    assert str(tmp_path) not in space.text("pool.json")
    assert any(line.startswith("regex==") for line in space.text("requirements.txt").splitlines())
    assert "pool_registry/processes/function_host.py" in {entry.path for entry in space.entries}


def test_a_sqlite_file_goes_along_and_answers_there(runtime, pool, tmp_path, monkeypatch):
    file = tmp_path / "tea.db"
    with closing(sqlite3.connect(file)) as database:
        database.executescript("create table teas (name text, price real); insert into teas values ('oolong', 7.5);")
    query = {"query": "select price from teas where name = :name", "parameters": {"name": "of a tea"}}
    price = spec("price", "sql", database=str(file), **query)
    server = spec("server", "sql", database="postgresql://db.example.org/teas", **query)
    runtime.store.pools.save(pool.model_copy(update={"workers": (*pool.workers, price, server)}))
    kept = plan(runtime, tmp_path)
    assert {"price": 1}.items() <= {item.worker: len(item.files) for item in kept.portable.offered}.items()
    assert "price" in dict(kept.portable.stays) and "server" not in {item.worker for item in kept.portable.offered}

    space = plan(runtime, tmp_path, take=("price",)).space("mine")
    there = import_pool(space.text("pool.json"))
    assert there.worker("price").config["database"] == "workers/price/tea.db" and "server" not in space.text(
        "pool.json"
    )
    elsewhere = tmp_path / "elsewhere"
    space.write(elsewhere)
    monkeypatch.chdir(elsewhere)

    async def ask() -> object:
        async with live_pool(there.model_copy(update={"workers": (there.worker("price"),)})) as live:
            return (await live.call(Action("price", {"name": "oolong"}))).value

    assert asyncio.run(ask()) == 7.5


def test_a_sqlite_file_that_is_being_written_stays_and_says_so(pool, tmp_path):
    file = tmp_path / "busy.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("create table t (a)")
        database.commit()
        busy = pool.model_copy(update={"workers": (spec("busy", "sql", database=str(file)), *pool.workers)})
        assert "close its writer" in dict(travellers(busy, {"busy"}).stays)["busy"]


def test_a_function_whose_imports_no_package_provides_stays_and_says_so(pool, tmp_path):
    (tmp_path / "tools.py").write_text("import neighbour_of_mine\n\n\ndef double(x: float) -> float:\n    return x\n")
    stays = dict(travellers(pool, {"double"}).stays)
    assert "neighbour_of_mine, which no package provides" in stays["double"]


def test_taking_what_cannot_go_is_refused(runtime, pool, tmp_path):
    runtime.store.pools.save(pool)
    with pytest.raises(PublishError, match="ghost cannot go along: the pool own has no such worker"):
        plan(runtime, tmp_path, take=("ghost",))


def test_a_live_space_is_refused_where_its_model_or_every_worker_stays(runtime, pool, tmp_path):
    local = spec("local", "chat", base_url="http://127.0.0.1:1234/v1", model="m")
    runtime.store.pools.save(pool.model_copy(update={"workers": (*pool.workers, local)}))
    with pytest.raises(PublishError, match="the model that orchestrates, local, stays here"):
        plan(runtime, tmp_path, orchestrator="model:local")
    runtime.store.pools.save(pool.model_copy(update={"workers": pool.workers[:2]}))
    with pytest.raises(PublishError, match="no worker of own can leave this machine"):
        plan(runtime, tmp_path).space("mine")


def test_what_stays_says_how_many_recorded_runs_it_breaks(runtime, tmp_path):
    record_run(runtime.store, "starter-grpo")
    starter = runtime.store.pools.latest("starter").pool
    episode = runtime.store.traces.episode(record_run(runtime.store, "starter-grpo"))
    name = next(iter(episode.steps.values())).step.worker
    off = starter.worker(name).model_copy(update={"enabled": False})
    runtime.store.pools.save(starter.with_worker(off, name))
    publication = Publication(pool="starter", orchestrator="starter-grpo", repo="mine", with_model=False)
    reasons = dict(make_plan(runtime.store, publication, tmp_path / "made").portable.stays)
    assert "it is switched off; " in reasons[name] and "recorded runs call it" in reasons[name]
    runtime.store.pools.save(starter)


def test_the_card_shows_figures_of_held_out_tasks_alone(runtime, tmp_path):
    folder = runtime.store.home.jobs / "measured"
    folder.mkdir(parents=True)

    def row(index: int, split: str, correct: bool) -> dict:
        return {
            "orchestrator": "mine@9", "source": "suite", "family": "forge", "level": 1, "split": split, "index": index,
            "query": f"q{index}", "episode": f"e{split}{index}", "correct": correct, "outcome": "answered", "turns": 1,
            "turn_errors": 0, "steps": 1, "depth": 1, "width": 1, "statuses": {"OK": 1}, "failed_calls": 0,
            "wall_s": 1.0, "serial_s": 1.0, "tokens_in": 1, "tokens_out": 1, "cost": 0.0, "workers": {"calc": 1},
        }  # fmt: skip

    rows = [row(k, "train", True) for k in range(9)] + [row(k, "test", False) for k in range(4)]
    (folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in rows))
    text = "\n".join(evaluation_tables(runtime.store.home, "mine@9"))
    assert (
        "4 graded episodes of held-out tasks" in text
        and "| 0.00 [" in text
        and "1.00" not in text.partition("valid")[0]
    )
    assert "9 episodes on tasks that are not held out are left out" in text


def test_a_pool_of_own_files_alone_is_told_what_ticking_them_would_do(runtime, pool, tmp_path):
    runtime.store.pools.save(pool.model_copy(update={"workers": pool.workers[:2]}))
    with pytest.raises(PublishError, match="let the files of double, letters go along \\(--take double --take letters"):
        plan(runtime, tmp_path).space("mine")


def test_the_model_takes_the_files_of_own_functions_along(runtime, pool, tmp_path):
    runtime.store.pools.save(pool)
    made = plan(runtime, tmp_path, orchestrator="starter-grpo", take=("double", "letters"))
    assert made.model is not None
    for bundle in made.bundles:
        assert bundle.text("workers/double/tools.py").startswith("import json")
        assert bundle.text("workers/letters/one.txt") == "A letter about tea."
        assert any(line.startswith("regex==") for line in bundle.text("requirements.txt").splitlines())
        assert not any(str(tmp_path) in str(b"".join(entry.chunks())) for entry in bundle.entries if entry.size < 10**6)
    assert '"regex==' in made.model.text("ask.py"), "uv run installs what the functions import"


@pytest.mark.slow
def test_what_was_published_calls_the_packed_files_from_any_folder(runtime, pool, tmp_path):
    number = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    target = f"{tmp_path / 'tools.py'}:double"
    (tmp_path / "tools.py").write_text("def double(x: float) -> float:\n    return 2 * x\n")
    runtime.store.pools.save(Pool(name="own", workers=(spec("double", "function", target=target, parameters=number),)))
    made = plan(runtime, tmp_path, orchestrator="starter-grpo", take=("double",))
    write_folder(made.bundles, tmp_path / "made")
    (tmp_path / "tools.py").unlink()
    for folder, script in (("model", ASK_DIRECTLY), ("space", ASK_THE_SPACE)):
        done = run_elsewhere(tmp_path / "made" / folder, script, tmp_path)
        assert done.returncode == 0 and done.stdout.split()[-1] == "42.0", done.stderr


ASK_DIRECTLY = """
import asyncio, runpy
ask = runpy.run_path("{folder}/ask.py")

async def call():
    from pool_registry.actions import Action
    async with ask["live_pool"](ask["place_luggage"](ask["import_pool"](ask["POOL"]), ask["HERE"].parent)) as pool:
        return (await pool.call(Action("double", {{"x": 21}}))).value

print(asyncio.run(call()))
"""
ASK_THE_SPACE = """
import asyncio, json, sys
from pathlib import Path
sys.path.insert(0, "{folder}")
from live import LiveRunner

async def call():
    from pool_registry.actions import Action
    from pool_registry.calls.live_pool import live_pool
    runner = LiveRunner(json.loads(Path("{folder}/space.json").read_text()), Path("{folder}"))
    async with live_pool(runner._pool) as pool:
        return (await pool.call(Action("double", {{"x": 21}}))).value

print(asyncio.run(call()))
"""


def run_elsewhere(folder: Path, script: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a script on what was published, in a process that knows neither this checkout nor its data folder."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"XDG_CACHE_HOME": str(home / "cache"), "PODIUM_HOME": str(home / "elsewhere")}
    command = [sys.executable, "-c", script.format(folder=folder)]
    return subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment, timeout=300, check=False)


def test_a_judge_travels_only_to_where_answers_are_graded():
    settings = {"base_url": "https://models.example.com/v1", "model": "m", "api_key": "env:JUDGE_KEY"}
    judge = spec("judge", "chat", **settings).model_copy(update={"judge_only": True})
    pool = Pool(name="own", workers=(spec("calc", "calculator"), judge))
    space, rented = travellers(pool), travellers(pool, with_judges=True)
    assert space.stays == (("judge", "it only judges"),) and not space.secrets
    assert rented.pool.workers[1].judge_only and rented.secrets[0].workers == ("judge",)
