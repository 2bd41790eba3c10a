"""Families of the optional package reasoning-gym, with its known traps closed.

- Item i of a data set is made from seed + i, so that neighbouring seeds share their items: the splits start
  100,000,000 apart. A query that two of them could still share belongs to one split only, by its hash.
- Graders give part credit, raise on what they do not expect, and expect the bare answer.
- Some graders are won by a constant, and some run the answer as Python: those families are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from orchestrator.engine.events import TaskRef
from pool_registry.actions import JsonValue
from trainer.errors import UnknownTask, UnusableTasks
from trainer.tasks.sources.source import check_split, draw_indices
from trainer.tasks.suite import SPLITS, assign_split
from trainer.tasks.task import Task, normalize_query
from trainer.tasks.verifier import extract_answer

SIZE = 100_000
SPACING = 100_000_000
MAX_DUPLICATES = 2000  # in a row: then a family has no more to give
MAX_ANSWER_CHARS = 50_000

_CONSTANT = "one constant answer earns a third of it or more"
_RUNS = "its grader runs the answer as Python code"
_OTHER = "its items are not the same from one run to the next"
REFUSED = {
    **dict.fromkeys(
        ("circuit_logic", "coin_flip", "course_schedule", "game_of_life_halting", "isomorphic_strings",
         "polynomial_equations", "ransom_note", "self_reference", "syllogism"), _CONSTANT
    ),
    **dict.fromkeys(
        ("binary_matrix", "countdown", "intermediate_integration", "n_queens", "polynomial_multiplication",
         "puzzle24", "simple_integration", "spiral_matrix", "string_insertion"), _RUNS
    ),
    "codeio": _OTHER,
    "composite": "it only mixes other families",
    "acre": "it makes all of its items before it gives the first",
    "word_ladder": "it has too few different items",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GymVerifier:
    """Right when the family's own grader gives full marks. `entry` is the item as the package made it."""

    dataset: Any = field(repr=False, compare=False)
    entry: dict[str, Any] = field(repr=False)
    kind: str = "reasoning_gym"

    @property
    def expected(self) -> JsonValue:
        """The stored answer; None in families that have many right ones."""
        return self.entry["answer"]

    def accepts(self, answer: object) -> bool:
        text = extract_answer(answer).strip()
        if not text or len(text) > MAX_ANSWER_CHARS:
            return False
        try:
            return float(self.dataset.score_answer(text, self.entry)) > 0.999
        except Exception:  # noqa: BLE001  several of the package's graders raise on malformed answers
            return False


@dataclass(frozen=True, slots=True)
class GymFamily:
    """One family, with a data set for each split."""

    name: str
    datasets: dict[str, Any]
    size: int = SIZE

    def tasks(self, split: str, indices: Iterable[int]) -> Iterator[Task]:
        """The tasks at these indices, without those that another split owns or that came before."""
        dataset = self.datasets[split]
        seen: set[str] = set()
        idle = 0
        for index in indices:
            try:
                entry = dataset[index]
            except Exception as error:  # 100 generators by as many hands
                raise UnusableTasks(f"reasoning_gym:{self.name} failed at item {index}: {error}") from error
            key = normalize_query(entry["question"])
            if key in seen or assign_split(key) != split:
                idle += 1
                if idle > MAX_DUPLICATES:
                    return
                continue
            idle = 0
            seen.add(key)
            ref = TaskRef(f"reasoning_gym:{self.name}", 0, split, index)
            yield Task(ref, entry["question"], GymVerifier(dataset, entry))


class GymSource:
    """A family of the reasoning-gym package."""

    def __init__(self, name: str, family: GymFamily) -> None:
        self.name = name
        self._family = family

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        family = self._family
        indices = draw_indices(f"{seed}/{self.name}/{check_split(split)}", family.size)
        tasks = list(islice(family.tasks(split, indices), count))
        if not tasks:
            raise UnknownTask(f"{self.name} has no task in the split {split!r}; choose another family")
        return tasks


def open_family(name: str) -> GymFamily:
    """Raises UnknownTask for a family there is not or that is refused, UnusableTasks without the package."""
    try:
        from reasoning_gym.factory import DATASETS, create_dataset
    except ImportError as error:
        raise UnusableTasks(
            f"reasoning-gym cannot be imported ({error}); run: pip install reasoning-gym (or 'podium-studio[tasks]')"
        ) from error
    usable = ", ".join(sorted(DATASETS.keys() - REFUSED.keys()))
    if name not in DATASETS:
        raise UnknownTask(f"reasoning-gym has no family {name[:80]!r}; use one of: {usable}")
    if name in REFUSED:
        raise UnknownTask(f"the family {name} cannot be used: {REFUSED[name]}; use one of: {usable}")
    try:
        datasets = {split: create_dataset(name, seed=place * SPACING, size=SIZE) for place, split in enumerate(SPLITS)}
    except Exception as error:  # 100 generators by as many hands
        raise UnusableTasks(f"reasoning_gym:{name} cannot be opened: {error}") from error
    return GymFamily(name, datasets)
