"""The experts answer over HTTP as ordinary agents of a pool, and always say that they are simulated."""

from __future__ import annotations

import asyncio
import json
from random import Random
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from bench.agents.cases import make_task
from bench.agents.experts import CENT, SIMULATED, serve_experts
from bench.agents.fixed import Site
from bench.agents.plans import Plan
from bench.agents.plays import compare_plays
from bench.agents.whole import POLICIES, make_plan_orchestrator, make_scene, play_scene, write_split
from orchestrator.engine.episode_loop import NoSink
from orchestrator.plan import Step, Turn
from orchestrator.policies.registry import make_orchestrator
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.storage.data_folder import find_home
from trainer.evaluation.trials import run_task


def post(url: str, document: object) -> dict:
    request = Request(f"{url}/chat/completions", json.dumps(document).encode())
    with urlopen(request, timeout=5) as reply:
        return json.load(reply)


def test_every_reply_and_card_says_simulated():
    scene = make_scene(0, 0, "route", 1)
    with serve_experts(scene.ground, scene.book, pace=0) as pool:
        url = pool.workers[0].config["base_url"]
        message = {"role": "user", "content": scene.tasks[0].query}
        reply = post(url, {"model": f"{SIMULATED}model_1", "messages": [message]})
        with pytest.raises(HTTPError, match="404"):
            post(url, {"model": "gpt-4o", "messages": [message]})
        with pytest.raises(HTTPError, match="400"):
            post(url, {"model": f"{SIMULATED}model_1", "messages": [3]})
    assert reply["model"] == "simulated/model_1" and reply["system_fingerprint"] == "simulated"
    assert all("imulated" in spec.description for spec in pool.workers)
    prices = [expert.price for expert in scene.ground.experts]
    assert [spec.price_call / CENT for spec in pool.workers] == pytest.approx(prices)


@pytest.mark.medium
def test_real_episodes_come_to_the_exact_figures(capsys):
    for kind in ("check", "join"):
        plays = asyncio.run(play_scene(make_scene(1, 0, kind, 8)))
        assert list(plays) == list(POLICIES)
        for policy in POLICIES:
            compare_plays(plays[policy], policy)
    assert not capsys.readouterr().err, "further off than in one of a thousand measurements"


def test_an_episode_without_an_access_list_is_wrong():
    scene = make_scene(0, 0, "chain", 12)

    async def count_right(cut: bool) -> int:
        with serve_experts(scene.ground, scene.book, pace=0) as pool:
            async with live_pool(pool) as live:
                right = 0
                for task in scene.tasks:
                    turn = write_split(task, ["model_0", "model_0"])
                    steps = tuple(Step(s.id, s.worker, s.arguments, () if cut else s.access) for s in turn.steps)
                    oracle = make_orchestrator("oracle", live, Turn(steps, turn.answer))
                    episode = await run_task(make_task(scene.book, task), oracle, live, NoSink())
                    right += episode.graded.correct
                return right

    assert asyncio.run(count_right(cut=False)) > 0
    assert asyncio.run(count_right(cut=True)) == 0


def test_nobody_is_asked_what_nobody_knows():
    scene = make_scene(0, 0, "nobody", 1)

    async def refuse():
        with serve_experts(scene.ground, scene.book, pace=0) as pool:
            async with live_pool(pool) as live:
                orchestrator = make_plan_orchestrator(Plan("refuse"), scene.ground, scene.tasks[0], live)
                return await run_task(make_task(scene.book, scene.tasks[0]), orchestrator, live, NoSink())

    episode = asyncio.run(refuse())
    assert episode.graded.correct and not episode.steps


def test_outcomes_of_episodes_are_read_back_from_the_traces(tmp_path):
    scene = make_scene(0, 0, "route", 1)

    async def log_one() -> tuple[list, Site]:
        with serve_experts(scene.ground, scene.book, pace=0) as pool:
            async with live_pool(pool) as live:
                site = Site(scene.ground, scene.book, live, open_store(find_home(tmp_path)))
                await site.log(1, Random(0))
                return [site.read_record().outcomes(expert.name) for expert in scene.ground.experts], site

    outcomes, site = asyncio.run(log_one())
    site.store.close()
    asked = {case.text for case in site.book.cases.values()}
    assert [len(row) for row in outcomes] == [len(scene.ground.topics)] * len(scene.ground.experts)
    assert {item.need for row in outcomes for item in row} <= asked
    assert len({item.right for row in outcomes for item in row}) == 2, "some are right and some are wrong"
