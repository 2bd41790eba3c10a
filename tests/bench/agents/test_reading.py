"""A simulated expert answers from what it reads and from nothing else, and always the same."""

from __future__ import annotations

import pytest

from bench.agents.cases import draw_tasks, make_task
from bench.agents.ground import draw_ground
from podium_lessons.agents.cases import Book
from podium_lessons.agents.experts import Expert
from podium_lessons.agents.reading import UNCLEAR, CallFails, Reader
from pool_registry.actions import Observation, Status
from pool_registry.language_models.completion import agent_messages
from pool_registry.worker import Visible

MASTER = Expert("master", (1.0,) * 4, 1.0, 0.0, 0.0)
BUNGLER = Expert("bungler", (0.0,) * 4, 1.0, 0.0, 0.0)


def draw(kind: str, seed: int = 1):
    book = Book(seed)
    return book, draw_tasks(draw_ground(seed, seen=False), book, kind, 1)[0]


def ask(reader: Reader, instruction: str, *outputs: str) -> str:
    """What an expert says, asked as the product asks."""
    visible = [Visible(k, "someone", Observation(Status.OK, text, 0.0)) for k, text in enumerate(outputs, start=1)]
    return reader.reply(agent_messages("", instruction, visible)[0].content)


def is_right(book: Book, task, reply: str) -> bool:
    return make_task(book, task).verifier.accepts(reply)


@pytest.mark.parametrize("kind", ["route", "check", "chain", "join"])
def test_who_knows_everything_answers_a_whole_query_and_who_knows_nothing_does_not(kind):
    book, task = draw(kind)
    assert is_right(book, task, ask(Reader(MASTER, book), task.query))
    assert not is_right(book, task, ask(Reader(BUNGLER, book), task.query))


def test_nobody_knows_a_topic_beyond_the_pool():
    book, task = draw("nobody")
    assert not is_right(book, task, ask(Reader(MASTER, book), task.query))
    assert is_right(book, task, "No worker of this pool can do this")


def test_a_vague_instruction_costs_the_answer():
    book, task = draw("route")
    number = task.cases[0].number
    assert ask(Reader(MASTER, book), f"Please answer the question (case {number})") == UNCLEAR
    assert ask(Reader(MASTER, book), task.cases[0].question) == UNCLEAR, "without its number nobody knows which case"


@pytest.mark.parametrize("kind", ["chain", "join"])
def test_a_missing_access_list_costs_the_answer(kind):
    book, task = draw(kind)
    *before, last = task.cases
    findings = [case.write_finding(book.find_right_token(case)) for case in before]
    reader = Reader(MASTER, book)
    assert is_right(book, task, ask(reader, last.text, *findings))
    assert not is_right(book, task, ask(reader, last.text, *findings[1:]))
    assert f"finding of case {before[0].number}" in ask(reader, last.text, *findings[1:])


def test_a_finding_may_also_stand_in_the_instruction():
    book, task = draw("chain")
    finding = task.cases[0].write_finding(book.find_right_token(task.cases[0]))
    assert is_right(book, task, ask(Reader(MASTER, book), f"{finding}\n{task.cases[1].text}"))


def test_a_wrong_finding_spoils_what_hangs_on_it():
    book, task = draw("chain")
    wrong = task.cases[0].write_finding(book.write_token(task.cases[0], (), 1))
    assert not is_right(book, task, ask(Reader(MASTER, book), task.cases[1].text, wrong))


def test_who_sees_findings_of_the_case_takes_the_most_frequent():
    book, task = draw("route")
    case = task.cases[0]
    right = case.write_finding(book.find_right_token(case))
    wrong = case.write_finding(book.write_token(case, (), 1))
    assert ask(Reader(BUNGLER, book), task.query, right, wrong, right) == right
    assert ask(Reader(MASTER, book), task.query, right, wrong, wrong) == wrong


def test_replies_hang_on_the_seed_and_not_on_the_order_of_calls():
    book = Book(1)
    queries = [task.query for task in draw_tasks(draw_ground(1, seen=False), book, "chain", 20)]
    expert = Expert("model_0", (0.5,) * 4, 1.0, 0.0, 0.0)
    replies = [Reader(expert, book).reply(query) for query in queries]
    assert replies == [Reader(expert, book).reply(query) for query in queries[::-1]][::-1]
    assert replies != [Reader(expert, Book(2, book.cases)).reply(query) for query in queries]


def test_an_expert_that_always_fails_fails():
    book, task = draw("route")
    with pytest.raises(CallFails, match="simulated"):
        Reader(Expert("broken", (1.0,) * 4, 1.0, 0.0, 1.0), book).reply(task.query)
