"""Rewards: what an episode earns for being right, well-formed, different and economical."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.events import Graded, TaskRef
from orchestrator.plan import Step, Turn
from pool_registry.pool import Limits
from tests.orchestrator.support.engine import engine_kinds, play_turns, step  # noqa: F401
from trainer.errors import InvalidRecipe
from trainer.grpo.rewards import (
    REWARDS,
    Sample,
    are_equal,
    compute_advantages,
    compute_worker_shares,
    load_rewards,
    make_sample,
    score_group,
    sum_weighted,
)
from trainer.recipe import RewardSettings
from trainer.tasks.task import Task
from trainer.tasks.verifier import ExactText

TASK = Task(TaskRef("own", 1, "train", 0), "q", ExactText("right"))
NONSENSE = Turn(error="no turn", text="blah")


def sample(*turns: Turn, correct: bool = True, limits: Limits | None = None, parts=None, **kinds) -> Sample:
    """The graded episode of these turns."""
    limits = limits or Limits(max_rounds=max(1, len(turns)), max_steps=10)
    episode = play_turns(*turns, parts=parts, max_rounds=limits.max_rounds, max_steps=limits.max_steps)
    episode.apply(Graded(correct, "right", episode.last_at))
    return make_sample(TASK, episode, limits)


def scored(name: str, *group: Sample) -> list[float]:
    return [each[name] for each in score_group(group, {name: (REWARDS[name].function, 1.0)})]


def test_accuracy_is_the_verifiers_word():
    turn = Turn((step(1),), "$1")
    assert scored("accuracy", sample(turn), sample(turn, correct=False)) == [1.0, 0.0]


def test_format_is_the_share_of_turns_times_the_share_of_well_formed_steps():
    good, answer = Turn((step(1),), None), Turn((), "x")
    half_bad = Turn((step(1), Step(2, "nobody", {})), "$1")
    assert scored("format", sample(good, answer)) == [1.0]
    assert scored("format", sample(Turn((), "x"))) == [1.0]
    assert scored("format", sample(NONSENSE)) == [0.0]
    assert scored("format", sample(NONSENSE, answer)) == [0.5]
    assert scored("format", sample(half_bad)) == [0.5]
    assert scored("format", sample(NONSENSE, half_bad)) == [0.25]


def test_a_worker_that_fails_is_no_fault_of_the_format():
    assert scored("format", sample(Turn((step(1),), "x"), parts={1: ("raise", 0.0)})) == [1.0]


def test_diversity_is_how_far_an_episode_is_from_the_others_of_its_group():
    actor, agent, both = (
        Turn((step(1),), "x"),
        Turn((step(1, worker="agent"),), "x"),
        Turn((step(1), step(2, worker="agent")), "x"),
    )
    assert scored("diversity", *[sample(actor) for _ in range(3)]) == [0.0, 0.0, 0.0]
    assert scored("diversity", sample(actor), sample(agent)) == [1.0, 1.0]
    assert scored("diversity", sample(actor), sample(both)) == [0.5, 0.5]
    assert scored("diversity", sample(actor), sample(actor), sample(agent)) == [0.5, 0.5, 1.0]
    assert scored("diversity", sample(actor)) == [0.0]


def test_efficiency_prefers_fewer_rounds_and_steps():
    limits = Limits(max_rounds=4, max_steps=10)
    one = sample(Turn((step(1),), "$1"), limits=limits)
    many = sample(Turn(tuple(step(k) for k in range(1, 6)), "$1"), limits=limits)
    rounds = sample(Turn((step(1),), None), Turn((), "$1"), limits=limits)
    efficient, wordy, slow = scored("efficiency", one, many, rounds)
    assert efficient == pytest.approx((1 + 0.9 + 1) / 3, abs=0.01)
    assert wordy == pytest.approx((1 + 0.5 + 1) / 3, abs=0.01) and slow == pytest.approx(
        (2 / 3 + 0.9 + 1) / 3, abs=0.01
    )


def test_silence_is_not_efficient():
    assert scored("efficiency", sample(NONSENSE)) == [0.0]


def test_a_term_of_ones_own_is_loaded_and_kept_between_0_and_1(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def bold(sample, group):\n    return {0: None, 1: 7, 2: -3}[len(sample.episode.steps)]\n")
    terms = load_rewards([RewardSettings(term="accuracy"), RewardSettings(term=f"{file}:bold", weight=0.5)])
    group = [sample(Turn((), "x")), sample(Turn((step(1),), "x")), sample(Turn((step(1), step(2)), "x"))]
    found = score_group(group, terms)
    assert found == [{"accuracy": 1.0}, {"accuracy": 1.0, "bold": 1.0}, {"accuracy": 1.0, "bold": 0.0}]
    assert [sum_weighted(each, terms) for each in found] == [1.0, 1.5, 1.0]


@pytest.mark.parametrize(
    ("term", "said"),
    [
        ("cleverness", "use one of accuracy, format, diversity, efficiency"),
        ("nowhere.py:f", "there is no Python file nowhere.py"),
        ("{folder}/broken.py:f", "cannot be loaded: SyntaxError"),
        ("{folder}/fine.py:g", "has no function 'g'"),
    ],
)
def test_a_term_that_cannot_be_used_is_told_at_its_key(tmp_path, term, said):
    (tmp_path / "broken.py").write_text("def")
    (tmp_path / "fine.py").write_text("def f(sample, group): return 1")
    with pytest.raises(InvalidRecipe, match=said) as caught:
        load_rewards([RewardSettings(term="accuracy"), RewardSettings(term=term.format(folder=tmp_path))])
    assert caught.value.problems[0][0] == "grpo.rewards.1.term"


def test_a_term_that_is_there_twice_is_refused():
    with pytest.raises(InvalidRecipe, match="twice"):
        load_rewards([RewardSettings(term="format"), RewardSettings(term="format")])


REWARD_LISTS = st.lists(st.floats(0, 10), min_size=1, max_size=16)


@given(REWARD_LISTS, st.sampled_from(["group", "batch", "none"]))
def test_advantages_sum_to_nothing_and_keep_the_order(rewards, scale):
    found = compute_advantages(rewards, scale)
    assert sum(found) == pytest.approx(0, abs=1e-6)
    order = sorted(range(len(rewards)), key=rewards.__getitem__)
    assert all(found[a] <= found[b] + 1e-9 for a, b in pairwise(order))


@given(REWARD_LISTS)
def test_a_group_of_equals_teaches_nothing(rewards):
    equal = [rewards[0]] * len(rewards)
    assert are_equal(equal) and all(abs(each) < 1e-6 for each in compute_advantages(equal, "group"))
    assert are_equal(rewards) == (max(rewards) - min(rewards) < 1e-6)


def test_the_clock_does_not_make_equals_differ():
    """Three runs of one plan take unlike times and earn the same; a single step more among hundreds counts."""
    terms = load_rewards([RewardSettings(term="accuracy"), RewardSettings(term="efficiency", weight=0.1)])
    short, long = Turn((step(1),), "$1"), Turn((step(1), step(2)), "$1")
    limits = Limits(max_rounds=2, max_steps=200, deadline_s=60)

    def rewards(*group: Sample) -> list[float]:
        return [sum_weighted(each, terms) for each in score_group(group, terms)]

    runs = [sample(short, limits=limits) for _ in range(3)]
    assert len({run.totals.critical_path_s for run in runs}) > 1 and are_equal(rewards(*runs))
    assert not are_equal(rewards(sample(short, limits=limits), sample(long, limits=limits)))


def test_worker_shares_sum_to_one():
    shares = compute_worker_shares([sample(Turn((step(1), step(2), step(3, worker="agent")), "x"))])
    assert shares == {"actor": pytest.approx(2 / 3), "agent": pytest.approx(1 / 3)}
    assert compute_worker_shares([sample(Turn((), "x"))]) == {}
