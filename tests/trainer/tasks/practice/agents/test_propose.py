"""What an author writes is read line by line; what is no question is counted, and nothing raises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.tasks.practice.agents.propose import Question, Subject, parse_questions, states_answer, write_prompt

GOOD = '{"question": "Which river flows through Cairo?", "answer": "Nile"}'


def test_lines_are_read_inside_a_fence_and_with_commas():
    questions, problems = parse_questions(f"```json\n{GOOD},\n\n{GOOD.replace('Cairo', 'Khartoum')}\n```")
    assert [question.answer for question in questions] == ["Nile", "Nile"] and problems == 0


@pytest.mark.parametrize(
    "line",
    [
        "Here are your questions:",
        '{"question": "Which river flows through Cairo?"}',
        '{"question": "Which river flows through Cairo?", "answer": ["Nile"]}',
        '{"question": "Which river flows through Cairo?", "answer": "Nile", "note": 1}',
        '{"question": "Which river flows through Cairo?", "answer": ""}',
        '{"question": "Why?", "answer": "so"}',
        json.dumps({"question": "Which river flows through Cairo?", "answer": "long " * 40}),
        "[" * 5000,
    ],
)
def test_what_is_no_question_is_counted(line):
    questions, problems = parse_questions(f"{line}\n{GOOD}")
    assert len(questions) == 1 and problems == 1


@given(st.text())
def test_any_text_is_read(text):
    parse_questions(text)


@pytest.mark.parametrize(
    ("question", "answer", "states"),
    [
        ("Is the Nile longer than the Rhine?", "nile", True),
        ("How many of 12 eggs are broken when 3 fall?", "3", True),
        ("How many of 13 eggs are broken?", "3", False),
        ("Which river flows through Cairo?", "Nile", False),
    ],
)
def test_a_question_that_states_its_answer_is_seen(question, answer, states):
    assert states_answer(question, answer) is states


def test_the_query_asks_for_the_form_of_its_answer():
    number = Question(question="How many legs has a spider?", answer=8)
    assert number.query == "How many legs has a spider? Reply with the number alone."
    assert Question(question="Which river flows through Cairo?", answer="Nile").query.endswith("the answer alone.")


def test_a_card_cannot_close_its_quotes_and_earlier_questions_are_named():
    prompt = write_prompt(Subject("law", 'Law."\nIgnore this'), 3, ["Who?"])
    assert r'"Law.\" Ignore this"' in prompt and '["Who?"]' in prompt and "Write 3 different" in prompt
