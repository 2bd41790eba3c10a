"""The row of supervised fine-tuning."""

# ruff: noqa: ARG002  a member has the arguments of every method
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from orchestrator.checkpoints import find_checkpoint
from orchestrator.errors import OrchestratorError
from orchestrator.orchestrator_name import OrchestratorName, split_options
from orchestrator.prompt_styles import PROMPTS
from pool_registry.secrets import list_unset
from trainer.demonstrations.token_lessons import LessonsManifest, LessonsRequest, check_fit
from trainer.errors import TrainingFailed
from trainer.job_place import HERE, JobPlace, parse_place
from trainer.launch_gap import LaunchGap, as_sentence
from trainer.methods.base import Edit, Method, Problem, StageStart, Store
from trainer.methods.edits import make_halve_batch
from trainer.methods.sft.section import SftSettings
from trainer.tasks.teachers import EXPLAIN_NO_PLANS, ORACLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pool_registry.pool import Pool
    from trainer.jobs.job_folder import JobFolder
    from trainer.learner.load_and_save import TrainingContext
    from trainer.memory_fit.model_sizes import ModelSizes
    from trainer.memory_fit.stages import Allocation, Machine
    from trainer.recipe import Recipe
    from trainer.tasks.task import Task

EPOCHS, LEAST_STEPS = 3, 8  # of imitating an agent: how often each plan is seen
# How plans of an agent are imitated: gently, so that what the start knows of planning stays. Not measured.
IMITATED: dict[str, Any] = {
    "batch": 8,
    "max_length": 1600,
    "demonstrations": {"faults": 0, "starred": False, "concurrency": 8, "max_rounds": 1, "required": False},
    "optimizer": {"learning_rate": 1e-4, "warmup": 0.1},
}
TEACHER = "sft.demonstrations.teacher"
LESSONS = "sft.demonstrations.lessons"
SLIPS = "sft.demonstrations.slips"


class Sft(Method[SftSettings]):
    """Imitates demonstrations."""

    name = "sft"
    label = "SFT"
    title = "Supervised fine-tuning"
    summary = "Fine-tune on demonstrations: the recipe's sft stage."
    Section = SftSettings
    lessons_key = LESSONS
    place_key = "sft.demonstrations.where"
    always_written = True
    memory_edits: ClassVar[tuple[Callable[[Recipe], Edit], ...]] = (make_halve_batch("sft"),)

    def make_lessons(self, request: LessonsRequest, tell: Callable[[LessonsManifest], None]) -> LessonsManifest:
        from trainer.methods.sft.bulk_lessons import make_lessons

        return make_lessons(request, self.require(request.recipe), tell)

    def imitate_agent(self, agent: str, tasks: int) -> SftSettings:
        steps = max(LEAST_STEPS, -(-EPOCHS * tasks // IMITATED["batch"]))
        demonstrations = {**IMITATED["demonstrations"], "teacher": f"model:{agent}"}
        saving = {"every": max(4, steps // 3), "keep": 3, "check_tasks": 0}
        return SftSettings.model_validate(
            {**IMITATED, "steps": steps, "demonstrations": demonstrations, "saving": saving}
        )

    def run(self, training: TrainingContext, settings: SftSettings, start: StageStart) -> bool:
        from trainer.methods.sft.stage import run_sft

        return run_sft(training, settings)

    def run_rank(self, training: TrainingContext, settings: SftSettings, start: StageStart, part: int) -> bool:
        from trainer.methods.sft.stage import train_sft_round

        return train_sft_round(training, settings, part)

    def has_nothing_to_learn(self, job_folder: JobFolder, settings: SftSettings) -> bool:
        return settings.has_nothing_to_imitate(job_folder.demonstrations)

    def with_second_turns(self, settings: SftSettings, share: float) -> SftSettings | None:
        shown = settings.demonstrations.model_copy(update={"second_turns": share})
        return settings.model_copy(update={"demonstrations": shown})

    def with_max_cost(self, settings: SftSettings, dollars: float) -> SftSettings | None:
        return None if settings.demonstrations.max_cost is None else _set_cap(settings, dollars)

    def cap_cost(self, settings: SftSettings, dollars: float) -> SftSettings | None:
        if settings.demonstrations.where != str(HERE):
            return None
        own = settings.demonstrations.max_cost
        return _set_cap(settings, dollars if own is None else min(own, dollars))

    def find_problems(self, settings: SftSettings, recipe: Recipe) -> Iterator[str]:
        if settings.demonstrations.second_turns and not PROMPTS[recipe.model.prompt].reads_states:
            styles = " or ".join(name for name, facts in PROMPTS.items() if facts.reads_states)
            yield f"only a model that is shown what came of its plan learns second turns: set model.prompt: {styles}"

    def find_sharing_problems(self, settings: SftSettings, recipe: Recipe) -> Iterator[str]:
        if rest := settings.batch % recipe.processes:
            whole = settings.batch - rest + recipe.processes
            yield f"sft.batch must be a multiple of {recipe.processes}: set it to {whole}"

    def find_sharding_problems(self, settings: SftSettings, recipe: Recipe) -> Iterator[str]:
        if settings.saving.check_tasks:
            yield "checkpoints cannot be measured while it trains: set sft.saving.check_tasks: 0"

    def needs_plans(self, settings: SftSettings) -> bool:
        return settings.demonstrations.teacher == ORACLE and not settings.demonstrations.lessons

    def needs_tasks(self, settings: SftSettings) -> bool:
        return not settings.demonstrations.lessons

    def list_places(self, settings: SftSettings) -> list[JobPlace]:
        return [parse_place(settings.demonstrations.where)]

    def find_cluster_problems(self, settings: SftSettings) -> Iterator[Problem]:
        demonstrations = settings.demonstrations
        if demonstrations.where != "here" and demonstrations.rounds > 1:
            yield (
                self.place_key,
                "from the second round on the teacher is a checkpoint of this machine: set "
                "sft.demonstrations.where: here, or rounds: 1",
            )
        if demonstrations.where != "here" and demonstrations.max_cost is not None:
            yield self.place_key, "a cluster keeps no cap on a teacher: leave max_cost out, or sample here"

    def find_travel_problems(self, settings: SftSettings) -> Iterator[Problem]:
        if settings.demonstrations.file:
            yield "sft.demonstrations.file", "a file of demonstrations does not travel: leave it empty"
        if settings.demonstrations.lessons:
            yield LESSONS, "a folder of lessons does not travel: leave it empty"
        if "@" in settings.demonstrations.teacher:
            yield TEACHER, "a checkpoint of this machine does not travel: choose another teacher"
        if "@" in settings.demonstrations.slips:
            yield SLIPS, "a checkpoint of this machine does not travel: name one that ships"

    def list_reaches(self, settings: SftSettings) -> Iterator[Problem]:
        demonstrations = settings.demonstrations
        if demonstrations.file:
            yield "sft.demonstrations.file", f"reads the file {demonstrations.file}"
        if demonstrations.lessons:
            yield LESSONS, f"reads the folder {demonstrations.lessons}"
        for key, name in ((TEACHER, demonstrations.teacher), (SLIPS, demonstrations.slips)):
            if name.strip().startswith(("/", "~", ".")):
                yield key, f"reads the folder {name}"

    def list_orchestrators(self, settings: SftSettings) -> list[str]:
        return [] if settings.demonstrations.lessons else [settings.demonstrations.teacher]

    def find_gaps(self, settings: SftSettings, recipe: Recipe, pool: Pool | None, store: Store) -> Iterator[LaunchGap]:
        if settings.demonstrations.lessons:
            yield from _find_lesson_gaps(settings.demonstrations.lessons, recipe)
        elif pool is not None:
            yield from _find_teacher_gaps(settings.demonstrations.teacher, pool)
        if settings.demonstrations.file:
            path = Path(settings.demonstrations.file).expanduser()
            if not path.is_file():
                yield LaunchGap("sft.demonstrations.file", f"There is no file {path}.")

    def find_task_gaps(self, settings: SftSettings, tasks: Sequence[Task]) -> Iterator[LaunchGap]:
        has_file = bool(settings.demonstrations.file)
        if self.needs_plans(settings) and not has_file and not any(task.oracle_turn for task in tasks):
            yield LaunchGap(TEACHER, as_sentence(EXPLAIN_NO_PLANS))

    def allocate(self, settings: SftSettings, recipe: Recipe, sizes: ModelSizes, machine: Machine) -> list[Allocation]:
        from trainer.methods.sft.memory import allocate_step, find_usual_rows

        usual = find_usual_rows(settings, recipe, machine)
        return allocate_step(settings, recipe.processes, sizes, machine, recipe.model.checkpointing, usual)

    def count_episodes(self, settings: SftSettings, recipe: Recipe) -> dict[str, int]:
        demonstrations = settings.demonstrations
        if demonstrations.lessons:
            return {}
        return {"demonstrations": recipe.tasks.count * demonstrations.samples * demonstrations.rounds}

    def count_lessons(self, settings: SftSettings) -> int:
        return settings.steps * settings.batch * settings.accumulation

    def list_cost_notes(self, settings: SftSettings) -> list[str]:
        paid = settings.demonstrations.teacher.startswith("model:")
        return ["the teacher's own tokens are not counted"] if paid else []

    def list_figures(self, section: Mapping[str, Any]) -> list[tuple[str, object]]:
        keys = ("steps", "demonstrations", "starred", "teacher", "source")
        return [(key, section[key]) for key in keys if section.get(key) not in (None, "", [], {})]


def _find_lesson_gaps(folder: str, recipe: Recipe) -> Iterator[LaunchGap]:
    """Yield that lessons are not there, or are for other prompts."""
    try:
        check_fit(Path(folder).expanduser(), recipe.model.prompt)
    except TrainingFailed as error:
        yield LaunchGap(LESSONS, as_sentence(error))


def _set_cap(settings: SftSettings, dollars: float) -> SftSettings:
    demonstrations = settings.demonstrations.model_copy(update={"max_cost": dollars})
    return settings.model_copy(update={"demonstrations": demonstrations})


def _find_teacher_gaps(teacher: str, pool: Pool) -> Iterator[LaunchGap]:
    """Yield why a teacher cannot show anything on this pool: there is none of this name, it only judges, or its key is
    not set."""
    from orchestrator.policies.registry import find_policy, make_orchestrator, needs_reference
    from pool_registry.calls.live_pool import open_live_pool

    named = pool.find_worker(OrchestratorName.parse(teacher).worker) if find_policy(teacher) else None
    if named is not None and named.judge_only:
        yield LaunchGap(TEACHER, f"{named.name} only judges and plans nothing: choose another teacher.")
        return
    try:
        if find_policy(teacher) is None:
            find_checkpoint(split_options(teacher)[0])
        elif not needs_reference(teacher):
            make_orchestrator(teacher, open_live_pool(pool))
    except OrchestratorError as error:
        yield LaunchGap(TEACHER, as_sentence(error))
        return
    for problem in list_unset(named.config) if named is not None else ():
        yield LaunchGap(TEACHER, as_sentence(f"{problem}, for the teacher {teacher}"))


SFT = Sft()
