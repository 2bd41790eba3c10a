"""The row of a method in the table of methods: everything that the rest of Podium has to know about it.

A method is a stage of recipes. Its key is the name of the recipe's section, of the stage, of its checkpoints and of
its command. Nothing outside trainer/methods asks which one it has before it: recipes, jobs, estimates, checks before a
start, advice and the page read these members. Only `run` has to be written; the other defaults suit a method that
trains in one process on what is there and reaches nothing else.

Settings come as the method's own section. What needs torch is imported inside the functions: the table is read where
recipes are.
"""

# ruff: noqa: ARG002  defaults do not look at what a method of its own may need

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from trainer.errors import TrainingFailed
from trainer.launch_gap import LaunchGap
from trainer.recipe_sections import MethodSettings
from trainer.tasks.pool_settings import PoolSettings

if TYPE_CHECKING:
    from pool_registry.extensions.extension_table import ExtensionTable
    from pool_registry.pool import Pool
    from trainer.demonstrations.token_lessons import LessonsManifest, LessonsRequest
    from trainer.job_place import JobPlace
    from trainer.jobs.job_folder import JobFolder
    from trainer.learner.load_and_save import TrainingContext
    from trainer.memory_fit.model_sizes import ModelSizes
    from trainer.memory_fit.stages import Allocation, Machine
    from trainer.methods.advice import Advice, MetricRows
    from trainer.recipe import Recipe
    from trainer.tasks.task import Task

Settings = TypeVar("Settings", bound=MethodSettings)
Edit = tuple[str, "Recipe"] | None  # an edit of a recipe in words, and the recipe with it
Problem = tuple[str, str]  # the key of a recipe, and a sentence
Store = Any  # orchestrator.traces.store.Store


@dataclass(frozen=True, slots=True)
class StageStart:
    """Where a stage of a job begins: after so many steps of the job (`before`), from the last checkpoint of the stage
    before it, if there is one."""

    before: int = 0
    checkpoint: Path | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of the Train page that only this method has: lines are (key of a metric, label). `share`: values are
    between 0 and 1."""

    id: str
    title: str
    about: str
    lines: tuple[tuple[str, str], ...]
    share: bool = False


@dataclass(frozen=True, slots=True)
class Phase:
    """A named part of a stage; `before` is how many of the stage's steps come before it."""

    name: str
    before: int


class Method(ABC, Generic[Settings]):
    """A way to train an orchestrator."""

    name: ClassVar[str]  # the section of the recipe, the stage, the command
    label: ClassVar[str]  # short, for people: of the stage and its checkpoints
    title: ClassVar[str]  # of the form's section
    summary: ClassVar[str]  # the command's help: one sentence
    Section: type[Settings]
    charts: ClassVar[tuple[Chart, ...]] = ()
    place_key: ClassVar[str] = ""  # of what it can have done on a cluster
    has_rollouts: ClassVar[bool] = False  # whether it samples groups of episodes that the page shows by step
    lessons_key: ClassVar[str] = ""  # where a recipe names a folder of lessons to learn from; "" for methods without
    always_written: ClassVar[bool] = False  # whether a recipe without it says so, as it did before there was a table
    memory_edits: ClassVar[tuple[Callable[[Recipe], Edit], ...]] = ()  # each frees memory

    def read(self, recipe: Recipe) -> Settings | None:
        """This method's section of a recipe; None where it has none."""
        section: Settings | None = getattr(recipe, self.name)
        return section

    def require(self, recipe: Recipe) -> Settings:
        """This method's section of a recipe that has one."""
        section = self.read(recipe)
        assert section is not None, f"the caller chose the stage {self.name}"
        return section

    def edit(self, recipe: Recipe, **changes: object) -> Recipe:
        """The recipe with some fields of this method's section changed."""
        return recipe.model_copy(update={self.name: self.require(recipe).model_copy(update=changes)})

    def make_lessons(self, request: LessonsRequest, tell: Callable[[LessonsManifest], None]) -> LessonsManifest:
        """Make lessons, or go on where an earlier call stopped; `tell` gets what is there after every shard. Raises
        TrainingFailed."""
        raise TrainingFailed("lessons", f"{self.label} learns from no lessons")

    def imitate_agent(self, agent: str, tasks: int) -> Settings | None:
        """The section with which plans of an agent of the pool for so many tasks are imitated before other training,
        which goes on where there are none; None where it imitates nobody."""
        return None

    # Training

    @abstractmethod
    def run(self, training: TrainingContext, settings: Settings, start: StageStart) -> bool:
        """Train, or go on where an interrupted job stopped. False when it was stopped on request. Raises
        TrainingFailed with what to do next."""

    def run_rank(self, training: TrainingContext, settings: Settings, start: StageStart, part: int) -> bool:
        """Train as one of several processes that `run` has started; `part` is what it gave them."""
        raise TrainingFailed("ranks", f"{self.label} trains in one process: set processes: 1")

    def has_nothing_to_learn(self, job_folder: JobFolder, settings: Settings) -> bool:
        """Whether the stage has ended without a checkpoint, as its section allows: what follows goes on without it."""
        return False

    def count_steps(self, settings: Settings) -> int:
        """The optimizer steps of the stage, all its phases included."""
        return settings.steps

    def list_phases(self, settings: Settings) -> list[Phase]:
        """The phases after the main run."""
        return []

    def count_rounds(self, settings: Settings) -> int | None:
        """The most turns of an episode in training; None where that is not the method's to say."""
        return None

    # What a recipe may ask for

    def find_problems(self, settings: Settings, recipe: Recipe) -> Iterator[str]:
        """Yield what the rest of the recipe rules out, each with what to change."""
        yield from ()

    def find_sharing_problems(self, settings: Settings, recipe: Recipe) -> Iterator[str]:
        """Yield what several processes cannot do."""
        yield f"{self.label} trains in one process: leave processes out"

    def find_sharding_problems(self, settings: Settings, recipe: Recipe) -> Iterator[str]:
        """Yield what weights that lie in several processes rule out."""
        yield f"one process has to hold the weights for {self.label}: leave {self.name} out, or set sharding: none"

    def list_pool_draws(self, settings: Settings) -> list[tuple[str, PoolSettings]]:
        """How phases of their own draw pools, by their keys."""
        return []

    def needs_plans(self, settings: Settings) -> bool:
        """Whether it learns from the tasks' own reference plans."""
        return False

    def needs_tasks(self, settings: Settings) -> bool:
        """Whether it trains on the recipe's tasks; where not, they only measure its checkpoints."""
        return True

    def list_places(self, settings: Settings) -> list[JobPlace]:
        """Where it works beside the job's own machine."""
        return []

    def find_cluster_problems(self, settings: Settings) -> Iterator[Problem]:
        """Yield what it asks of a cluster that none can do."""
        yield from ()

    def find_travel_problems(self, settings: Settings) -> Iterator[Problem]:
        """Yield what its section names and a rented machine does not have."""
        yield from ()

    def list_reaches(self, settings: Settings) -> Iterator[Problem]:
        """Yield what an editor may not let it do: run own code, read files, reach servers."""
        yield from ()

    def list_extras(self, settings: Settings) -> list[str]:
        """Packages that it needs beside those of Podium."""
        return []

    def list_distributions(self, settings: Settings) -> list[str]:
        """The installed packages of what its section names; "" for what is built in."""
        return []

    def list_orchestrators(self, settings: Settings) -> list[str]:
        """The orchestrators that its section names."""
        return []

    def with_second_turns(self, settings: Settings, share: float) -> Settings | None:
        """The section in which such a share of the demonstrations teaches second turns; None where it shows none."""
        return None

    def with_max_cost(self, settings: Settings, dollars: float) -> Settings | None:
        """The section with another spend cap; None where it has none."""
        return None

    def cap_cost(self, settings: Settings, dollars: float) -> Settings | None:
        """The section spending at most so much; None where it keeps no cap."""
        return None

    # Before a start

    def find_gaps(self, settings: Settings, recipe: Recipe, pool: Pool | None, store: Store) -> Iterator[LaunchGap]:
        """Yield what prevents a start, and what should be known before one."""
        yield from ()

    def find_task_gaps(self, settings: Settings, tasks: Sequence[Task]) -> Iterator[LaunchGap]:
        """Yield why it cannot learn from tasks like these, the first ones of the train split."""
        yield from ()

    def find_machine_gaps(self, settings: Settings, recipe: Recipe) -> Iterator[LaunchGap]:
        """Yield what this machine lacks."""
        yield from ()

    @abstractmethod
    def allocate(self, settings: Settings, recipe: Recipe, sizes: ModelSizes, machine: Machine) -> list[Allocation]:
        """Estimate the memory of the stage at its peak, item by item."""

    def check_memory(self, settings: Settings, sizes: ModelSizes, machine: Machine) -> None:
        """Raise TrainingFailed where something that it starts cannot work on this machine."""

    def count_episodes(self, settings: Settings, recipe: Recipe) -> dict[str, int]:
        """Count the episodes that it plays, by purpose; not those of checks."""
        return {}

    def count_lessons(self, settings: Settings) -> int:
        """Count the demonstrations that it learns from, each as often as it is seen; not its own episodes."""
        return 0

    def list_cost_notes(self, settings: Settings) -> list[str]:
        """What the estimate of the cost leaves out."""
        return []

    # While it runs, and for the page

    def advise(self, settings: Settings, metrics: MetricRows, recipe: Recipe) -> list[Advice]:
        """What is seen of its learning, and what to do about it."""
        return []

    def complete_schema(self, definitions: dict[str, Any]) -> None:
        """Add what is known only now (names of other packages) to the definitions of a recipe's JSON Schema."""

    def list_tables(self) -> tuple[ExtensionTable[Any], ...]:
        """The tables of its own that other packages extend."""
        return ()

    def list_figures(self, section: Mapping[str, Any]) -> list[tuple[str, object]]:
        """What a published card says of its section, as a checkpoint's manifest holds it: (key, value)."""
        keys = ("steps", "source")
        return [(key, section[key]) for key in keys if section.get(key) not in (None, "", [], {})]


@dataclass(frozen=True, slots=True)
class TrainingStage:
    """A method with its section of a recipe, and the steps of the stages before it."""

    method: Method[Any]
    settings: MethodSettings
    before: int

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def steps(self) -> int:
        return self.method.count_steps(self.settings)

    @property
    def end(self) -> int:
        """The job's step after its last one."""
        return self.before + self.steps
