"""Credit: what a run loses without a step, a worker or an access-list entry, with only what may see it called again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step, Turn
from orchestrator.what_if import EditedTurns
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.pool import Limits, Pool
from tests.trainer.support.shop import describe_worker
from trainer.evaluation.credit import CreditReport, find_rerun, list_removals, measure_credit
from trainer.methods.grpo.rewards import REWARDS, load_rewards, make_sample, score_group
from trainer.methods.grpo.section import RewardSettings
from trainer.tasks.sources.jsonl import TaskLine, make_task

POOL = Pool(
    name="sums",
    workers=(
        describe_worker("calc", "calculator", "Evaluates an expression."),
        describe_worker("spare", "calculator", "Works out a sum."),
    ),
)


def sums(k: int, expression: str, access=(), worker: str = "calc") -> Step:
    return Step(k, worker, {"expression": expression}, tuple(access))


# 3 uses 1 and may see 2 for nothing; 2 is needed by nobody
PLAN = Turn((sums(1, "2 + 3"), sums(2, "7 * 7", worker="spare"), sums(3, "$1 * 10", (1, 2))), "$3")


def measure(*turns: Turn, answer: object = 50, pool: Pool = POOL, **options) -> tuple[Episode, CreditReport]:
    async def run():
        async with live_pool(pool) as live:
            episode = await run_episode(EpisodeSpec("q"), EditedTurns(turns), live)
            task = make_task(TaskLine(query="q", answer=answer), "sums", 0)
            return episode, await measure_credit(episode, task, live, **options)

    return asyncio.run(run())


def values(report: CreditReport) -> dict:
    steps = {next(iter(credit.removal.steps)): credit.value for credit in report.of("step")}
    workers = {credit.removal.worker: credit.value for credit in report.of("worker")}
    access = {(credit.removal.reader, credit.removal.source): credit.value for credit in report.of("access")}
    return {**steps, **workers, **access}


def test_what_the_answer_is_made_of_is_needed_and_what_is_only_shown_is_not():
    _, report = measure(PLAN)
    assert report.score == 1
    assert values(report) == {1: 1, 2: 0, 3: 1, "calc": 1, "spare": 0, (3, 1): 1, (3, 2): 0}
    assert report.needed_share == pytest.approx(3 / 5)


def test_only_what_may_see_what_is_removed_is_called_again(monkeypatch):
    episode, _ = measure(PLAN)
    rerun = {
        (removal.kind, removal.steps, removal.source): find_rerun(episode, removal)
        for removal in list_removals(episode)
    }
    assert rerun[("step", frozenset({3}), 0)] == set() and rerun[("step", frozenset({2}), 0)] == {3}
    called = []
    real = LivePool.call

    async def watch(self, action, *rest, **more):
        called.append(dict(action.arguments)["expression"])
        return await real(self, action, *rest, **more)

    monkeypatch.setattr(LivePool, "call", watch)
    measure(PLAN)
    # the run itself, then step 3 once each without step 2 and without what it sees of it; the rest cannot be called
    assert called == ["2 + 3", "7 * 7", "5 * 10", "5 * 10", "5 * 10"]


def test_a_step_that_spoils_a_right_answer_has_negative_credit_in_a_wrong_run():
    plan = Turn((sums(1, "2 + 3"), sums(2, "1 / 0"), sums(3, "$1 * 10", (1, 2))), "$3")
    _, report = measure(plan, answer=51)
    assert report.score == 0 and set(values(report).values()) == {0}


def test_credit_reaches_over_rounds():
    _, report = measure(Turn((sums(1, "2 + 3"),)), Turn((sums(2, "$1 * 10", (1,)),), "$2"))
    assert values(report)[1] == 1 and values(report)[(2, 1)] == 1


@pytest.mark.parametrize(
    ("turn", "reason"),
    [(Turn((sums(1, "2 + 3"),), "it is 5"), "written in words"), (Turn((), "5"), "no steps")],
)
def test_an_answer_that_quotes_nothing_has_no_credit_and_says_why(turn, reason):
    _, report = measure(turn, answer=5)
    assert report.credits == () and reason in report.reason and report.needed_share is None


def test_a_step_whose_call_may_have_effects_is_not_called_again():
    order = describe_worker("order", "http", "Orders.", url="https://127.0.0.1:1/order", method="POST")
    pool = Pool(name="shop", workers=(*POOL.workers, order), limits=Limits(deadline_s=5))
    plan = Turn((sums(1, "2 + 3"), Step(2, "order", {}, (1,)), sums(3, "$1 * 10", (1,))), "$3")
    _, report = measure(plan, pool=pool)
    by_step = {next(iter(credit.removal.steps)): credit for credit in report.of("step")}
    assert by_step[1].value is None and "order" in by_step[1].reason
    assert by_step[2].value == 0 and by_step[3].value == 1  # leaving it out calls it not


def test_the_reward_pays_a_right_answer_its_needed_share_and_a_wrong_one_nothing():
    terms = load_rewards([RewardSettings(term="credit", weight=1.0)])
    episode, report = measure(PLAN)
    task = make_task(TaskLine(query="q", answer=50), "sums", 0)
    sample = replace(make_sample(task, episode, POOL.limits), needed_share=report.needed_share)
    assert REWARDS["credit"].gated and score_group([sample], terms) == [{"credit": 0.0}]  # not graded yet: not right
    from orchestrator.engine.events import Graded

    episode.apply(Graded(True, "50", 1.0))
    assert score_group([sample], terms) == [{"credit": pytest.approx(0.6)}]
    assert score_group([replace(sample, needed_share=None)], terms) == [{}]


def test_what_reruns_cost_is_counted_once_for_equal_ones():
    priced = POOL.model_copy(update={"workers": tuple(w.model_copy(update={"price_call": 0.5}) for w in POOL.workers)})
    _, report = measure(PLAN, pool=priced)
    # step 3 is called again without step 2 (which is all that `spare` did) and without the access to it
    assert report.cost == pytest.approx(2 * 0.5)
