"""What a person accepts becomes a task of the pool, what they strike does not come back, and nothing leaks or teaches
that nobody called right."""

from __future__ import annotations

import asyncio

import pytest

from pool_registry.calls.live_pool import live_pool
from trainer.demonstrations.episode_task import Judgement, keep_run
from trainer.demonstrations.transcripts import load_starred_demonstrations
from trainer.errors import UnusableTasks
from trainer.methods.dpo.pairs import find_candidates
from trainer.methods.dpo.section import PairSettings
from trainer.recipe_sections import ModelSettings
from trainer.tasks.practice.recorded import list_recorded_arguments
from trainer.tasks.practice.stored import list_own_tasks, open_task_book
from trainer.tasks.sources.jsonl import TaskLine
from trainer.traffic.accept import Choice, accept_candidates, restore_candidates, set_consent, strike_candidates
from trainer.traffic.candidates import list_candidates

RIGHT, WRONG = Judgement(is_right=True, by="ann", place="page"), Judgement(by="ann", place="page")


def list_by_query(store):
    return {candidate.query: candidate for candidate in list_candidates(store, "shop")}


def accept(store, asked_as, **fields):
    return accept_candidates(store, "shop", [Choice(list_by_query(store)[asked_as].id, **fields)])


def test_an_accepted_candidate_is_a_task_with_its_plan_its_run_and_its_time(store, ask):
    run = ask("What is 6 * 7?", judgement=RIGHT, user="bob")
    split = list_by_query(store)["What is 6 * 7?"].split
    assert accept(store, "What is 6 * 7?").added == ["What is 6 * 7?"]
    (task,) = list_own_tasks("shop")
    assert task.expected == 42 and task.oracle_turn is not None and task.since is not None and task.ref.split == split
    (line,) = open_task_book("shop").read()
    assert line.line is not None and line.line.run is not None
    assert (line.line.run.id, line.line.run.user, line.line.run.vouched[:13]) == (run, "bob", "judged right,")
    assert list_candidates(store, "shop") == []


def test_a_corrected_plan_becomes_the_reference_plan(store, ask):
    first = ask("What is 6 * 7 + 1?", judgement=Judgement(answer="43"))
    ask("What is 6 * 7 + 1?", "6 * 7 + 1", corrects=first)
    accept(store, "What is 6 * 7 + 1?")
    (task,) = list_own_tasks("shop")
    assert task.oracle_turn is not None and task.oracle_turn.steps[0].arguments == {"expression": "6 * 7 + 1"}


def test_a_wrong_answer_teaches_nothing_until_somebody_says_what_is_right(store, ask):
    ask("What is 6 * 7 + 1?", judgement=WRONG)
    assert "needs the right answer" in next(iter(accept(store, "What is 6 * 7 + 1?").refused.values()))
    assert accept(store, "What is 6 * 7 + 1?", answer="43").added and list_own_tasks("shop")[0].oracle_turn is None


def test_what_is_disputed_waits_for_the_right_answer(store, ask):
    ask("What is six times seven?", judgement=RIGHT)
    ask("What is six times seven?", judgement=Judgement(answer="43"))
    assert accept(store, "What is six times seven?").refused
    assert accept(store, "What is six times seven?", answer="42").added


def test_personal_data_is_taken_out_or_confirmed(store, ask):
    query = "Mail 6 * 7 to ann.lee@example.com"
    ask(query, judgement=RIGHT)
    assert "an e-mail address" in next(iter(accept(store, query).refused.values()))
    assert accept(store, query, query="Mail 6 * 7 to me").added == ["Mail 6 * 7 to me"]
    assert list_candidates(store, "shop") == [], "the words before the edit do not come back"


def test_personal_data_in_a_plan_goes_with_it_where_the_query_was_edited(store, ask):
    query = "What is 4111111111111111 * 0 + 1, my card?"
    ask(query, "4111111111111111 * 0 + 1", judgement=RIGHT)
    assert accept(store, query, query="What is one?").added
    assert list_own_tasks("shop")[0].oracle_turn is None


def test_personal_data_that_is_meant_can_be_confirmed(store, ask):
    ask("Mail 6 * 7 to ann.lee@example.com", judgement=RIGHT)
    assert accept(store, "Mail 6 * 7 to ann.lee@example.com", confirmed=True).added


def test_struck_candidates_do_not_come_back_in_any_of_their_words_until_put_back(store, ask):
    ask("What is the capital of France?", judgement=RIGHT)
    ask("What's France's capital city?", judgement=RIGHT)
    digests = strike_candidates(store, "shop", [candidate.id for candidate in list_candidates(store, "shop")])
    ask("What is the capital of France?", judgement=RIGHT)
    assert list_candidates(store, "shop") == []
    restore_candidates("shop", digests)
    assert len(list_candidates(store, "shop")) == 1


def test_a_task_that_was_struck_later_does_not_come_back(store, ask):
    ask("What is 6 * 7?", judgement=RIGHT)
    accept(store, "What is 6 * 7?")
    open_task_book("shop").strike("What is 6 * 7?")
    assert list_candidates(store, "shop") == []


def test_a_near_duplicate_of_a_task_goes_into_its_split_and_into_no_other(store, ask):
    open_task_book("shop").add([TaskLine(query="What is the capital of France?", answer="Paris", split="test")])
    ask("What's France's capital city?", judgement=Judgement(answer="Paris"))
    assert list_by_query(store)["What's France's capital city?"].split == "test"
    assert "it would leak" in next(iter(accept(store, "What's France's capital city?", split="train").refused.values()))
    accept(store, "What's France's capital city?")
    assert {task.ref.split for task in list_own_tasks("shop")} == {"test"}


def test_two_who_accept_the_same_candidate_make_one_task(store, ask):
    ask("What is 6 * 7?", judgement=RIGHT)
    (candidate,) = list_candidates(store, "shop")
    accept_candidates(store, "shop", [Choice(candidate.id)])
    assert accept_candidates(store, "shop", [Choice(candidate.id)]).refused == {
        candidate.id: "it is no candidate any more: somebody has accepted or struck it, or its runs were deleted"
    }


def test_no_consent_keeps_clients_requests_out_of_every_way_to_a_task(store, ask):
    served = ask("What is 6 * 7?", judgement=RIGHT, source="served", user="app")
    with pytest.raises(UnusableTasks, match="a client's request"):
        keep_run(store, served, "shop")
    assert list_recorded_arguments(store.traces, "shop") == {}
    set_consent("shop", True)
    assert list_recorded_arguments(store.traces, "shop") == {"calc": [{"expression": "6 * 7"}]}
    assert keep_run(store, served, "shop").is_right


def test_no_consent_keeps_clients_runs_out_of_pairs_and_starred_lessons(store, ask):
    better = ask("What is 6 * 7?", judgement=RIGHT, source="served")
    ask("What is 6 * 7?", "6 * 8", judgement=WRONG, source="served")
    store.traces.star(better, True)

    async def count_starred() -> int:
        async with live_pool(store.pools.latest("shop").pool) as live:
            return len(list(load_starred_demonstrations(store.traces, live, ModelSettings(), 1)))

    assert find_candidates(store, "shop", PairSettings()) == [] and asyncio.run(count_starred()) == 0
    set_consent("shop", True)
    assert len(find_candidates(store, "shop", PairSettings())) == 1 and asyncio.run(count_starred()) == 1
