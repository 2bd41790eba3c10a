"""A lesson: a pool of simulated agents and four tasks for it, all drawn from its split and number.

The agents are specialists, whose cards name their topics, or generalists, whose cards say nothing of what they know and
who answer everything. A task is one question, or several of which some hang on the findings of others; in one of them
nobody knows the answer. Which agent can answer, and whether it was told what it needed, its reply shows exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from podium_lessons.agents.cards import CARD_NAMES, CARD_OPENINGS, GENERAL_CARDS, VAGUE_CARDS
from podium_lessons.agents.cases import PLAIN, Book, Case, Wording
from podium_lessons.agents.experts import EVERYBODY, NOBODY, Expert
from podium_lessons.agents.topics import Topic, load_topics, split_questions
from trainer.tasks.suite import make_random

VERSION = 3
TASKS = 4  # of a lesson
TOPICS = (3, 6)  # of a lesson
GENERALISTS = (2, 5)
SPECIALISTS_SHARE = 0.4  # of the lessons
MIXED_SHARE = 0.2  # of the lessons: a generalist beside some specialists
UNKNOWN_SHARE = 0.35  # of the single questions to specialists: of a topic that none of them has
PLAIN_SHARE = 0.2  # of the tasks: without numbers
PRICES = (0.2, 3.0)  # of a call, in cents
# The cases that each case of a task hangs on, by place; JOINED marks one that only joins the findings of others.
JOINED = "joined"
SHAPES: Mapping[str, Sequence[tuple[int | str, ...]]] = {
    "route": [()],
    "chain": [(), (0,)],
    "long_chain": [(), (0,), (1,)],
    "join": [(), (), (JOINED, 0, 1)],
    "long_join": [(), (), (), (JOINED, 0, 1, 2)],
    "fork": [(), (0,), (0,), (JOINED, 1, 2)],
}
LEVELS: Mapping[int, Sequence[str]] = {1: ("route",), 2: ("chain", "join"), 3: ("long_chain", "long_join", "fork")}
LABELS = (
    "question", "item", "ticket", "request", "matter", "file", "point", "task", "issue", "job", "no.", "#", "query",
    "entry", "problem", "ask", "exercise", "assignment", "enquiry", "Q", "part", "section", "number", "line", "order",
    "claim", "lead",
)  # fmt: skip
LAYOUTS = (
    "{question} ({ref}{given})", "{question} [{ref}{given}]", "{ref}{given}: {question}", "{ref}: {question}{given}",
    "({ref}{given}) {question}", "{ref} - {question}{given}",
)  # fmt: skip
GIVEN = (
    ", given the finding of {refs}", ", with the result of {refs}", ", once {refs} is answered", ", based on {refs}",
    ", needs {refs}", ", after {refs}", ", knowing what came out of {refs}", ", using {refs}",
)  # fmt: skip
LINKS = (" With that: ", " Once you know: ", " Then, based on it: ", "\nUse that to tell me: ", " And given that, ")
JOINS = (
    "Put the findings together", "Merge what was found", "Summarize all of the above", "Compare these findings",
    "Write one conclusion from the findings", "Combine them into one answer",
)  # fmt: skip
SEPARATORS = ("\n", "\n", " ", "\n\n", "; ")


@dataclass(frozen=True, slots=True)
class LessonTask:
    """Cases of which the last is the one to answer; `text` is the query. Nobody knows the only case where `unknown`."""

    cases: tuple[Case, ...]
    text: str
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Lesson:
    """Agents with their cards, and tasks for them."""

    experts: tuple[Expert, ...]
    cards: tuple[str, ...]
    book: Book
    tasks: tuple[LessonTask, ...]

    def find_knowing(self, case: Case) -> Expert:
        """The first agent that knows the answer to a case."""
        return next(expert for expert in self.experts if expert.skill(case.topic) > 0)


@lru_cache(maxsize=256)
def draw_lesson(split: str, number: int, levels: tuple[int, ...]) -> Lesson:
    """The lesson of this number. Training and validation share topics, but no question; those of `test` are others."""
    random = make_random(f"agents/{VERSION}/{split}/{number}/{levels}")
    there = [topic for topic in load_topics() if (topic.split == "held_out") == (split == "test")]
    topics = random.sample(there, random.randint(*TOPICS))
    draw = random.random()
    knows_all = draw >= SPECIALISTS_SHARE
    if draw < SPECIALISTS_SHARE:
        experts, cards = _draw_specialists(topics, random)
    elif draw < SPECIALISTS_SHARE + MIXED_SHARE:
        experts, cards = _draw_mixed(topics, random)
    else:
        experts, cards = _draw_generalists(len(topics), random)
    questions = [random.sample(_list_questions(topic, split), 4 * TASKS) for topic in topics]
    writer = _TaskWriter(Book(number), questions, random)
    others = [topic for topic in there if topic not in topics]
    tasks = []
    for _ in range(TASKS):
        shape = random.choice(LEVELS[random.choice(levels)])
        if shape == "route" and not knows_all and random.random() < UNKNOWN_SHARE:
            tasks.append(writer.write_unknown(random.choice(_list_questions(random.choice(others), split))))
        else:
            tasks.append(writer.write(SHAPES[shape]))
    return Lesson(experts, cards, writer.book, tuple(tasks))


def _list_questions(topic: Topic, split: str) -> Sequence[str]:
    early, late = split_questions(topic)
    return {"train": early, "validation": late}.get(split, topic.questions)


def _draw_generalists(topics: int, random: Random) -> tuple[tuple[Expert, ...], tuple[str, ...]]:
    names = _draw_names(random.randint(*GENERALISTS), random)
    experts = tuple(_make_expert(name, (1.0,) * topics, random) for name in names)
    if random.random() < 0.5:
        return experts, (_draw_general_card(random),) * len(experts)
    return experts, tuple(_draw_general_card(random) for _ in experts)


def _draw_general_card(random: Random) -> str:
    return random.choice([card for card in random.choice((GENERAL_CARDS, VAGUE_CARDS)) if card])


def _draw_mixed(topics: Sequence[Topic], random: Random) -> tuple[tuple[Expert, ...], tuple[str, ...]]:
    """Specialists, and a generalist in the place of the last of them."""
    experts, cards = _draw_specialists(topics, random)
    generalist = _make_expert(experts[-1].name, (1.0,) * len(topics), random)
    return (*experts[:-1], generalist), (*cards[:-1], _draw_general_card(random))


def _draw_specialists(topics: Sequence[Topic], random: Random) -> tuple[tuple[Expert, ...], tuple[str, ...]]:
    places = list(range(len(topics)))
    random.shuffle(places)
    experts, cards = [], []
    for place, name in zip(places, _draw_names(len(places), random), strict=True):
        experts.append(_make_expert(name, tuple(float(other == place) for other in range(len(places))), random))
        cards.append(f"{random.choice(CARD_OPENINGS)} {random.choice(topics[place].labels)}.")
    return tuple(experts), tuple(cards)


def _draw_names(amount: int, random: Random) -> list[str]:
    return random.sample([name.replace(" ", "_") for name in CARD_NAMES if name], amount)


def _make_expert(name: str, skills: tuple[float, ...], random: Random) -> Expert:
    return Expert(name, skills, round(random.uniform(*PRICES), 2), 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _TaskWriter:
    """Writes tasks into a book. `questions`: by topic; none is asked twice."""

    book: Book
    questions: Sequence[list[str]]
    random: Random

    def write(self, shape: Sequence[tuple[int | str, ...]]) -> LessonTask:
        """A task of this shape."""
        random = self.random
        wording = PLAIN if random.random() < PLAIN_SHARE and self._may_be_plain(shape) else self._draw_wording()
        cases: list[Case] = []
        for row in shape:
            given = [cases[place].number for place in row if isinstance(place, int)]
            topic = EVERYBODY if JOINED in row else random.randrange(len(self.questions))
            question = random.choice(JOINS) if JOINED in row else self.questions[topic].pop()
            cases.append(self.book.add(question, topic, given, wording))
        separator = random.choice(LINKS if wording is PLAIN else SEPARATORS)
        return LessonTask(tuple(cases), separator.join(case.text for case in cases))

    def write_unknown(self, question: str) -> LessonTask:
        """A question that nobody knows."""
        case = self.book.add(question, NOBODY, (), PLAIN)
        return LessonTask((case,), case.text, unknown=True)

    def _may_be_plain(self, shape: Sequence[tuple[int | str, ...]]) -> bool:
        """Whether words alone tell which question hangs on which: on the one before."""
        return all(row == ((place - 1,) if place else ()) for place, row in enumerate(shape))

    def _draw_wording(self) -> Wording:
        random = self.random
        label = random.choice(LABELS)
        label = label.capitalize() if random.random() < 0.3 else label
        return Wording(label, random.choice(LAYOUTS), random.choice(GIVEN))
