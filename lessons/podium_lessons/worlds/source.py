"""The task source `worlds`: generated worlds, four tasks to a pool.

Each group of tasks has a world of its own (a domain with a seed) and a pool of its own: the tools that its queries
need, cut, named and described by the draw, among others that they do not need. All of it follows from the split, the
seed and the group's number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import count as count_up
from random import Random

from orchestrator.engine.events import TaskRef
from orchestrator.plan import Turn
from orchestrator.reader.refusal import refuse
from podium_lessons.worlds.rules.grammar import MAX_STEPS, MIN_STEPS, Question, write_question
from podium_lessons.worlds.spelling import fill_text, spell_out
from podium_lessons.worlds.tables import make_table
from podium_lessons.worlds.terms import TermMaker
from podium_lessons.worlds.tools.toolkit import Toolkit
from podium_lessons.worlds.word_banks import list_held_out_texts, list_learnt_texts, load_words
from podium_lessons.worlds.worker import Shape
from podium_lessons.worlds.world_data import list_worlds, load_world
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.errors import UnknownTask
from trainer.tasks.sources.source import check_levels, check_split
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task
from trainer.tasks.verifier import RefusalVerifier

FAMILY = "worlds"
HELD_OUT = "held_out"
VERSION = 1
GROUP = 4  # tasks that share a pool
SEEDS = 2**26  # of worlds
MAX_DRAWS = 60
MAX_STEPS_OF_ALL = 6
REFUSED_SHARE = 0.1
LEVEL_STEPS = {1: (1, 2), 2: (3, 4), 3: (5, 6)}
LOWER_SHARE = 0.06  # of queries: typed in small letters throughout
IRREPLACEABLE = ("get", "find_note", "note_about")  # what a calculator, a list or a count cannot make up for
GENERALS = ("calculate", "days_between", "add_days", "larger", "threshold", "units", "arithmetic")


class WorldSource:
    """Tasks on generated worlds. `held_out_words` chooses the wordings of tools and queries: those that are kept for
    the test split, or those of training; None lets the split decide."""

    levels = tuple(LEVEL_STEPS)

    def __init__(self, domains: Sequence[str], name: str = FAMILY, held_out_words: bool | None = None) -> None:
        self.name = name
        self.domains = tuple(domains)
        self._held_out_words = held_out_words

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        """`count` tasks, four in a row on one pool. Raises UnknownTask."""
        check_split(split)
        bands = check_levels(levels, tuple(LEVEL_STEPS))
        tasks: list[Task] = []
        seeds: set[tuple[str, int]] = set()
        for group in count_up():
            if len(tasks) >= count:
                return tasks[:count]
            random = make_random(f"{VERSION}/worlds/{','.join(self.domains)}/{split}/{seed}/{bands}/{group}")
            domain = random.choice(self.domains)
            world = random.randrange(SEEDS)
            if (domain, world) not in seeds:
                seeds.add((domain, world))
                tasks += _Group(domain, world, self.domains, self._uses_held_out_words(split), random).tasks(
                    split, bands
                )
        raise AssertionError("count_up never ends")

    def _uses_held_out_words(self, split: str) -> bool:
        return split == "test" if self._held_out_words is None else self._held_out_words


def open_worlds(argument: str = "") -> WorldSource:
    """The source that a recipe names: all domains to learn from, those named, or `held_out`. Raises UnknownTask."""
    there = list_worlds()
    if argument == HELD_OUT or not argument:
        chosen = [name for name in there if load_world(name).held_out == bool(argument)]
    else:
        chosen = [part.strip() for part in argument.split(",") if part.strip()]
    learnt = [name for name in there if not load_world(name).held_out]
    unknown = [name for name in chosen if name not in (there if argument == HELD_OUT else learnt)]
    if unknown or not chosen:
        what = f"no domain {unknown[0]!r}" if unknown else "no domain"
        raise UnknownTask(f"there is {what} to learn from; use {HELD_OUT} or some of: {', '.join(learnt)}")
    return WorldSource(chosen, f"{FAMILY}:{argument}" if argument else FAMILY)


class _Group:
    """Tasks that share a world and a pool."""

    def __init__(self, domain: str, seed: int, domains: Sequence[str], held_out_words: bool, random: Random) -> None:
        self._table = make_table(domain, seed)
        self._domains = domains
        self._held_out = held_out_words
        self._random = random
        self._words = load_words()
        self._toolkit = Toolkit(self._table, random, held_out_words)

    def tasks(self, split: str, levels: tuple[int, ...]) -> list[Task]:
        """The tasks of the group. Those that are to be refused are drawn last, when the pool stands."""
        bands = [self._random.choice(levels) for _ in range(GROUP)]
        refused = [self._random.random() < REFUSED_SHARE for _ in bands]
        questions = [None if no else self._draw_question(level) for level, no in zip(bands, refused, strict=True)]
        self._add_others()
        pool = self._toolkit.make_pool()
        tasks = []
        for place, (level, question) in enumerate(zip(bands, questions, strict=True)):
            ref = TaskRef(FAMILY, level, split, self._table.seed * GROUP + place, VERSION)
            tasks.append(_make_task(ref, question or self._refuse(level), pool))
        return tasks

    def _draw_question(self, level: int) -> Question:
        """A question with a number of steps from the level's band; the tools that it needs are added."""
        for _ in range(MAX_DRAWS):
            question, toolkit = self._try_question(level)
            if question is not None:
                self._toolkit = toolkit
                return question
        raise AssertionError(f"{self._table.data.name} drew {MAX_DRAWS} times without a question of level {level}")

    def _try_question(self, level: int) -> tuple[Question | None, Toolkit]:
        """A question, where the drawn rule gives one, and the tools with those that it needs besides."""
        steps = self._random.randint(*LEVEL_STEPS[level])
        rules = [rule for rule in self._words.rules if self._allows(rule.name, rule.held_out, steps)]
        rule = self._random.choice(rules)
        toolkit = self._toolkit.copy()
        lower = self._random.random() < LOWER_SHARE
        maker = TermMaker(toolkit, self._random, lower)
        frame = self._frame_lower if lower else self._frame
        return write_question(rule.name, maker, steps, self._choose_texts(rule.texts), frame), toolkit

    def _frame_lower(self, query: str) -> str:
        """A question as one types it in a hurry."""
        return query.rstrip(".?").lower()

    def _allows(self, rule: str, held_out: bool, steps: int) -> bool:
        return (self._held_out or not held_out) and MIN_STEPS[rule] <= steps <= MAX_STEPS.get(rule, MAX_STEPS_OF_ALL)

    def _choose_texts(self, bank: Sequence[str]) -> Sequence[str]:
        """Choose texts: the learnt ones in training; in the test split both, every second time those held out."""
        return list_held_out_texts(bank) if self._held_out and self._random.random() < 0.5 else list_learnt_texts(bank)

    def _frame(self, query: str) -> str:
        """A question with what people say around it, every fourth time."""
        words = self._words
        openings, endings = words.openings, words.endings
        if self._held_out and self._random.random() < 0.5:
            openings, endings = words.test_openings, words.test_endings
        draw = self._random.random()
        if draw < 0.15:
            opening = self._random.choice(openings).replace("{place}", self._table.data.place)
            return opening + (self._continue(query) if opening.rstrip().endswith(",") else query)
        if draw < 0.25 and query[-1:] in ".?!":
            return query + self._random.choice(endings)
        return query.rstrip(".?") if draw < 0.35 else query

    def _continue(self, query: str) -> str:
        """A question after a comma: its first word in small letters, where it is no name."""
        word = query.split(" ")[0].strip(",.:;?!'")
        names = (name for entity in self._table.records for name in self._table.names(entity))
        is_name = word == "I" or not word[1:].islower() or any(word in name for name in names)
        return query if is_name else query[:1].lower() + query[1:]

    def _add_others(self) -> None:
        """Add tools that no query of the group needs: of the same world, of all worlds, and of another world."""
        size = len(self._toolkit.specs)
        goal = size + self._random.randint(3, 9)
        for _ in range(MAX_DRAWS):
            if len(self._toolkit.specs) >= goal:
                break
            _add_some_tool(self._toolkit, self._random)
        if self._random.random() < 0.2:
            self._toolkit.add_agent()
        foreign = self._random.choice((0, 0, 1, 2, 3))
        others = [name for name in self._domains if name != self._table.data.name]
        if foreign and others:
            self._toolkit.add_foreign(
                self._random.sample(
                    _make_foreign(self._random.choice(others), self._random.randrange(16), self._held_out), foreign
                )
            )

    def _refuse(self, level: int) -> Question:
        """A question that no plan on this pool can answer: one beyond the domain, or one that needs a look-up or a
        note for which there is no tool."""
        draw = self._random.random()
        missing = self._draw_missing(level) if draw < 0.4 else self._ask_missing() if draw < 0.7 else None
        query, need = missing or (self._frame(self._random.choice(self._table.data.beyond)), "")
        return Question(query, Turn((), refuse(need)), RefusalVerifier())

    def _draw_missing(self, level: int) -> tuple[str, str] | None:
        """A question of the grammar for which a tool is missing that nothing else can stand in for, and the need that
        the tool would serve."""
        for _ in range(MAX_DRAWS):
            question, toolkit = self._try_question(level)
            if question is None:
                continue
            new = toolkit.abilities - self._toolkit.abilities
            missing = {toolkit.find_worker(ability) for ability in new if ability[0] in IRREPLACEABLE}
            needs = [step.need for step in question.turn.steps if step.worker in missing]
            if needs:
                return question.query, needs[0]
        return None

    def _ask_missing(self) -> tuple[str, str] | None:
        """A domain's own question about a field that no tool knows, and its need."""
        missing = [
            (entity, field)
            for entity in self._table.data.entities
            for field in entity.fields
            if not self._toolkit.covers("get", entity.name, field.name)
        ]
        if not missing:
            return None
        entity, field = self._random.choice(missing)
        name = self._random.choice(self._table.names(entity.name))
        need = fill_text(self._words.needs["get"], {"phrase": field.phrases[0], "entity": spell_out(entity.name)})
        return self._frame(self._random.choice(field.asks).replace("{x}", name)), need


def _make_task(ref: TaskRef, question: Question, pool: Pool) -> Task:
    return Task(ref, question.query, question.verifier, question.turn, pool)


def _add_some_tool(toolkit: Toolkit, random: Random) -> None:
    """One more tool of the world, unless the drawn one is there."""
    data = toolkit.table.data
    entity = random.choice(data.entities)
    draw = random.random()
    if draw < 0.35:
        field = random.choice(entity.fields)
        if not toolkit.covers("get", entity.name, field.name):
            toolkit.getter(entity.name, field.name)
    elif draw < 0.55:
        _add_grouping(toolkit, entity.name, random)
    elif draw < 0.65:
        toolkit.add_action(random.randrange(len(data.actions)))
    elif draw < 0.75 and data.converters:
        toolkit.converter(random.randrange(len(data.converters)))
    elif draw < 0.85 and data.notes:
        toolkit.note_finder(random.randrange(len(data.notes)))
        if random.random() < 0.5:
            toolkit.reader()
    else:
        toolkit.general(random.choice(GENERALS))


def _add_grouping(toolkit: Toolkit, entity: str, random: Random) -> None:
    fields = toolkit.entity(entity).fields
    groups = [field for field in fields if field.kind in ("reference", "choice")]
    numbers = [field for field in fields if field.kind == "number"]
    if not groups:
        return
    group = random.choice(groups)
    shapes: tuple[Shape, ...] = ("total", "average", "top", "list", "count") if numbers else ("list", "count")
    shape = random.choice(shapes)
    over = random.choice(numbers).name if shape in ("total", "average", "top") else ""
    toolkit.grouping(shape, entity, group.name, over)


@lru_cache(maxsize=1024)
def _make_foreign(domain: str, seed: int, held_out_words: bool) -> tuple[WorkerSpec, ...]:
    """Make the tools of another world, from which pools take some."""
    random = make_random(f"{VERSION}/foreign/{domain}/{seed}/{held_out_words}")
    toolkit = Toolkit(make_table(domain, seed), random, held_out_words)
    for entity in toolkit.table.data.entities:
        for field in entity.fields:
            if not toolkit.covers("get", entity.name, field.name):
                toolkit.getter(entity.name, field.name)
    for place in range(len(toolkit.table.data.actions)):
        toolkit.add_action(place)
    return toolkit.specs
