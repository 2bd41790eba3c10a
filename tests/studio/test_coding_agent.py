"""A coding agent in the workshop, over MCP by the official SDK's client: it reads, and what it proposes waits."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from typer.testing import CliRunner

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Turn
from pool_registry.calls.live_pool import live_pool
from pool_registry.language_models.skills import load_skills
from pool_registry.pool import Pool
from studio.__main__ import app
from studio.coding_agent import create_workshop_server
from studio.export.server_json import SCHEMA
from studio.pages.train.commands import TrainCommands
from tests.orchestrator.support.engine import Scripted
from tests.studio.support.recorded import record_run
from trainer.__main__ import app as trainer
from trainer.jobs.queue import JobStore
from trainer.tasks.practice.traffic_record import SERVED
from trainer.traffic.accept import set_consent

pytestmark = pytest.mark.medium
RECIPE = "name: look-again\npool: starter\nevaluate: {orchestrators: [oracle]}\n"
WRITES = {"add_tasks", "propose_job"}


@pytest.fixture(scope="module")
def episode(runtime) -> str:
    return record_run(runtime.store, "starter-grpo")


def call(runtime, tool: str, /, **arguments: Any) -> Any:
    """The result of a tool that may also write."""

    async def ask() -> Any:
        async with Client(create_workshop_server(runtime.store, changes=True)) as client:
            result = await client.call_tool(tool, arguments)
        if result.is_error:
            return result.content[0].text
        content = result.structured_content
        return content.get("result", content)

    return asyncio.run(ask())


def list_tools(runtime, **options: bool) -> dict[str, Any]:
    async def ask() -> dict[str, Any]:
        async with Client(create_workshop_server(runtime.store, **options)) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    return asyncio.run(ask())


def test_its_tools_only_read_unless_it_may_write(runtime):
    read, write = list_tools(runtime), list_tools(runtime, changes=True)
    assert all(tool.annotations.read_only_hint for tool in read.values())
    assert write.keys() - read.keys() == WRITES
    assert not any(write[name].annotations.read_only_hint for name in WRITES)


def test_it_finds_a_run_and_reads_its_steps(runtime, episode):
    assert any(pool["pool"] == "starter" for pool in call(runtime, "list_pools"))
    [run] = [row for row in call(runtime, "find_traces", pool="starter") if row["id"] == episode]
    trace = call(runtime, "read_trace", id=episode)
    assert run["query"] == trace["query"] and "events" not in trace
    assert len(trace["steps"]) == run["steps"] and all(step["worker"] for step in trace["steps"])
    assert call(runtime, "read_trace", id=episode, events=True)["events"]
    assert "no" in call(runtime, "read_trace", id="nothing")


def test_it_adds_tasks_to_a_pool(runtime):
    runtime.store.pools.save(Pool(name="sums"))  # no other test adds tasks to it
    tasks = [{"query": "What is 2 + 3?", "answer": 5}, {"query": "And 2 + 4?", "answer": 6, "split": "test"}]
    assert call(runtime, "add_tasks", pool="sums", tasks=tasks)["added"] == 2
    assert call(runtime, "list_tasks", pool="sums")["total"] == 2
    [held_out] = call(runtime, "list_tasks", pool="sums", split="test")["tasks"]
    assert held_out["answer"] == 6
    assert "nowhere" in call(runtime, "add_tasks", pool="nowhere", tasks=tasks)


def test_a_proposed_job_waits_until_a_person_starts_it(runtime):
    jobs = runtime.jobs
    made = call(runtime, "propose_job", recipe=RECIPE, why="Four runs failed alike.")
    assert made["state"] == "proposed" and made["job"] in made["next"]
    assert jobs.start_next() is None and not jobs.start(made["job"]) and not jobs.claim(made["job"])
    assert jobs.get(made["job"]).message == "Four runs failed alike."
    assert next(row for row in call(runtime, "list_jobs") if row["id"] == made["job"])["state"] == "proposed"
    assert "evaluate" in call(runtime, "read_recipe", name=made["job"])["yaml"]
    assert jobs.resume(made["job"]).state == "queued"
    jobs.stop(made["job"])


def test_what_cannot_be_proposed_says_why(runtime):
    assert "pool" in call(runtime, "propose_job", recipe="pool: nowhere\nevaluate: {}", why="x")
    assert "sped" in call(runtime, "propose_job", recipe="sped: 3\nevaluate: {}", why="x")
    rented = call(runtime, "propose_job", recipe=f"where: hf:l4x1\n{RECIPE}", why="x")
    assert "runs on this machine" in rented


def test_requests_of_clients_stay_out_until_their_pool_allows_them(runtime):
    query = "What does the client's secret plan cost?"

    async def serve() -> str:
        async with live_pool(runtime.store.pools.latest("starter").pool) as pool:
            spec = EpisodeSpec(query, source=SERVED)
            return (await run_episode(spec, Scripted(Turn((), "42")), pool, sink=runtime.store.traces)).id

    run = asyncio.run(serve())
    runtime.store.traces.flush()
    tasks = [{"query": f" {query}", "answer": 42}]
    assert call(runtime, "find_traces", text="secret plan") == []
    assert "client's request" in call(runtime, "read_trace", id=run, events=True)
    assert "client's request" in call(runtime, "add_tasks", pool="starter", tasks=tasks)
    set_consent("starter", clients=True)
    assert [row["id"] for row in call(runtime, "find_traces", text="secret plan", limit=1)] == [run]
    assert call(runtime, "read_trace", id=run)["query"] == query
    assert call(runtime, "add_tasks", pool="starter", tasks=tasks)["added"] == 1
    set_consent("starter", clients=False)


@pytest.mark.parametrize("field", ["run", "since", "made", "checked", "family"])
def test_a_task_that_it_adds_says_nothing_of_where_it_comes_from(runtime, field):
    tasks = [{"query": f"Is {field} taken?", "answer": 1, field: "x"}]
    assert field in call(runtime, "add_tasks", pool="starter", tasks=tasks)


def test_a_proposed_job_sends_no_traces_elsewhere(runtime):
    recipe = f"track: ['otlp:http://collector.example.com:4318']\n{RECIPE}"
    assert "sends nothing elsewhere" in call(runtime, "propose_job", recipe=recipe, why="x")


def test_a_terminal_asks_a_person_before_a_proposed_job_starts(runtime):
    job = call(runtime, "propose_job", recipe=RECIPE, why="Look again.")["job"]
    words = ["jobs", "resume", job, "--home", str(runtime.store.home.root)]
    refused = CliRunner().invoke(trainer, words, input="n\n")
    assert refused.exit_code == 1 and "Look again." in refused.output
    assert JobStore(runtime.store.engine, runtime.store.home).get(job).state == "proposed"


def test_the_train_page_refuses_to_start_what_cannot_run(runtime):
    recipe = "pool: starter\nmodel: {base: /no/such/model}\ntasks: {source: /no/such/tasks.jsonl}\ngrpo: {}\n"
    job = call(runtime, "propose_job", recipe=recipe, why="Look again.")["job"]
    reply = TrainCommands(runtime).run("resume", {"job": job})
    assert not reply["ok"] and reply["problems"] and runtime.jobs.get(job).state == "proposed"


def test_the_train_page_starts_a_proposed_job_for_a_person(runtime, monkeypatch):
    monkeypatch.setattr(JobStore, "start", lambda self, job: True)
    job = call(runtime, "propose_job", recipe=RECIPE, why="Look again.")["job"]
    reply = TrainCommands(runtime).run("resume", {"job": job})
    assert reply["ok"] and runtime.jobs.get(job).state == "queued"
    runtime.jobs.stop(job)


def test_it_compares_evaluations_or_says_that_there_are_none(runtime):
    job = call(runtime, "propose_job", recipe=RECIPE, why="Look again.")["job"]
    assert "measured nothing" in call(runtime, "compare_checkpoints", evaluations=[job])
    assert "starter-grpo" in call(runtime, "list_checkpoints")


@pytest.mark.slow
def test_podium_mcp_serves_a_client_over_stdio(tmp_path):
    async def ask() -> set[str]:
        words = ["-m", "studio", "mcp", "--home", str(tmp_path)]
        async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=words))) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    names = asyncio.run(ask())
    assert "read_trace" in names and not names & WRITES


def test_the_skill_is_one_that_agents_read_and_names_every_tool(runtime, tmp_path):
    done = CliRunner().invoke(app, ["export", "skill", str(tmp_path / "skills")])
    assert done.exit_code == 0, done.output
    [skill] = load_skills((str(tmp_path / "skills" / "podium"),))
    text = (tmp_path / "skills" / "podium" / "SKILL.md").read_text()
    head = yaml.safe_load(text.split("---")[1])
    assert skill.name == head["name"] == "podium" and len(head["description"]) <= 1024
    assert all(f"`{name}`" in text for name in list_tools(runtime, changes=True))


def export_server(tmp_path: Path, *words: str) -> Any:
    done = CliRunner().invoke(app, ["export", "server-json", *words, "--home", str(tmp_path)])
    return json.loads(done.stdout) if done.exit_code == 0 else done


def test_a_served_pool_is_described_for_the_registry(tmp_path):
    server = export_server(tmp_path, "io.github.acme/podium", "--url", "https://podium.example.com/mcp")
    assert server["$schema"] == SCHEMA and len(server["description"]) <= 100
    [package], [remote] = server["packages"], server["remotes"]
    assert package["registryType"] == "pypi" and package["version"] == server["version"]
    assert [argument["value"] for argument in package["packageArguments"]] == ["serve", "--mcp", "starter"]
    assert remote["type"] == "streamable-http" and remote["headers"][0]["isSecret"] is True


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("podium",), "io.github.YOU/starter"),
        (("io.github.acme/podium", "--pool", "nowhere"), "nowhere"),
        (("io.github.acme/podium", "--url", "http://127.0.0.1:8000/mcp"), "https://"),
    ],
)
def test_what_the_registry_would_refuse_is_refused_here(tmp_path, words, reason):
    refused = export_server(tmp_path, *words)
    assert refused.exit_code != 0 and reason in (refused.output + str(refused.exception))
