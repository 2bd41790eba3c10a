"""The router: rules before there is a record, what the traces say once there is one."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.choice.outcomes import Outcome
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import Graded
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Step, Turn
from orchestrator.policies.baselines.router import MIN_TASKS, RouterPolicy
from orchestrator.policies.registry import make_orchestrator, orchestrator_factory
from orchestrator.traces.agent_track_record import SoloEpisode, TrackRecord, read_track_record
from orchestrator.traces.store import Store, open_store
from pool_registry.calls.live_pool import live_pool, open_live_pool
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import choose_home
from tests.orchestrator.support.endpoint import Endpoint, agent, play, pool_of

URL = "http://127.0.0.1:9"


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    opened = open_store(choose_home(tmp_path))
    yield opened
    opened.close()


def rank_agents(pool: Pool, record: TrackRecord, query: str) -> list[str]:
    live = open_live_pool(pool)
    agents = [spec.name for spec in pool.agents()]
    return RouterPolicy(agents, live, lambda: record).rank_agents(query)


def record_of(*lines: tuple[str, str, bool], wall_s: float = 1.0, cost: float = 0.0) -> list[SoloEpisode]:
    return [SoloEpisode(worker, query, correct, wall_s, cost) for worker, query, correct in lines]


# Rules


def test_without_a_record_the_description_that_fits_the_query_wins_then_the_price():
    pool = pool_of(
        URL,
        agent("planner", URL, description="Plans chemistry.", price_out=0),
        agent("dear", URL, description="Answers questions.", price_out=5),
        agent("cheap", URL, description="Answers questions.", price_out=1),
        agent("chemist", URL, description="Knows chemistry and molecules.", price_out=9),
    )
    assert rank_agents(pool, TrackRecord([]), "Which molecule is it?") == ["chemist", "cheap", "dear", "planner"]
    assert rank_agents(pool, TrackRecord([]), "What is the capital of France?") == [
        "cheap",
        "dear",
        "chemist",
        "planner",
    ]


def test_a_record_of_few_tasks_changes_nothing():
    pool = pool_of(URL, "a", "b")
    few = record_of(*(("b", f"task {number}", True) for number in range(MIN_TASKS - 1)))
    assert rank_agents(pool, TrackRecord(few), "task") == ["a", "b"]
    assert rank_agents(pool, TrackRecord([*few, *few]), "task") == ["a", "b"], "the same tasks again are not more tasks"
    assert rank_agents(pool, TrackRecord([*few, *record_of(("b", "one more", True))]), "task") == ["b", "a"]


def test_the_next_agent_is_asked_when_one_fails(endpoint):
    def reply(messages: list[dict]) -> str:
        return "" if messages[0]["content"].startswith("You are a.") else "from b"

    episode = play("router", endpoint, reply, ("a", "b"))
    assert [run.step.worker for run in episode.steps.values()] == ["a", "b"] and episode.answer == "from b"


def test_when_all_have_failed_it_says_so(endpoint):
    episode = play("router", endpoint, lambda _: "", ("a", "b"))
    assert episode.ended.outcome == "orchestrator_failed" and "router" in episode.ended.reason


# The record


def test_the_agent_that_was_right_on_similar_queries_gets_the_query():
    capitals = [f"What is the capital of country {number}?" for number in range(60)]
    sums = [f"Add the numbers {number} and 7, please" for number in range(60)]
    record = TrackRecord(
        record_of(
            *(("a", query, True) for query in capitals),
            *(("a", query, False) for query in sums),
            *(("b", query, False) for query in capitals),
            *(("b", query, True) for query in sums),
        )
    )
    pool = pool_of(URL, "a", "b")
    assert rank_agents(pool, record, "What is the capital of France?") == ["a", "b"]
    assert rank_agents(pool, record, "Add the numbers 3 and 4, please") == ["b", "a"]


def test_of_equally_good_agents_the_quicker_and_cheaper_one_is_chosen_but_success_comes_first():
    tasks = [f"task {number}" for number in range(MIN_TASKS)]
    slow = record_of(*(("a", task, True) for task in tasks), wall_s=10)
    dear = record_of(*(("b", task, True) for task in tasks), cost=0.1)
    good = record_of(*(("c", task, True) for task in tasks))
    wrong = record_of(*(("d", task, number % 2 == 0) for number, task in enumerate(tasks)), wall_s=0.1)
    pool = pool_of(URL, "a", "b", "c", "d")
    found = rank_agents(pool, TrackRecord([*slow, *dear, *good, *wrong]), "task 7")
    assert found[0] == "c" and found[-1] == "d"


def test_an_agent_without_a_record_is_worth_a_try_before_one_that_fails():
    tasks = [f"task {number}" for number in range(MIN_TASKS)]
    pool = pool_of(URL, "a", "b")
    assert rank_agents(pool, TrackRecord(record_of(*(("a", task, False) for task in tasks))), "task") == ["b", "a"]
    assert rank_agents(pool, TrackRecord(record_of(*(("a", task, True) for task in tasks))), "task") == ["a", "b"]


async def graded(name: str, live, store: Store, correct: bool | None, query: str = "6*7?") -> Episode:
    episode = await run_episode(EpisodeSpec(query), make_orchestrator(name, live), live, sink=store.traces)
    if correct is not None:
        store.traces.append(episode.id, Graded(correct, "", 1.0))
    return episode


def test_the_record_holds_graded_episodes_of_one_worker_on_this_pool(endpoint, store):
    Endpoint.reply = staticmethod(lambda _: "x")

    async def play_all() -> None:
        async with live_pool(pool_of(endpoint, "a", "b")) as live:
            await graded("direct:a", live, store, True, "first")
            await graded("direct:a", live, store, False, "second")
            await graded("direct:b", live, store, None)  # nobody knows whether it was right
            await graded("fan_out", live, store, True)  # two agents: whose merit?
        other = pool_of(endpoint, "a").model_copy(update={"name": "other"})
        async with live_pool(other) as live:
            await graded("direct:a", live, store, True)

    asyncio.run(play_all())
    store.traces.flush()
    found = read_track_record("p")
    assert found.tasks(["a", "b"]) == found.tasks(["a"]) == 2
    assert found.success("a", "first") == pytest.approx((1 + 2 * 2 / 4) / 4) and found.success("b", "first") == 0.5
    assert found.wall_s("a") > 0 and read_track_record("nothing").tasks(["a"]) == 0


def test_what_is_recorded_after_the_first_orchestrator_was_made_does_not_change_the_others(endpoint, store):
    Endpoint.reply = staticmethod(lambda _: "x")

    async def play_all() -> list[str]:
        async with live_pool(pool_of(endpoint, "a", "b")) as live:
            make = orchestrator_factory("router", live)
            before = make(None, None).rank_agents("task")
            for number in range(MIN_TASKS):
                await graded("direct:b", live, store, True, f"task {number}")
            store.traces.flush()
            assert make_orchestrator("router", live).rank_agents("task") == ["b", "a"]
            return [*before, *make(None, None).rank_agents("task")]

    assert asyncio.run(play_all()) == ["a", "b", "a", "b"]


class OneNeed(Orchestrator):
    """An orchestrator that says what its only step is for, as a reader does."""

    name = "one-need"

    async def turn(self, episode: Episode) -> Turn:
        return Turn((Step(1, "a", {"instruction": episode.query}, need="product of two numbers"),), "$1")


def test_the_record_keeps_the_need_of_a_step_that_decided_alone(endpoint, store):
    Endpoint.reply = staticmethod(lambda _: "42")

    async def play_one() -> None:
        async with live_pool(pool_of(endpoint, "a")) as live:
            episode = await run_episode(EpisodeSpec("6*7?"), OneNeed(), live, sink=store.traces)
            store.traces.append(episode.id, Graded(True, "", 1.0))

    asyncio.run(play_one())
    store.traces.flush()
    assert read_track_record("p").outcomes("a") == [Outcome("product of two numbers", True)]


def test_a_question_is_remembered_without_its_quotation_marks():
    episode = SoloEpisode("atlas", "In short: who won?", True, 1.0, 0.0, need='"Who won?"')
    assert TrackRecord([episode]).outcomes("atlas") == [Outcome("Who won?", True)]
