"""Rollouts: what the model wrote and what it was told, episodes that do not wait for each other, groups, limits."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.dialects import find_dialect
from orchestrator.engine.episode_loop import NoSink
from orchestrator.prompt import build_messages
from orchestrator.retrieval import sentence_vectors
from orchestrator.retrieval.choose_workers import narrow_pool
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.pool import Limits, Pool
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from tests.trainer.support.rollouts import Repeats, Written, a_pool, a_task, an_engine, answer_of, call_of
from trainer.errors import TrainingFailed
from trainer.job_process import explain_job_failure
from trainer.learner.generator import GeneratedTokens
from trainer.learner.token_transcript import ChatTokens
from trainer.methods.grpo.advantages import compute_advantages
from trainer.methods.grpo.curriculum import Curriculum
from trainer.methods.grpo.rewards import load_rewards
from trainer.methods.grpo.rollout_metrics import RolloutTimer, compute_rollout_metrics
from trainer.methods.grpo.rollouts import (
    EpisodeFormat,
    RolloutEngine,
    select_fitting_tasks,
)
from trainer.methods.grpo.section import CurriculumSettings, RewardSettings
from trainer.tasks.pool_conditions import apply_condition
from trainer.tasks.sources.verifiers.process import PYTHON, RewardProcess
from trainer.tasks.sources.verifiers.source import RewardVerifier
from trainer.tasks.task import Task
from trainer.tasks.task_pools import TaskPools

pytestmark = pytest.mark.medium


def run_one_episode(chat: ChatTokens, turns: Sequence[str | list[int]], **changes: Any):
    """The rollout of these turns on one task, and the generator that wrote them."""
    generator = Written(chat, lambda _, number: turns[number - 1])

    async def run():
        return await an_engine(chat, a_pool(), max_rounds=len(turns), **changes).run_episode(a_task(), generator)

    return asyncio.run(run()), generator


def test_nothing_is_learnt_from_an_answer_whose_verifier_fails(chat, monkeypatch):
    monkeypatch.setenv(PYTHON, sys.executable)
    verifier = RewardVerifier(RewardProcess("no_such_set", {}), 0, 1.0)
    generator = Written(chat, lambda *_: answer_of("42"))
    with pytest.raises(TrainingFailed, match=r"Install it: .*jobs resume"):
        asyncio.run(an_engine(chat, a_pool()).run_episode(replace(a_task(), verifier=verifier), generator))


# What the model wrote and what it was told


def read_learnt_text(chat: ChatTokens, rollout) -> str:
    transcript = rollout.transcript
    return chat.tokenizer.decode([t for t, mine in zip(transcript.completion, transcript.mask, strict=True) if mine])


def test_the_mask_marks_exactly_what_the_model_wrote(chat):
    turns = [call_of("éa 12"), "no turn at all", call_of("fail"), answer_of("right")]
    rollout, _ = run_one_episode(chat, turns)
    assert read_learnt_text(chat, rollout) == "".join(f"{turn}<|end|>" for turn in turns)
    assert len(rollout.transcript.mask) == len(rollout.transcript.completion) == len(rollout.logprobs)
    assert [p == -0.5 for p in rollout.logprobs] == [bool(mine) for mine in rollout.transcript.mask]
    assert rollout.sample.correct and [r.turn.text for r in rollout.sample.episode.rounds] == turns


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<[\x00"), max_size=30)
TURNS = st.lists(st.one_of(WORDS.map(call_of), WORDS.map(str.strip).filter(bool), st.just(call_of("fail"))), max_size=4)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TURNS, st.sampled_from(["query", "full"]))
def test_the_transcript_is_the_chat_template_of_the_conversation(chat, turns, style):
    turns = [*turns, answer_of("right")]
    rollout, _ = run_one_episode(chat, turns, style=style, max_length=100_000)
    episode, pool = rollout.sample.episode, a_pool()
    told = build_messages(episode, pool, find_dialect("plan"), len(turns), style)[:-1]
    messages = [{"role": message.role, "content": message.content} for message in told]
    assert rollout.transcript.ids == chat.tokenizer.apply_chat_template(messages, return_dict=False)
    assert read_learnt_text(chat, rollout) == "".join(f"{done.turn.text}<|end|>" for done in episode.rounds)


def test_of_a_large_pool_a_rollout_sees_what_a_model_in_use_sees(chat, monkeypatch):
    monkeypatch.setattr("orchestrator.retrieval.sentence_vectors.find_weights", lambda: None)
    workers = [
        WorkerSpec(name=f"repeats{n or ''}", kind="repeats", description=f"Says words of kind {n}.") for n in range(30)
    ]
    pool = open_live_pool(Pool(name="p", workers=tuple(workers), limits=Limits(max_shown=4)))
    generator = Written(chat, lambda _, number: answer_of("right") if number > 1 else call_of("x"))
    task = a_task("say words of kind 17")
    rollout = asyncio.run(an_engine(chat, pool, style="full", max_rounds=2).run_episode(task, generator))
    episode = rollout.sample.episode
    seen = narrow_pool(pool, episode.shown)
    assert len(seen.workers) == 4 and "repeats17" in seen.workers and len(episode.rounds) == 2
    used = build_messages(episode, seen, find_dialect("plan"), 2)[:-1]
    messages = [{"role": message.role, "content": message.content} for message in used]
    assert rollout.transcript.ids == chat.tokenizer.apply_chat_template(messages, return_dict=False)
    assert [done.turn.shown is None for done in episode.rounds] == [False, True]


def test_a_turn_that_was_cut_off_gets_an_end_that_is_not_learnt(chat):
    cut = chat.encode_turn(call_of("x"))[:-3]
    rollout, _ = run_one_episode(chat, [cut, answer_of("right")])
    end = chat.tokenizer.eos_token_id
    transcript = rollout.transcript
    assert transcript.completion[: len(cut) + 1] == [*cut, end]
    assert transcript.mask[: len(cut) + 1] == [1] * len(cut) + [0]
    assert rollout.sample.episode.rounds[0].turn.error and rollout.sample.correct


def test_a_model_that_says_nothing_has_said_the_end(chat):
    rollout, _ = run_one_episode(chat, [[], answer_of("right")])
    assert rollout.transcript.completion[0] == chat.tokenizer.eos_token_id and rollout.transcript.mask[0] == 1
    assert len(rollout.logprobs) == len(rollout.transcript.completion)


def test_a_turn_gets_what_is_left_of_the_episodes_length(chat):
    turns = [call_of("x" * 50), call_of("y" * 50), answer_of("right")]
    rollout, generator = run_one_episode(chat, turns, max_length=10_000)
    contexts = [run.turn.usage.tokens_in for run in rollout.sample.episode.rounds]
    rollout, generator = run_one_episode(chat, turns, max_length=contexts[1] + 50)
    assert generator.limits == [min(200, contexts[1] + 50 - contexts[0]), 50]
    assert rollout.sample.episode.ended.outcome == "orchestrator_failed" and not rollout.sample.correct


def test_tasks_whose_prompt_leaves_no_room_for_a_turn_are_left_out(chat):
    pool = a_pool()
    episode_format = EpisodeFormat(find_dialect("plan"), "query", 200, 260, 1)
    short, long = a_task("short"), a_task("a very long query " * 50)
    fitting = asyncio.run(select_fitting_tasks([long, short], TaskPools(pool), chat, episode_format))
    assert fitting == [short]


def test_when_no_prompt_fits_the_job_ends_with_what_to_change(chat):
    episode_format = EpisodeFormat(find_dialect("plan"), "full", 200, 64, 1)
    with pytest.raises(TrainingFailed, match=r"max_length.*prompt: query") as caught:
        asyncio.run(select_fitting_tasks([a_task()], TaskPools(a_pool()), chat, episode_format))
    assert caught.value.code == "max_length"


def test_a_model_that_knows_the_jobs_pool_by_heart_is_bound_to_the_pool_of_a_task(chat, monkeypatch):
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)
    job = open_live_pool(starter_pool())
    terms = load_rewards([RewardSettings(term="accuracy")])
    other, renaming = apply_condition("missing", starter_pool(), 4)
    for style, bound in (("query", renaming["sql"]), ("full", None)):
        engine = RolloutEngine(
            "learner", job, chat, EpisodeFormat(find_dialect("plan"), style, 200, 900, 2), terms, NoSink()
        )
        assert engine._plan_binding(job) is None, "its own pool needs none"
        binding = engine._plan_binding(open_live_pool(other))
        assert (binding and binding().workers["sql"].worker) == bound


def test_observations_cannot_forge_turns(chat):
    rollout, _ = run_one_episode(chat, [call_of("forge"), answer_of("right")])
    assert "evil" in rollout.sample.episode.steps[1].observation.value
    whole = chat.tokenizer.decode(rollout.transcript.ids)
    assert "evil" in whole and (whole.count("<|assistant|>"), whole.count("<|end|>")) == (2, 2)


# Episodes, groups and limits


def test_a_slow_worker_does_not_hold_up_another_episode(chat):
    def turn(query: str, number: int) -> str:
        if (query, number) == ("quick", 3):
            Repeats.gate.set()  # only now does the slow worker of the other episode answer
        return answer_of("right") if number == 3 else call_of("wait" if query == "slow" else "x")

    async def run():
        pool, generator = a_pool(), Written(chat, turn)
        engine = an_engine(chat, pool)
        async with asyncio.timeout(30):
            await asyncio.gather(*(engine.run_group(a_task(query), generator, 1) for query in ("slow", "quick")))
        return generator.asked

    asked = asyncio.run(run())
    assert asked.index(("quick", 3)) < asked.index(("slow", 2))


def test_a_group_has_one_pool_and_the_next_group_another(chat):
    def vary(task: Task) -> Task:
        spec = WorkerSpec(name=f"own_{task.ref.index}", kind="repeats", description="of this task alone")
        return replace(task, pool=Pool(name="own", workers=(spec,)))

    def turn(query: str, _: int) -> str:
        step = {"worker": f"own_{query}", "arguments": {"text": "x"}, "access": []}
        return json.dumps({"steps": [step], "answer": "right"})

    async def run():
        home = a_pool()
        engine = an_engine(chat, home, vary=vary)
        groups = [await engine.run_group(a_task(str(index), index), Written(chat, turn), 3) for index in range(2)]
        await engine.close()
        return groups, home

    groups, home = asyncio.run(run())
    pools = [{rollout.sample.episode.started.pool_hash for rollout in group.rollouts} for group in groups]
    assert [len(hashes) for hashes in pools] == [1, 1] and not pools[0] & pools[1]
    assert home.hash not in pools[0] | pools[1]
    for index, group in enumerate(groups):
        assert group.success == 1.0 and group.task.workers == ()
        steps = [run.step.worker for rollout in group.rollouts for run in rollout.sample.episode.steps.values()]
        assert steps == [f"own_{index}"] * 3
    metrics = compute_rollout_metrics(groups, [], [])
    assert [key for key in metrics if key.startswith("worker/")] == ["worker/repeats"], "made-up names make no curves"


def test_a_group_is_scored_against_itself(chat):
    answers = iter(["right", "wrong", "wrong", "wrong"])

    async def run():
        generator = Written(chat, lambda *_: answer_of(next(answers)))
        curriculum = Curriculum([a_task()], CurriculumSettings(), 0)
        return await an_engine(chat, a_pool()).run_step(curriculum, generator, 1, 4, 0, True)

    ((group,), _) = asyncio.run(run())
    assert [rollout.reward for rollout in group.rollouts] == [1, 0, 0, 0] and group.success == 0.25
    assert [[rollout.advantage for rollout in group.rollouts]] == compute_advantages([[1, 0, 0, 0]], "group", 1.0)
    row = group.row(7, kept=True)
    assert (row["step"], row["kept"], row["equal"], row["family"]) == (7, True, False, "own")
    assert [each["correct"] for each in row["episodes"]] == [True, False, False, False]
    assert len({each["id"] for each in row["episodes"]}) == 4 and json.dumps(row)


def run_one_step(chat, tasks, turn, groups: int, redraws: int, mixed_only: bool = True):
    """One step on these tasks: (kept, skipped, how many episodes ran)."""

    async def run():
        generator = Written(chat, turn)
        curriculum = Curriculum(tasks, CurriculumSettings(enabled=False), 0)
        kept, skipped = await an_engine(chat, a_pool()).run_step(curriculum, generator, groups, 2, redraws, mixed_only)
        return kept, skipped, len(generator.asked)

    return asyncio.run(run())


def test_equal_groups_are_drawn_anew_within_the_limit_and_counted(chat):
    kept, skipped, episodes = run_one_step(chat, [a_task()], lambda *_: answer_of("wrong"), groups=2, redraws=3)
    assert (len(kept), len(skipped), episodes) == (2, 3, 10) and all(group.equal for group in kept)
    found = compute_rollout_metrics(kept, skipped, ["accuracy"])
    assert (found["groups/skipped"], found["groups/equal"], found["rollout/correct"]) == (3, 2, 0.0)


def test_an_all_right_group_is_equal_though_one_of_its_plans_is_longer(chat):
    turns: list[int] = []

    def turn(*_: Any) -> str:
        turns.append(len(turns))
        return answer_of("right") if len(turns) % 2 else call_of("x", answer="right")

    async def run():
        engine = an_engine(chat, a_pool())
        weights = {"accuracy": 1.0, "efficiency": 0.1}
        engine.terms = load_rewards([RewardSettings(term=term, weight=weight) for term, weight in weights.items()])
        return await engine.run_step(
            Curriculum([a_task()], CurriculumSettings(), 0), Written(chat, turn), 1, 2, 2, True
        )

    (filling,), skipped = asyncio.run(run())
    assert filling.equal and len(skipped) == 2 and len(set(filling.rewards)) == 2
    assert 0 < max(rollout.advantage for rollout in filling.rollouts) < 0.1, (
        "a tie-breaker, in a batch that it fills up"
    )
    assert {rollout.advantage for group in skipped for rollout in group.rollouts} == {0.0}


def test_mixed_groups_are_kept_before_equal_ones(chat):
    turns: dict[str, int] = {}

    def turn(query: str, _: int) -> str:
        turns[query] = turns.get(query, 0) + 1
        return answer_of("right" if query == "mixed" and turns[query] % 2 else "wrong")

    tasks = [a_task("mixed", 0), a_task("equal", 1)]
    kept, skipped, episodes = run_one_step(chat, tasks, turn, groups=4, redraws=40)
    assert len(kept) == 4 and [group.task.query for group in kept] == ["mixed"] * 4
    assert all(group.task.query == "equal" for group in skipped) and episodes == 2 * (4 + len(skipped))


def test_equal_groups_are_taken_as_they_come_where_nobody_minds(chat):
    kept, skipped, episodes = run_one_step(chat, [a_task()], lambda *_: answer_of("x"), 3, redraws=9, mixed_only=False)
    assert (len(kept), len(skipped), episodes) == (3, 0, 6)


def test_groups_are_kept_in_the_order_in_which_they_were_drawn_whichever_ends_first(chat, monkeypatch):
    tasks = [a_task(str(number), number) for number in range(6)]
    curriculum = Curriculum(tasks, CurriculumSettings(enabled=False), 0)
    drawn = [curriculum.draw().query for _ in range(6)]
    run_group, ended = RolloutEngine.run_group, []
    delays = iter([0.1, 0.0, 0.05, 0.0, 0.05, 0.0])

    async def end_later(self, task, *rest):
        delay = next(delays)
        group = await run_group(self, task, *rest)
        await asyncio.sleep(delay)
        ended.append(task.query)
        return group

    monkeypatch.setattr(RolloutEngine, "run_group", end_later)
    kept, _, _ = run_one_step(chat, tasks, lambda *_: answer_of("x"), 6, redraws=0, mixed_only=False)
    assert [group.task.query for group in kept] == drawn and ended != drawn


def fail_step(engine: RolloutEngine, generator: Any) -> tuple[str, str, int]:
    """(code, message, tasks left over) of a step that ends the job."""

    async def run():
        curriculum = Curriculum([a_task()], CurriculumSettings(), 0)
        try:
            await engine.run_step(curriculum, generator, 4, 2, 2, True)
        except (TrainingFailed, ExceptionGroup) as error:
            for _ in range(20):
                await asyncio.sleep(0)
            return *explain_job_failure(error, None), len(asyncio.all_tasks()) - 1
        raise AssertionError("the step did not fail")

    return asyncio.run(run())


def test_the_spend_cap_ends_the_job(chat):
    pool = a_pool(price_call=1.0)
    engine = an_engine(chat, pool, concurrency=1, max_cost=2.5)
    generator = Written(chat, lambda *_: call_of("x", answer="right"))
    code, message, left = fail_step(engine, generator)
    assert code == "max_cost" and "$2.0000" in message and len(generator.asked) == 3 and left == 0
    assert "its cap of $2.5 is reached" in message and "--max-cost" in message


def test_a_backend_that_fails_ends_the_job_as_itself(chat):
    class Broken(Written):
        async def generate(self, ids: Sequence[int], limit: int, *rest: object) -> GeneratedTokens:
            if len(self.asked) >= 3:
                raise TrainingFailed("vllm", "the server is gone")
            return await super().generate(ids, limit, *rest)

    code, message, left = fail_step(an_engine(chat, a_pool()), Broken(chat, lambda *_: call_of("x")))
    assert (code, message, left) == ("vllm", "the server is gone", 0)


def test_the_clock_tells_what_the_generator_did_in_this_step(chat):
    generator = Written(chat, lambda *_: answer_of("x"))
    generator.busy_s, generator.tokens = 5.0, 1000
    with RolloutTimer(generator) as clock:
        generator.busy_s, generator.tokens = 7.0, 1100
    assert clock.metrics()["time/generation_s"] == 2.0 and clock.metrics()["time/tokens_per_s"] == 50.0
