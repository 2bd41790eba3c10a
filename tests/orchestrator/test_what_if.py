"""What-if: which steps an edit calls anew, what they may see, and what is told before anything runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.engine.edits import AddStep, ChangeStep, RemoveStep, RunAgain, SetAnswer, WhatIf
from orchestrator.engine.episode import Episode, replay
from orchestrator.engine.events import StepStarted
from orchestrator.errors import InvalidEdits
from orchestrator.plan import Step, Turn, check_turn
from orchestrator.quotes import renumber_quotes
from orchestrator.what_if import NAME, Variation, run_variation, vary
from pool_registry.actions import NO_USAGE, Status
from tests.orchestrator.support.engine import (
    STAGE,
    Events,
    Scripted,
    a_pool,
    canary,
    codes,
    engine_kinds,
    play_turns,
    step,
)

__all__ = ["engine_kinds"]


def run(wanted: Variation, sink: Events | None = None, **limits) -> Episode:
    """The variation on a fresh stage, so that STAGE.shown tells what was called."""
    STAGE.shown.clear()

    async def once() -> Episode:
        return await run_variation(wanted, a_pool(**limits), sink=sink)

    return asyncio.run(once())


def varied(episode: Episode, *edits, round: int = 1) -> Variation:
    return vary(episode, round, edits, a_pool())


def changed(k: int, text: str, access=(), worker: str = "actor") -> ChangeStep:
    made = step(k, text, worker, access)
    return ChangeStep(k, made.worker, made.arguments, made.access)


def added(k: int, text: str, access=(), worker: str = "actor") -> AddStep:
    made = step(k, text, worker, access)
    return AddStep(k, made.worker, made.arguments, made.access)


@pytest.fixture
def diamond() -> Episode:
    """1 and 2 beside each other, 3 sees 1, 4 sees 2 and 3."""
    return play_turns(
        Turn((step(1), step(2), step(3, "$1", access=[1]), step(4, "$2 $3", access=[2, 3])), "it is $4", text="by hand")
    )


def problems(episode: Episode, *edits, round: int = 1) -> dict[str, str]:
    with pytest.raises(InvalidEdits) as raised:
        varied(episode, *edits, round=round)
    return dict(raised.value.problems)


# What runs


def test_an_edited_step_and_what_depends_on_it_run_and_the_others_keep_their_observations(diamond):
    wanted = varied(diamond, changed(3, "otherwise $1", [1]))
    assert wanted.rerun == (3, 4) and wanted.kept == {1: 1, 2: 2}
    sink = Events()
    episode = run(wanted, sink)
    assert set(STAGE.shown) == {3, 4} and "otherwise" in STAGE.shown[3]
    assert [event.step for event in sink.all() if isinstance(event, StepStarted)] == [3, 4]
    assert episode.answer == f"it is {canary(4)}" and episode.ended.outcome == "answered"
    for k in (1, 2):
        old, new = diamond.steps[k].observation, episode.steps[k].observation
        assert (new.value, new.status) == (old.value, old.status)
        assert (new.usage, new.latency_s) == (NO_USAGE, 0.0), "what is taken over costs nothing now"


def test_the_trace_says_what_it_varies_and_can_be_replayed(diamond):
    edits = (changed(3, "otherwise $1", [1]), SetAnswer("$3"))
    sink = Events()
    episode = run(varied(diamond, *edits), sink)
    assert episode.started.what_if == WhatIf(diamond.id, 1, edits, {1: 1, 2: 2})
    assert episode.started.orchestrator == NAME and episode.query == diamond.query
    assert replay(episode.id, sink.of[episode.id]).answer == canary(3)


def test_the_same_plan_runs_nothing(diamond):
    same = changed(3, "$1", [1])
    for wanted in (varied(diamond), varied(diamond, same)):
        assert wanted.rerun == () and set(wanted.kept) == {1, 2, 3, 4}
        assert run(wanted).answer == diamond.answer and STAGE.shown == {}


def test_only_another_answer_calls_nobody(diamond):
    episode = run(varied(diamond, SetAnswer("$1 and $2")))
    assert episode.answer == f"{canary(1)} and {canary(2)}" and STAGE.shown == {}


def test_a_step_can_be_called_again_as_it_is():
    failed = play_turns(Turn((step(1), step(2, "$1", access=[1])), "$2"), parts={1: ("fault", 0)}, max_rounds=1)
    assert codes(failed) == {1: "broken", 2: "dependency_failed"}
    STAGE.parts.clear()
    assert run(varied(failed, RunAgain(1))).answer == canary(2) and set(STAGE.shown) == {1, 2}


def test_a_new_step_may_be_seen_by_an_older_one_and_all_are_numbered_anew(diamond):
    wanted = varied(diamond, added(9, "fresh $2", [2]), changed(3, "$1 $9", [1, 9]), RemoveStep(4), SetAnswer("$3"))
    assert wanted.ids == {1: 1, 2: 2, 9: 3, 3: 4} and wanted.rerun == (3, 4)
    turn = wanted.turns[0]
    assert [one.id for one in turn.steps] == [1, 2, 3, 4] and turn.answer == "$4"
    assert turn.steps[3].access == (1, 3) and turn.steps[3].arguments["text"] == "#3 $1 $3"
    assert run(wanted).answer == canary(3) and canary(9) in STAGE.shown[3]


def test_later_rounds_are_dropped_and_earlier_ones_taken_over():
    first = Turn((step(1), step(2)), text="one")
    recorded = play_turns(first, Turn((step(3, "$1", access=[1]), step(4))), Turn((step(5),), "$5"))
    wanted = varied(recorded, changed(4, "otherwise $2", [2]), SetAnswer("$3 $4"), round=2)
    assert wanted.dropped == 1 and wanted.kept == {1: 1, 2: 2, 3: 3} and wanted.rerun == (4,)
    episode = run(wanted)
    assert len(episode.rounds) == 2 and episode.rounds[0].turn.text == "one"
    assert episode.answer == f"{canary(3)} {canary(4)}" and set(STAGE.shown) == {4}
    assert canary(2) in STAGE.shown[4]


def test_a_round_that_was_no_turn_can_be_written():
    recorded = play_turns(Turn(error="no JSON", text="hm"), max_rounds=1)
    episode = run(varied(recorded, added(1, ""), added(2, "$1", [1]), SetAnswer("$2")))
    assert episode.answer == canary(2) and episode.rounds[0].turn.error is None


def test_a_step_that_was_cut_off_without_an_observation_runs():
    recorded = play_turns(Turn((step(1), step(2))), max_rounds=1)
    recorded.steps[2].observation = None  # its process was killed
    assert varied(recorded, SetAnswer("$1")).rerun == (2,)


def test_an_edited_plan_is_written_as_an_orchestrator_would_have_written_it(diamond):
    from orchestrator.dialects.plan_json import PlanDialect

    turn = varied(diamond, RemoveStep(4), SetAnswer("$3 costs $$5")).turns[0]
    parsed = check_turn(PlanDialect().parse(turn.text, 1, []), a_pool(), ())
    assert parsed.steps == turn.steps and parsed.answer == "$3 costs $$5"


def test_an_answer_of_a_failed_step_ends_the_what_if_with_a_reason(diamond):
    STAGE.parts[3] = ("fault", 0.0)
    episode = run(varied(diamond, changed(3, "otherwise", [1])))
    assert episode.ended.outcome == "orchestrator_failed" and "a step that failed" in episode.ended.reason
    assert "no answer" in run(varied(diamond, SetAnswer(None))).ended.reason


def test_the_limit_of_rounds_is_no_obstacle():
    recorded = play_turns(Turn((step(1),)), Turn((step(2),), "$2"), max_rounds=2)
    assert run(varied(recorded, SetAnswer("$1"), round=2), max_rounds=1).answer == canary(1)


def test_inner_episodes_run_under_the_recorded_orchestrator():
    inner = Turn((step(1, "ask", "inner"),), "$1")
    asked = []

    def resolve(name, query, pool):
        asked.append(name)
        return Scripted(Turn(answer="from inside"))

    recorded = play_turns(inner, resolve=resolve)

    async def once() -> Episode:
        return await run_variation(varied(recorded, RunAgain(1)), a_pool(), resolve=resolve)

    assert asyncio.run(once()).answer == "from inside" and asked == ["scripted", "scripted"]


# What is told before anything runs


def test_every_problem_is_told_at_its_step(diamond):
    told = problems(
        diamond,
        changed(1, "x", worker="nobody"),
        changed(2, "$1"),
        ChangeStep(3, "number", {"value": "many"}),
        added(8, "x", [8]),
        SetAnswer("$77"),
    )
    assert "there is no worker" in told["1"] and "not in access" in told["2"]
    assert "value" in told["3"] and "itself" in told["8"] and "$77" in told["answer"]


@pytest.mark.parametrize(
    ("edits", "where", "said"),
    [
        ([RemoveStep(3)], "4", "step 3, which is removed"),
        ([RemoveStep(4)], "answer", "$4"),
        ([changed(3, "$4", [4])], "3", "wait for each other"),
        ([changed(9, "x")], "9", "no step 9"),
        ([added(3, "x")], "3", "already"),
        ([added(0, "x")], "0", "1 or more"),
        ([RemoveStep(1), changed(1, "x")], "1", "two edits"),
        ([SetAnswer("a"), SetAnswer("b")], "answer", "two edits"),
        ([changed(1, "x", [55])], "1", "55"),
        ([ChangeStep(1, "actor", {"text": object()})], "1", "arguments"),
        ([SetAnswer(float("nan"))], "answer", "cannot be kept"),
    ],
)
def test_edits_that_break_a_rule_are_refused(diamond, edits, where, said):
    assert said in problems(diamond, *edits)[where]


def test_one_round_is_edited_at_a_time():
    recorded = play_turns(Turn((step(1),)), Turn((step(2),), "$2"))
    assert "round 1" in problems(recorded, changed(1, "x"), round=2)["1"]
    assert "no round 9" in problems(recorded, changed(1, "x"), round=9)[""]


def test_a_step_that_was_malformed_stays_as_it_was_and_can_be_mended():
    recorded = play_turns(Turn((step(1), step(2, "$1"))), max_rounds=1)
    assert codes(recorded)[2] == "malformed_step"
    assert varied(recorded, changed(1, "otherwise")).kept == {2: 2}, "nothing can change how it ended"
    assert run(varied(recorded, changed(2, "$1", [1]), SetAnswer("$2"))).answer == canary(2)


@given(st.text("a$120 ", max_size=12), st.dictionaries(st.integers(1, 20), st.integers(1, 999)))
def test_quotes_are_renumbered_and_dollars_stay(text, ids):
    """Against a second way to say it: split at `$$`, which quotes nothing, and replace in between."""
    import re

    def between(part: str) -> str:
        return re.sub(r"\$([1-9][0-9]{0,5})", lambda m: f"${ids.get(int(m[1]), m[1])}", part)

    expected, rest = "", text
    while (at := rest.find("$$")) >= 0:
        expected, rest = expected + between(rest[:at]) + "$$", rest[at + 2 :]
    assert renumber_quotes({"x": [text]}, ids) == {"x": [expected + between(rest)]}


# Properties


@st.composite
def recorded_and_edits(draw):
    """An episode of two rounds of random plans, and random edits of one of them that break no rule."""
    first = draw(st.integers(1, 4))
    last = first + draw(st.integers(1, 5))
    plan = {k: draw(st.sets(st.integers(1, k - 1), max_size=3)) if k > 1 else set() for k in range(1, last + 1)}
    number = draw(st.sampled_from([1, 2]))
    here = list(range(1, first + 1)) if number == 1 else list(range(first + 1, last + 1))
    earlier = [] if number == 1 else list(range(1, first + 1))
    edits, plan_now = [], {k: set(plan[k]) for k in here}
    removed = draw(st.sets(st.sampled_from(here), max_size=1))
    for k in removed:
        edits.append(RemoveStep(k))
        del plan_now[k]
    fresh = last + draw(st.integers(1, 5))
    if draw(st.booleans()):
        access = draw(st.sets(st.sampled_from([*earlier, *plan_now] or [0]), max_size=2)) - {0}
        plan_now[fresh] = access
        edits.append(added(fresh, quoting(access), sorted(access)))
    for k in [k for k in plan_now if k != fresh]:
        orphan = bool(plan_now[k] & removed)
        what = "change" if orphan else draw(st.sampled_from(["keep", "keep", "keep", "change", "again"]))
        if what == "again":
            edits.append(RunAgain(k))
        elif what == "change":
            allowed = [*earlier, *(other for other in plan_now if other < k)]
            access = draw(st.sets(st.sampled_from(allowed), max_size=3)) if allowed else set()
            plan_now[k] = access
            edits.append(changed(k, f"edited {quoting(access)}", sorted(access)))
    edits.append(SetAnswer("done"))
    return plan, first, number, draw(st.permutations(edits)), plan_now


def quoting(access) -> str:
    return " ".join(f"${k}" for k in sorted(access))


def play(plan: dict[int, set[int]], first: int) -> Episode:
    steps = [step(k, quoting(access), access=sorted(access)) for k, access in plan.items()]
    return play_turns(Turn(tuple(steps[:first])), Turn(tuple(steps[first:])), Turn(answer="x"))


def seeing(plan_now: dict[int, set[int]], touched: set[int]) -> set[int]:
    """All that may see a touched step through others, by looking until nothing is new."""
    found = set(touched)
    while True:
        more = {k for k, access in plan_now.items() if access & found} - found
        if not more:
            return found
        found |= more


@settings(max_examples=120, deadline=None)
@given(recorded_and_edits())
def test_what_is_called_is_exactly_what_an_edit_reaches_and_access_stays_enforced(drawn):
    plan, first, number, edits, plan_now = drawn
    recorded = play(plan, first)
    wanted = varied(recorded, *edits, round=number)
    touched = {edit.step for edit in edits if isinstance(edit, ChangeStep | AddStep | RunAgain)}
    called = seeing(plan_now, touched)
    old = {new: k for k, new in wanted.ids.items()}
    assert {old[new] for new in wanted.rerun} == called
    assert set(wanted.kept) == {new for new in old if old[new] not in called}
    episode = run(wanted)
    assert set(STAGE.shown) == called
    assert list(episode.steps) == list(range(1, len(episode.steps) + 1))
    for k in called:
        seen = {other for other in old.values() if canary(other) in STAGE.shown[k]}
        assert seen == plan_now[k], "a step sees its access list and nothing else"
    for new, k in wanted.kept.items():
        assert episode.steps[new].observation.value == canary(k)
    assert all(run.observation.status is Status.OK for run in episode.steps.values())


@settings(max_examples=60, deadline=None)
@given(recorded_and_edits())
def test_an_unedited_plan_calls_nobody_whatever_it_is(drawn):
    plan, first, number, *_ = drawn
    recorded = play(plan, first)
    wanted = varied(recorded, round=number)
    assert wanted.rerun == () and [turn.steps for turn in wanted.turns] == [
        tuple(replace(run.step) for run in done.steps) for done in recorded.rounds[:number]
    ]


_step = st.builds(
    Step,
    st.integers(-1, 9),
    st.sampled_from(["actor", "agent", "nobody", ""]),
    st.dictionaries(st.sampled_from(["text", "instruction", "x"]), st.text("$123 ", max_size=6) | st.integers()),
    st.lists(st.integers(-1, 9), max_size=3).map(tuple),
)
_edits = st.lists(
    st.one_of(
        _step.map(lambda s: ChangeStep(s.id, s.worker, s.arguments, s.access)),
        _step.map(lambda s: AddStep(s.id, s.worker, s.arguments, s.access)),
        st.builds(RemoveStep, st.integers(-1, 9)),
        st.builds(RunAgain, st.integers(-1, 9)),
        st.builds(SetAnswer, st.none() | st.text("$1234 ", max_size=6)),
    ),
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(_edits, st.integers(0, 3))
def test_any_edits_either_are_refused_with_reasons_or_run_to_an_end(edits, number):
    recorded = play_turns(Turn((step(1), step(2, "$1", access=[1]))), Turn((step(3, "$9", access=[1]),), "$3"))
    try:
        wanted = varied(recorded, *edits, round=number)
    except InvalidEdits as error:
        assert error.problems and all(said for _, said in error.problems) and str(error)
        return
    assert run(wanted).ended is not None
