"""Limits of one run: hundreds of drawn plans on drawn pools, and no call that a limit forbids reaches an endpoint."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import pytest

from orchestrator.engine.budget import Budget
from orchestrator.engine.edits import ChangeStep
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.release import Orchestrator
from orchestrator.errors import InvalidEdits
from orchestrator.plan import Step, Turn
from orchestrator.policies.registry import make_orchestrator
from orchestrator.traces.run_limits import list_violations, read_with_inner
from orchestrator.traces.store import Store, open_store
from orchestrator.what_if import run_variation, vary
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.calls.run_limits import RunLimits, build_run_limits
from pool_registry.errors import InvalidRunLimits
from pool_registry.pool import Limits, Pool
from pool_registry.storage.data_folder import choose_home
from pool_registry.worker import WorkerSpec
from tests.orchestrator.support.endpoint import Endpoint, agent

TRIALS = 200
NAMES = ("ada", "bob", "cy", "dot", "eve", "fay")
PRICE = 0.01
TAG = re.compile(r"<of (\w+)>")


class Flaky(Endpoint):
    """Answers with whose output it is, short or long; sometimes calls a tool, sometimes fails."""

    seed = 0
    failing = 0.25

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Endpoint.bodies.append(body)
        earlier = sum(other["model"] == body["model"] for other in Endpoint.bodies)
        chance = Random(f"{self.seed} {body['model']} {earlier}")  # calls in parallel come in any order
        fails = chance.random() < self.failing
        message: dict[str, Any] = {"role": "assistant", "content": f"<of {body['model']}>" * chance.choice((1, 90))}
        if body.get("tools") and body["messages"][-1]["role"] != "tool":
            function = {"name": chance.choice(NAMES), "arguments": json.dumps({"instruction": "go"})}
            message = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]}
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        raw = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}).encode()
        self.send_response(500 if fails else 200)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Flaky)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(choose_home(str(tmp_path)))
    yield opened
    opened.close()


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as opened:  # a loop of its own for every trial would load the certificates anew
        yield opened


def draw_pool(random: Random, url: str) -> Pool:
    workers = []
    for place, name in enumerate(NAMES):
        changes: dict[str, Any] = {"price_call": PRICE}
        if place + 2 < len(NAMES) and random.random() < 0.5 and place % 2 == 0:
            changes["fallback"] = NAMES[place + random.choice((1, 2))] if place == 0 else NAMES[place + 1]
        if random.random() < 0.3:
            changes["summarizer"] = random.choice([other for other in NAMES if other != name])
        spec = agent(name, url, **changes)
        config = {**spec.config, "max_visible_chars": 200}
        if random.random() < 0.3:
            config["tools"] = [other for other in NAMES if other != name and random.random() < 0.5]
        workers.append(spec.model_copy(update={"config": config}))
    inner = {"orchestrator": random.choice(("fan_out", "direct", "pipeline"))}
    workers.append(WorkerSpec(name="inner", kind="orchestrator", description="Inner.", config=inner))
    return Pool(name="p", workers=tuple(workers), limits=Limits(max_rounds=3))


def draw_limits(random: Random) -> RunLimits:
    banned = random.sample(NAMES, random.randint(1, 3))
    seen_by = {
        random.choice((*NAMES, "2")): random.sample(NAMES, random.randint(0, 3)) for _ in range(random.randint(0, 2))
    }
    return build_run_limits(banned, random.choice((None, 0.045, 0.1)), seen_by)


class Drawn(Orchestrator):
    """Writes drawn plans, also ones that the limits forbid, and keeps what it was shown."""

    name = "drawn"

    def __init__(self, random: Random) -> None:
        self.random, self.shown = random, ""

    async def turn(self, episode: Episode) -> Turn:
        self.shown += str(episode.observations())
        self.last = episode
        first = episode.next_step_id
        if len(episode.rounds) == 3:
            return Turn(answer="done")
        return Turn(tuple(self._draw_step(k) for k in range(first, first + self.random.randint(1, 5))))

    def _draw_step(self, k: int) -> Step:
        access = [other for other in range(1, k) if self.random.random() < 0.5]
        quotes = " ".join(f"${other}" for other in access if self.random.random() < 0.3)
        return Step(k, self.random.choice((*NAMES, "inner")), {"instruction": f"do it {quotes}"}, tuple(access))


def resolve(name: str, _query: str, pool: LivePool) -> Orchestrator:
    return make_orchestrator(name, pool)


async def play(pool: Pool, limits: RunLimits, orchestrator: Orchestrator, store: Store | None = None) -> Episode:
    async with live_pool(pool) as whole:
        whole.check_limits(limits)
        live = whole.limit(limits)
        sink = store.traces if store else None
        return await run_episode(EpisodeSpec("why?"), orchestrator, live, sink=sink, resolve=resolve)


def list_breaches(limits: RunLimits, bodies: list[dict[str, Any]]) -> list[str]:
    """What reached an endpoint and must not have."""
    breaches = [f"{body['model']} was called" for body in bodies if body["model"] in limits.without_workers]
    for body in bodies:
        for owner in TAG.findall(json.dumps(body["messages"])):
            if owner in limits.seen_by and body["model"] not in (*limits.seen_by[owner], owner):
                breaches.append(f"{body['model']} saw the output of {owner}")
    if limits.max_cost is not None and len(bodies) * PRICE > limits.max_cost + 1e-9:
        breaches.append(f"{len(bodies)} calls cost more than {limits.max_cost}")
    return breaches


@pytest.mark.medium
def test_no_drawn_plan_breaks_a_limit_of_its_run(url, store, runner):
    reached, marked, inside = 0, 0, 0
    for seed in range(TRIALS):
        random = Random(seed)
        Flaky.seed, Flaky.failing, Endpoint.bodies = seed, 0.25, []
        pool, limits, drawn = draw_pool(random, url), draw_limits(random), Drawn(random)
        episode = runner.run(play(pool, limits, drawn, store))
        store.traces.flush()
        episodes = read_with_inner(store.traces, store.traces.episode(episode.id))
        assert list_violations(episodes) == [], f"seed {seed}: the stored trace shows it"
        assert list_breaches(limits, Endpoint.bodies) == [], f"seed {seed}: the endpoints saw it"
        hidden = [owner for owner in TAG.findall(drawn.shown) if owner in limits.seen_by]
        assert hidden == [], f"seed {seed}: the orchestrator read it"
        assert episodes[0].run_limits == limits and episodes[0].started.pool_hash == pool.hash
        reached += len(Endpoint.bodies)
        marked += sum(run.step.problem is not None for run in episode.steps.values())
        inside += len(episodes) - 1
    assert reached > TRIALS and marked > TRIALS and inside > TRIALS / 4, "the trials exercise the limits"


@pytest.mark.medium
def test_the_proof_finds_what_an_unlimited_run_would_break(url, store, runner):
    """The check of a trace sees what it is to see: the same plans without limits break them."""
    broken = 0
    for seed in range(20):
        random = Random(seed)
        Flaky.seed, Flaky.failing, Endpoint.bodies = seed, 0.25, []
        pool, limits = draw_pool(random, url), draw_limits(random)
        episode = runner.run(play(pool, RunLimits(), Drawn(random), store))
        store.traces.flush()
        episodes = read_with_inner(store.traces, episode)
        episodes[0].started = episodes[0].started.__class__(**{**vars_of(episodes[0].started), "run_limits": limits})
        seen, shown = bool(list_breaches(limits, Endpoint.bodies)), bool(list_violations(episodes))
        assert not seen or shown or limits.max_cost, f"seed {seed}: the endpoints saw what the trace does not show"
        broken += shown
    assert broken >= 15


def vars_of(event: Any) -> dict[str, Any]:
    return {name: getattr(event, name) for name in event.__dataclass_fields__}


class Fixed(Orchestrator):
    name = "fixed"

    def __init__(self, *turns: Turn) -> None:
        self.turns, self.read = list(turns), [{}]

    async def turn(self, episode: Episode) -> Turn:
        self.read.append(dict(episode.observations()))
        return self.turns[len(episode.rounds) - 1]


def ask(k: int, name: str, *access: int) -> Step:
    return Step(k, name, {"instruction": "go"}, access)


def steady_pool(url: str, **changes: dict[str, Any]) -> Pool:
    Flaky.failing, Endpoint.bodies = 0.0, []
    return Pool(name="p", workers=tuple(agent(name, url, **changes.get(name, {})) for name in NAMES[:3]))


def test_a_banned_worker_is_an_error_of_the_plan_and_the_next_turn_may_mend_it(url):
    fixed = Fixed(Turn((ask(1, "bob"),)), Turn((ask(2, "ada"),), "$2"))
    episode = asyncio.run(play(steady_pool(url), build_run_limits(["bob"]), fixed))
    assert episode.steps[1].step.problem == "this run may not call bob; use one of: ada, cy"
    assert episode.answer.startswith("<of ada>") and [body["model"] for body in Endpoint.bodies] == ["ada"]


def test_a_banned_worker_does_not_take_over(url):
    pool = steady_pool(url, ada={"fallback": "bob"})
    Flaky.failing = 1.1
    episode = asyncio.run(play(pool, build_run_limits(["bob"]), Fixed(Turn((ask(1, "ada"),)), Turn(answer="no"))))
    assert [body["model"] for body in Endpoint.bodies] == ["ada"] and episode.steps[1].failed


def test_only_listed_workers_see_an_output(url):
    turn = Turn((ask(1, "ada"), ask(2, "bob", 1), ask(3, "cy", 1), ask(4, "ada", 1)), "$2")
    episode = asyncio.run(play(steady_pool(url), build_run_limits(seen_by={"ada": ["bob"]}), Fixed(turn)))
    assert episode.steps[3].step.problem == (
        "cy may not see the output of step 1 (ada): this run shows it to bob; take it out of access"
    )
    assert episode.steps[2].observation.ok and episode.steps[4].observation.ok, "bob is listed, ada sees its own"


def test_a_step_of_a_plan_that_is_not_there_yet_is_named_by_its_number(url):
    turn = Turn((ask(1, "ada"), ask(2, "bob", 1), ask(3, "cy", 2), ask(4, "cy", 1)), "$3")
    episode = asyncio.run(play(steady_pool(url), build_run_limits(seen_by={"2": []}), Fixed(turn, Turn(answer="x"))))
    assert "shows it to no other worker" in episode.steps[3].step.problem and episode.steps[4].observation.ok


def test_an_orchestrator_quotes_what_it_may_not_read(url):
    fixed = Fixed(Turn((ask(1, "ada"),)), Turn(answer="$1"))
    episode = asyncio.run(play(steady_pool(url), build_run_limits(seen_by={"ada": []}), fixed))
    assert "hidden from you" in fixed.read[-1][1].value and episode.answer.startswith("<of ada>")


def test_a_call_that_might_pass_the_cap_is_not_made(url):
    pool = steady_pool(url, **{name: {"price_call": 0.01} for name in NAMES[:3]})
    turn = Turn((ask(1, "ada"), ask(2, "bob"), ask(3, "cy")), "done")
    episode = asyncio.run(play(pool, build_run_limits(max_cost=0.025), Fixed(turn)))
    failed = [run.observation.error for run in episode.steps.values() if run.failed]
    assert len(Endpoint.bodies) == 2 and [error.code for error in failed] == ["max_cost"]
    assert (
        failed[0].message
        == "A call that may cost $0.01 was not made: $0.005 is left of the $0.025 that this run may cost."
    )
    assert episode.started.limits["max_cost"] == 0.025 and episode.usage.cost == pytest.approx(0.02)


def test_an_orchestrator_whose_turn_might_pass_the_cap_ends_the_run_with_that_reason(url):
    pool = steady_pool(url, ada={"price_call": 0.02})

    async def run() -> Episode:
        async with live_pool(pool) as whole:
            live = whole.limit(build_run_limits(max_cost=0.01))
            return await run_episode(EpisodeSpec("why?"), make_orchestrator("model:ada", live), live)

    episode = asyncio.run(run())
    assert episode.ended.outcome == "max_cost" and "was not made" in episode.ended.reason and not Endpoint.bodies


def test_a_cap_of_a_run_holds_beside_the_one_of_its_pool():
    async def cap(own: float | None, limits: float | None) -> tuple[float | None, int]:
        pool = LivePool(Pool(name="p", limits=Limits(max_cost=limits)), {}).limit(build_run_limits(max_cost=own))
        return pool.pool.limits.max_cost, len(Budget(pool.pool.limits, pool.run_limits.max_cost).spending.levels)

    assert asyncio.run(cap(0.5, 2.0)) == (0.5, 2) and asyncio.run(cap(5.0, 2.0)) == (2.0, 2)
    assert asyncio.run(cap(None, 2.0)) == (2.0, 1)


def test_a_what_if_keeps_the_limits_of_its_run(url):
    async def run() -> tuple[Episode, Episode, str]:
        async with live_pool(steady_pool(url)) as whole:
            live = whole.limit(build_run_limits(["bob"], seen_by={"$1": ["cy"]}))
            origin = await run_episode(EpisodeSpec("why?"), Fixed(Turn((ask(1, "ada"), ask(2, "cy", 1)), "$2")), live)
            banned = ChangeStep(edit="change", step=2, worker="bob", arguments={"instruction": "x"})
            with pytest.raises(InvalidEdits) as refusal:
                vary(origin, 1, [banned], whole)
            source = ChangeStep(edit="change", step=1, worker="cy", arguments={"instruction": "y"})
            hidden = ChangeStep(edit="change", step=2, worker="ada", arguments={"instruction": "x"}, access=[1])
            with pytest.raises(InvalidEdits, match="shows it to no other worker"):
                vary(origin, 1, [source, hidden], whole)
            edit = ChangeStep(edit="change", step=2, worker="cy", arguments={"instruction": "again"}, access=[1])
            varied = await run_variation(vary(origin, 1, [edit], whole), whole)
            return origin, varied, str(refusal.value)

    origin, varied, refusal = asyncio.run(run())
    assert "this run may not call bob" in refusal
    assert varied.run_limits == origin.run_limits and varied.ended.outcome == "answered"


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"without_workers": ["bobby"]}, "pool 'p' has no worker 'bobby'; the nearest names are: bob"),
        ({"without_workers": ["ada", "bob", "cy"]}, "no worker of pool 'p' is left for this run; ban fewer of them"),
        ({"seen_by": {"crm": ["ada"]}}, "pool 'p' has no worker 'crm'"),
        ({"seen_by": {"ada": ["zed"]}}, "pool 'p' has no worker 'zed'"),
        ({"max_cost": -1.0}, "$-1 is no cap on what a run may cost; give an amount above $0, or none"),
        ({"max_cost": float("nan")}, "$nan is no cap"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused_before_anything_runs(url, limits, sentence):
    with pytest.raises(InvalidRunLimits) as refusal:
        asyncio.run(play(steady_pool(url), build_run_limits(**limits), Fixed(Turn(answer="x"))))
    assert str(refusal.value).startswith(sentence) and refusal.value.field == next(iter(limits))


def test_limits_survive_the_trace(url, store):
    limits = build_run_limits(["bob"], 0.5, {"ada": ["cy"], "3": []})
    episode = asyncio.run(play(steady_pool(url), limits, Fixed(Turn(answer="x")), store))
    store.traces.flush()
    assert store.traces.episode(episode.id).run_limits == limits
    plain = asyncio.run(play(steady_pool(url), RunLimits(), Fixed(Turn(answer="x")), store))
    assert plain.started.run_limits is None and not plain.run_limits
