"""Variants of demonstrations: what is quoted changes everywhere alike, and nothing else does."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from trainer.demonstrations.renamed_copies import find_quoted_words, make_similar_word, make_variants
from trainer.demonstrations.transcripts import Demonstration, DemonstrationMessage


def demonstration(query: str, *turns: str) -> Demonstration:
    messages = [DemonstrationMessage(role="user", content=query)]
    for turn in turns:
        messages += [
            DemonstrationMessage(role="assistant", content=turn, learn=True),
            DemonstrationMessage(role="user", content="seen"),
        ]
    return Demonstration(messages=messages[:-1], query=query, episode="e1", source="teacher")


ROWS = [
    demonstration(f"What is the area of {name} in {unit}?", f'find "{name}", then convert to {unit}')
    for name in ("Mongolia", "Haiti", "Saint Kitts", "Peru")
    for unit in ("acres", "Acres")
] * 20


def test_only_what_a_turn_quotes_counts_as_a_quote():
    row = demonstration("Add 1101 and 12 for Haiti, Peru and GBP.", "sum 1101, 12 in GBP for Haiti")
    # 12 is too short: it may stand in a turn for other reasons
    assert find_quoted_words(row) == ["1101", "Haiti", "GBP"]


def test_names_change_in_the_query_and_in_every_turn_alike():
    row = demonstration("The area of Haiti?", 'find "Haiti"', 'find "Haiti" again')
    (made,) = make_variants([row], 1, 0)
    new = made.query.removeprefix("The area of ").removesuffix("?")
    assert new != "Haiti" and new.istitle()
    assert [said.content for said in made.messages] == [
        f"The area of {new}?", f'find "{new}"', "seen", f'find "{new}" again',
    ]  # fmt: skip
    assert [said.learn for said in made.messages] == [said.learn for said in row.messages]
    assert made.source == "made up" and made.episode == row.episode


def test_what_many_demonstrations_quote_is_the_language_of_the_task():
    assert all("Acres" in made.query or "acres" in made.query for made in make_variants(ROWS, 1, 0))


def test_a_demonstration_that_quotes_nothing_rare_has_no_variant():
    assert list(make_variants([demonstration("Say hello", "hello")], 3, 0)) == []


def test_variants_differ_and_the_same_seed_gives_the_same():
    row = demonstration("The area of Haiti, 1804?", "Haiti 1804")
    made = [each.query for each in make_variants([row], 4, 7)]
    assert len(set(made)) == 4 and made == [each.query for each in make_variants([row], 4, 7)]


@given(st.integers(), st.sampled_from(["1804", "GBP", "Haiti"]))
def test_a_made_up_word_is_of_the_same_sort(seed, word):
    found = make_similar_word(word, Random(seed))
    assert found.isdigit() == word.isdigit() and found.isupper() == word.isupper()
