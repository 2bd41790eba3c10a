"""Near-duplicates share a split, whatever is accepted in which order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.retrieval import sentence_vectors
from trainer.errors import UnusableTasks
from trainer.tasks.suite import SPLITS
from trainer.traffic.near_duplicates import choose_split, find_near, group_near

pytestmark = pytest.mark.medium
WORDINGS = [
    "What is the weather in Paris?", "How is the weather in Paris today?", "Paris weather please",
    "What is the weather in Rome?", "Rome weather please", "Who is assigned to T-101?", "Tell me the assignee of T-101",
    "Who is assigned to T-102?", "What is the capital of France?", "What's France's capital city?",
]  # fmt: skip


@pytest.fixture
def by_meaning():
    if sentence_vectors.find_weights() is None:
        pytest.skip("the sentence model is not installed")


def list_pairs(texts):
    return {(texts[i], texts[j]) for i, j in find_near(texts, texts) if i < j}


def test_other_words_for_the_same_are_near_and_other_numbers_or_names_are_not(by_meaning):
    pairs = list_pairs(WORDINGS)
    assert ("What is the weather in Paris?", "How is the weather in Paris today?") in pairs
    assert ("What is the capital of France?", "What's France's capital city?") in pairs
    assert not any("T-101" in one and "T-102" in other for one, other in pairs)
    assert not any("Paris" in one and "Rome" in other for one, other in pairs)


def test_without_the_sentence_model_common_words_decide(monkeypatch):
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)
    texts = ["Which lamps cost less than 20 euros?", "lamps that cost less than 20 euros", "Which chairs are red?"]
    assert list_pairs(texts) == {(texts[0], texts[1])}


def test_a_chain_of_near_duplicates_is_one_group(by_meaning):
    groups = dict(zip(WORDINGS, group_near(WORDINGS), strict=True))
    assert len({groups[text] for text in WORDINGS[:3]}) == 1 and groups[WORDINGS[0]] != groups[WORDINGS[3]]


def test_those_with_the_same_numbers_share_a_split_though_they_may_not_mean_the_same(by_meaning):
    texts = ["What is 6 * 7?", "Compute 6*7 for me", "Compute 6*8 for me"]
    groups = group_near(texts)
    assert groups[0] == groups[1] != groups[2] and len(set(group_near(texts, same=True))) == 3


def test_a_new_task_follows_its_near_duplicates_and_a_split_that_would_leak_is_refused(by_meaning):
    tasks = [("What is the weather in Paris?", "test")]
    assert choose_split(["How is the weather in Paris today?"], tasks) == "test"
    with pytest.raises(UnusableTasks, match="in train it would leak"):
        choose_split(["How is the weather in Paris today?"], tasks, "train")
    both = [*tasks, ("How's the weather in Paris today?", "train")]
    with pytest.raises(UnusableTasks, match="several splits"):
        choose_split(["How is the weather in Paris today?"], both)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(WORDINGS), st.sampled_from(["", *SPLITS])), max_size=12))
def test_no_order_of_choices_puts_near_duplicates_into_two_splits(choices):
    tasks: list[tuple[str, str]] = []
    for query, chosen in choices:
        try:
            tasks.append((query, choose_split([query], tasks, chosen)))
        except UnusableTasks:
            continue
    texts = [text for text, _ in tasks]
    assert all(tasks[i][1] == tasks[j][1] for i, j in find_near(texts, texts))
