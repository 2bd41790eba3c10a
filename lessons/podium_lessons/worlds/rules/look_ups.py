"""Rules that ask for what the world says: one term, several, two fields of one individual, the members of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podium_lessons.worlds.rules.answer import Answer, join_texts, make_verifier, name_terms
from podium_lessons.worlds.rules.draw_terms import draw_terms, split_steps
from podium_lessons.worlds.terms import PlanDraft, Term, TermMaker
from pool_registry.actions import JsonValue
from trainer.tasks.verifier import SameSet, StatesAll

QUESTION_WORDS = frozenset(("What", "Who", "Which", "When", "Where", "How", "Is", "Does", "In", "On", "By", "Whose"))


def ask_term(maker: TermMaker, steps: int) -> Answer | None:
    """One term."""
    term = maker.draw("", steps)
    if term is None:
        return None
    return Answer(name_terms([term]), term.emit, make_verifier(term.value), term.questions)


def ask_several(maker: TermMaker, steps: int) -> Answer | None:
    """Ask for two terms or three; two of them also as two questions in a row."""
    count = 3 if steps > 3 and maker.random.random() < 0.5 else 2
    terms = draw_terms(maker, "", split_steps(maker.random, steps, count))
    if terms is None:
        return None
    pairs = tuple(
        f"{first} {then}{second[:1].lower()}{second[1:]}"
        for first, second in zip(terms[0].questions, terms[1].questions, strict=False)
        for then in ("And ", "And also, ")
        if len(terms) == 2 and second.split(" ")[0] in QUESTION_WORDS and first[-1:] in ".?!"
    )
    return Answer(name_terms(terms), _emit_all(terms), _verify_all(terms), pairs)


def ask_both(maker: TermMaker, steps: int) -> Answer | None:
    """Ask for two fields of one individual."""
    fit = [entity for entity in maker.table.data.entities if len(entity.fields) > 1]
    entity = maker.random.choice(fit)
    name = maker.random.choice(maker.table.names(entity.name))
    terms = [maker.look_up(entity.name, name, data) for data in maker.random.sample(entity.fields, min(steps, 2))]
    texts = {"x": terms[0].name, "p": terms[0].phrase, "q": terms[-1].phrase}
    return Answer(texts, _emit_all(terms), _verify_all(terms))


def ask_list(maker: TermMaker, steps: int) -> Answer | None:
    """The individuals with a value in a field."""
    drawn = maker.draw_field("group")
    if steps != 1 or drawn is None:
        return None
    entity, data = drawn
    table = maker.table
    value = maker.random.choice(sorted({str(record[data.name]) for record in table.records[entity].values()}))
    members = table.members(entity, data.name, value)
    tool = maker.toolkit.grouping("list", entity, data.name)
    subject = maker.name_term(value)
    texts = maker.group_texts(entity, data, subject)
    need = maker.need("list", **texts)
    texts["phrase"] = texts["target"]

    def emit(draft: PlanDraft) -> JsonValue:
        return draft.call(tool, need, {"target": subject.emit(draft)})

    return Answer(texts, emit, SameSet(tuple(members)))


def _emit_all(terms: Sequence[Term]) -> Callable[[PlanDraft], JsonValue]:
    def emit(draft: PlanDraft) -> JsonValue:
        return join_texts([term.emit(draft) for term in terms])

    return emit


def _verify_all(terms: Sequence[Term]) -> StatesAll:
    return StatesAll(tuple(term.value for term in terms))
