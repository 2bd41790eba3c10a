"""Rewards: what an episode earns for being right, well-formed, different and economical."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.engine.events import Graded, TaskRef
from orchestrator.plan import Step, Turn
from pool_registry.pool import Limits
from tests.orchestrator.support.engine import engine_kinds, play_turns, step  # noqa: F401
from trainer.errors import InvalidRecipe
from trainer.methods.grpo.rewards import (
    REWARDS,
    Sample,
    anneal_rewards,
    compute_outcome_weight,
    compute_worker_shares,
    load_rewards,
    make_sample,
    score_group,
    sum_weighted,
)
from trainer.methods.grpo.section import RewardSettings
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
    return [values[name] for values in score_group(group, load_rewards([RewardSettings(term=name)]))]


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


def test_efficiency_is_how_near_an_episode_comes_to_the_best_of_its_group():
    limits = Limits(max_rounds=4, max_steps=10)
    one = sample(Turn((step(1),), "$1"), limits=limits)
    many = sample(Turn(tuple(step(k) for k in range(1, 6)), "$1"), limits=limits)
    rounds = sample(Turn((step(1),), None), Turn((), "$1"), limits=limits)
    # Calls in a row: 2, 2, 3. Calls in all: 2, 6, 3. Nobody takes a hundredth of the deadline.
    assert scored("efficiency", one, many, rounds) == pytest.approx(
        [1, (1 + 2 / 6 + 1) / 3, (2 / 3 + 2 / 3 + 1) / 3], abs=0.01
    )
    assert scored("efficiency", many) == [1.0], "nothing is known that is better"


def test_efficiency_measures_the_critical_path():
    """Three calls at once are better than three in a row, in steps and, where they take some, in time."""
    wide = Turn(tuple(step(k) for k in (1, 2, 3)), "$3")
    chain = Turn((step(1), step(2, access=[1]), step(3, access=[2])), "$3")
    quick, slow = Limits(max_rounds=1, max_steps=10, deadline_s=60), Limits(max_rounds=1, max_steps=10, deadline_s=2)
    parts = dict.fromkeys((1, 2, 3), ("ok", 0.1))
    parallel, serial = scored("efficiency", sample(wide, limits=quick), sample(chain, limits=quick))
    assert parallel == 1 and serial == pytest.approx((2 / 4 + 1 + 1) / 3, abs=0.01)
    parallel, serial = scored(
        "efficiency", sample(wide, limits=slow, parts=parts), sample(chain, limits=slow, parts=parts)
    )
    assert parallel == 1 and serial == pytest.approx((2 / 4 + 1 + 1.5 / 2.5) / 3, abs=0.05)


def test_a_reference_plan_that_is_better_than_the_group_is_the_measure():
    plan = Turn((step(1),), "$1")
    longer = sample(Turn((step(1), step(2, access=[1])), "$2"))
    judged = replace(longer, task=replace(TASK, oracle_turn=plan))
    assert scored("efficiency", judged) == [pytest.approx((2 / 3 + 2 / 3 + 1) / 3, abs=0.01)]


def test_a_reply_from_the_cache_is_not_faster_than_the_call_that_it_repeats():
    turn, limits = Turn((step(1),), "$1"), Limits(max_rounds=1, max_steps=10, deadline_s=1)
    first, second = (sample(turn, limits=limits, parts={1: ("ok", 0.1)}) for _ in range(2))
    run = second.episode.steps[1]
    run.observation = replace(run.observation, latency_s=0.0, cached=True)
    assert scored("efficiency", first, second) == [1.0, 1.0]


def test_wrong_answers_earn_nothing_for_being_short_or_different():
    wrong = sample(Turn((), "0"), correct=False)
    right = sample(Turn((step(1),), "$1"))
    assert scored("efficiency", right, wrong) == [1.0, 0.0], "a wrong answer is nobody's measure"
    assert scored("diversity", right, wrong) == [0.5, 0.0]
    assert [name for name, term in REWARDS.built_in.items() if term.gated] == [
        "diversity",
        "efficiency",
        "binding",
        "parallelism",
        "finish",
        "credit",
    ]


def test_parallelism_is_the_share_of_steps_that_wait_for_no_other():
    wide = Turn((step(1), step(2), step(3, access=[1, 2])), "$3")
    chain = Turn((step(1), step(2, access=[1]), step(3, access=[2])), "$3")
    assert scored("parallelism", sample(wide), sample(chain)) == [pytest.approx(1 / 3), 0.0]
    assert scored("parallelism", sample(Turn((step(1),), "$1")), sample(Turn((), "x"))) == [0.0, 0.0]
    rounds = sample(Turn((step(1), step(2)), None), Turn((step(3), step(4)), None), Turn((), "x"))
    assert scored("parallelism", rounds) == [0.5], "two rounds of two"


def test_a_step_that_nobody_reads_is_not_parallelism():
    chain = (step(1), step(2, access=[1]))
    padded = sample(Turn((*chain, step(3), step(4), step(5)), "$2"))
    assert scored("parallelism", padded, sample(Turn(chain, "$2"))) == [0.0, 0.0]
    assert scored("parallelism", sample(Turn((step(1), step(2), step(3)), "$1 and $3"))) == [0.5]


def test_finish_is_the_share_of_steps_that_end_without_a_failure():
    turn = Turn((step(1), step(2), Step(3, "nobody", {}), step(4)), "$1")
    assert scored("finish", sample(turn, parts={2: ("raise", 0.0)})) == [0.5]
    assert scored("finish", sample(Turn((step(1),), "$1")), sample(Turn((), "x"))) == [1.0, 0.0]


def test_conductors_reward_is_nothing_half_or_one():
    terms = load_rewards([RewardSettings(term=term, weight=0.5) for term in ("readable", "accuracy")])
    plan = Turn((step(1), Step(2, "nobody", {})), "$1")
    cases = [sample(NONSENSE, correct=False), sample(plan, correct=False), sample(plan)]
    assert [sum_weighted(values, terms) for values in score_group(cases, terms)] == [0, 0.5, 1]
    spoilt = sample(Turn((step(1),), None), NONSENSE, correct=False)
    assert scored("readable", sample(NONSENSE, plan), spoilt) == [1.0, 0.0]


def test_a_wrong_answer_is_not_paid_for_parallel_calls():
    turn = Turn((step(1), step(2)), "$1 $2")
    for term in ("parallelism", "finish"):
        assert scored(term, sample(turn), sample(turn, correct=False))[1] == 0.0 < scored(term, sample(turn))[0]


def test_an_annealed_weight_falls_linearly_to_zero_and_the_others_stay():
    terms = load_rewards(
        [RewardSettings(term="accuracy"), RewardSettings(term="parallelism", weight=0.2, anneal=0.5)],
    )
    weights = [anneal_rewards(terms, share)["parallelism"].weight for share in (0, 0.25, 0.5, 1)]
    assert weights == pytest.approx([0.2, 0.1, 0, 0])
    assert anneal_rewards(terms, 0.9)["accuracy"].weight == 1
    assert anneal_rewards(terms, 0)["parallelism"].weight == terms["parallelism"].weight, "it begins with its weight"


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


def test_the_clock_does_not_make_equals_differ():
    """Three runs of one plan take unlike times and earn the same; a single step more among hundreds counts."""
    terms = load_rewards([RewardSettings(term="accuracy"), RewardSettings(term="efficiency", weight=0.1)])
    short, long = Turn((step(1),), "$1"), Turn((step(1), step(2)), "$1")
    limits = Limits(max_rounds=2, max_steps=200, deadline_s=60)

    def rewards(*group: Sample) -> list[float]:
        return [sum_weighted(each, terms) for each in score_group(group, terms)]

    runs = [sample(short, limits=limits) for _ in range(3)]
    assert len({run.totals.critical_path_s for run in runs}) > 1 and len(set(rewards(*runs))) == 1
    few, many = rewards(sample(short, limits=limits), sample(long, limits=limits))
    assert few > many + 0.01


def test_a_right_answer_is_worth_the_weight_of_accuracy():
    def weigh(**weights: float) -> float:
        return compute_outcome_weight(
            load_rewards([RewardSettings(term=term, weight=weight) for term, weight in weights.items()])
        )

    assert weigh(accuracy=0.5, format=0.2) == 0.5
    assert weigh(format=0.2, efficiency=0.1) == weigh(accuracy=0, format=0.2, efficiency=0.1) == pytest.approx(0.3)


def test_worker_shares_sum_to_one():
    shares = compute_worker_shares([sample(Turn((step(1), step(2), step(3, worker="agent")), "x"))])
    assert shares == {"actor": pytest.approx(2 / 3), "agent": pytest.approx(1 / 3)}
    assert compute_worker_shares([sample(Turn((), "x"))]) == {}


def test_a_reward_file_that_imports_from_the_old_address_still_works(tmp_path):
    own = tmp_path / "own.py"
    own.write_text(
        "from trainer.grpo.rewards import accuracy_reward, make_sample\n"
        "def half(sample, group):\n    return accuracy_reward(sample, group) / 2\n"
    )
    terms = load_rewards([RewardSettings(term=f"{own}:half")])
    assert score_group([sample(Turn((step(1),), "$1"))], terms) == [{"half": 0.5}]
