"""The row of GRPO: reinforcement learning on whole episodes."""

# ruff: noqa: ARG002  a member has the arguments of every method
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from orchestrator.choice.scores import SCORES
from orchestrator.prompt_styles import PROMPTS
from trainer.launch_gap import LaunchGap, as_sentence
from trainer.methods.base import Edit, Method, Phase, Problem, StageStart, Store
from trainer.methods.grpo.section import GrpoSettings
from trainer.tasks.pool_settings import PoolSettings

if TYPE_CHECKING:
    from pool_registry.extensions.extension_table import ExtensionTable
    from pool_registry.pool import Pool
    from trainer.learner.load_and_save import TrainingContext
    from trainer.memory_fit.model_sizes import ModelSizes
    from trainer.memory_fit.stages import Allocation, Machine
    from trainer.methods.advice import Advice, MetricRows
    from trainer.recipe import Recipe

BACKEND = "grpo.rollouts.backend"
NO_GPU = (
    "No GPU here, and vLLM needs one. Choose a machine that has one under “Runs on” (where), or a preset for a CPU, "
    "such as own-pool."
)


def halve_micro_batch(recipe: Recipe) -> Edit:
    if (grpo := GRPO.read(recipe)) is None or grpo.micro_batch == recipe.processes:
        return None
    episodes, least = grpo.rollouts.prompts * grpo.rollouts.group, recipe.processes
    sizes = range(grpo.micro_batch // least // 2 * least, 0, -least)
    half = next(size for size in sizes if episodes % size == 0)
    return f"grpo.micro_batch: {half}", GRPO.edit(recipe, micro_batch=half)


def halve_concurrency(recipe: Recipe) -> Edit:
    grpo = GRPO.read(recipe)
    if grpo is None or grpo.rollouts.backend != "transformers":
        return None
    rows = min(grpo.rollouts.concurrency, grpo.rollouts.prompts * grpo.rollouts.group) // 2
    return _edit_rollouts(recipe, "concurrency", rows, f"grpo.rollouts.concurrency: {rows}") if rows else None


def halve_vllm(recipe: Recipe) -> Edit:
    grpo = GRPO.read(recipe)
    if grpo is None or grpo.rollouts.backend == "transformers":
        return None
    share = grpo.rollouts.vllm_memory / 2
    return _edit_rollouts(recipe, "vllm_memory", share, f"grpo.rollouts.vllm_memory: {share:g}")


def _edit_rollouts(recipe: Recipe, key: str, value: float, text: str) -> Edit:
    rollouts = GRPO.require(recipe).rollouts.model_copy(update={key: value})
    return text, GRPO.edit(recipe, rollouts=rollouts)


class Grpo(Method[GrpoSettings]):
    """Learns from groups of its own episodes."""

    name = "grpo"
    label = "GRPO"
    title = "Reinforcement learning"
    summary = "Train on whole episodes by reinforcement: the recipe's grpo stage."
    Section = GrpoSettings
    has_rollouts = True
    always_written = True
    memory_edits: ClassVar[tuple[Callable[[Recipe], Edit], ...]] = (halve_micro_batch, halve_concurrency, halve_vllm)

    def run(self, training: TrainingContext, settings: GrpoSettings, start: StageStart) -> bool:
        processes = training.recipe.processes
        if processes == 1:
            return self.run_rank(training, settings, start, 1)
        from trainer.learner.ranks import run_ranks

        return run_ranks(training.job_folder.path.name, training.store.home.root, self.name, 1, processes)

    def run_rank(self, training: TrainingContext, settings: GrpoSettings, start: StageStart, part: int) -> bool:
        if settings.rollouts.backend == "vllm-async":
            from trainer.methods.grpo.async_stage import run_async_grpo as run_grpo
        else:
            from trainer.methods.grpo.stage import run_grpo
        return run_grpo(training, settings, start)

    def count_steps(self, settings: GrpoSettings) -> int:
        return settings.all_steps

    def list_phases(self, settings: GrpoSettings) -> list[Phase]:
        phases, before = [], settings.steps
        for phase in settings.phases:
            phases.append(Phase(phase.name, before))
            before += phase.steps
        return phases

    def count_rounds(self, settings: GrpoSettings) -> int | None:
        return settings.rollouts.max_rounds

    def find_problems(self, settings: GrpoSettings, recipe: Recipe) -> Iterator[str]:
        prompt = PROMPTS[recipe.model.prompt]
        calls = recipe.model.dialect == "tool_calls" and not prompt.binds_needs
        if calls and settings.rollouts.max_rounds < 2:
            yield "with tool_calls the answer is a turn of its own: set grpo.rollouts.max_rounds: 2 or more"
        if prompt.binds_needs and any(phase.recursion for phase in settings.phases):
            yield "a reader asks no copy of itself: leave recursion out, or set model.prompt: full"
        if who := settings.rollouts.who:
            yield from _find_choice_problems(who, prompt.binds_needs, recipe)
        for problem in _find_what_async_lacks(settings, recipe):
            yield f"with grpo.rollouts.backend: vllm-async {problem}"

    def find_sharing_problems(self, settings: GrpoSettings, recipe: Recipe) -> Iterator[str]:
        if rest := settings.micro_batch % recipe.processes:
            whole = settings.micro_batch - rest + recipe.processes
            yield f"grpo.micro_batch must be a multiple of {recipe.processes}: set it to {whole}"
        if settings.rollouts.backend == "vllm-colocate":
            yield "vLLM cannot run in the trainer: set grpo.rollouts.backend: vllm (a server) or transformers"

    def find_sharding_problems(self, settings: GrpoSettings, recipe: Recipe) -> Iterator[str]:
        yield "one process cannot sample: leave grpo out, or set sharding: none"

    def list_pool_draws(self, settings: GrpoSettings) -> list[tuple[str, PoolSettings]]:
        phases = enumerate(settings.phases)
        return [(f"grpo.phases.{place}.pools", phase.pools) for place, phase in phases if phase.pools is not None]

    def find_travel_problems(self, settings: GrpoSettings) -> Iterator[Problem]:
        for index, reward in enumerate(settings.rewards):
            if ":" in reward.term:
                yield f"grpo.rewards.{index}.term", f"{reward.term} is a file of this machine: put it into a package"
        if settings.rollouts.vllm_url:
            yield "grpo.rollouts.vllm_url", "a server of this network is not reached from there: leave it empty"

    def list_reaches(self, settings: GrpoSettings) -> Iterator[Problem]:
        if settings.rollouts.vllm_url:
            yield "grpo.rollouts.vllm_url", f"reaches {settings.rollouts.vllm_url}"
        for reward in settings.rewards:
            if ":" in reward.term:
                yield "grpo.rewards", f"runs {reward.term}"

    def list_extras(self, settings: GrpoSettings) -> list[str]:
        return [] if settings.rollouts.backend == "transformers" else ["vllm"]

    def list_distributions(self, settings: GrpoSettings) -> list[str]:
        from trainer.methods.grpo.rewards import REWARDS

        return [REWARDS.distribution_of(reward.term) for reward in settings.rewards]

    def with_max_cost(self, settings: GrpoSettings, dollars: float) -> GrpoSettings | None:
        if settings.rollouts.max_cost is None:
            return None
        return _set_cap(settings, dollars)

    def cap_cost(self, settings: GrpoSettings, dollars: float) -> GrpoSettings:
        own = settings.rollouts.max_cost
        return _set_cap(settings, dollars if own is None else min(own, dollars))

    def find_gaps(self, settings: GrpoSettings, recipe: Recipe, pool: Pool | None, store: Store) -> Iterator[LaunchGap]:
        from trainer.methods.grpo.rewards import explain_missing_reward

        for index, reward in enumerate(settings.rewards):
            if problem := explain_missing_reward(reward.term):
                yield LaunchGap(f"grpo.rewards.{index}.term", as_sentence(problem))

    def find_machine_gaps(self, settings: GrpoSettings, recipe: Recipe) -> Iterator[LaunchGap]:
        from trainer.jobs.gpus import list_gpus
        from trainer.learner.vllm_server import INSTALL_VLLM, is_installed

        rollouts = settings.rollouts
        runs_vllm = rollouts.backend == "vllm-colocate" or (rollouts.backend == "vllm" and not rollouts.vllm_url)
        if runs_vllm and not list_gpus():
            yield LaunchGap("where", NO_GPU)
        elif runs_vllm and not is_installed():
            sentence = f"vLLM is not installed. Run `{INSTALL_VLLM}`, or choose the backend transformers."
            yield LaunchGap(BACKEND, sentence)
        if rollouts.backend == "vllm" and recipe.model.lora is None:
            yield LaunchGap("model.lora", "A vLLM server takes new adapters, not whole models: add model.lora.")

    def allocate(self, settings: GrpoSettings, recipe: Recipe, sizes: ModelSizes, machine: Machine) -> list[Allocation]:
        from trainer.methods.grpo.memory import allocate_step

        # The adapter that it starts from is new, unless another stage or a checkpoint comes before.
        continues = recipe.training_stages[0].name != self.name or bool(recipe.model.start)
        return allocate_step(settings, recipe.processes, sizes, machine, recipe.model.checkpointing, continues)

    def check_memory(self, settings: GrpoSettings, sizes: ModelSizes, machine: Machine) -> None:
        from trainer.methods.grpo.memory import check_share_of_vllm

        check_share_of_vllm(settings.rollouts, sizes, machine)

    def count_episodes(self, settings: GrpoSettings, recipe: Recipe) -> dict[str, int]:
        batches = math.ceil(settings.all_steps / settings.loss.iterations)
        return {"rollouts": batches * settings.rollouts.prompts * settings.rollouts.group}

    def list_cost_notes(self, settings: GrpoSettings) -> list[str]:
        rollouts = settings.rollouts
        if not rollouts.mixed_only or not rollouts.redraws:
            return []
        return [f"rollouts may be up to {1 + rollouts.redraws:g} times as many with redraws"]

    def advise(self, settings: GrpoSettings, metrics: MetricRows, recipe: Recipe) -> list[Advice]:
        from trainer.methods.grpo.advice import advise_on_learning, advise_on_tuning

        return [*advise_on_learning(metrics, recipe.model.turn_tokens), *advise_on_tuning(settings, metrics)]

    def complete_schema(self, definitions: dict[str, Any]) -> None:
        from trainer.methods.grpo.rewards import REWARDS

        definitions["RewardSettings"]["properties"]["term"] |= {
            "description": f"{', '.join(REWARDS)}, or your own function as FILE.py:FUNCTION.",
            "examples": list(REWARDS),
        }

    def list_tables(self) -> tuple[ExtensionTable[Any], ...]:
        from trainer.methods.grpo.rewards import REWARDS

        return (REWARDS,)

    def list_figures(self, section: Mapping[str, Any]) -> list[tuple[str, object]]:
        keys = ("steps", "source", "group", "tasks_per_step")
        return [(key, section[key]) for key in keys if section.get(key) not in (None, "", [], {})]


def _set_cap(settings: GrpoSettings, dollars: float) -> GrpoSettings:
    rollouts = settings.rollouts.model_copy(update={"max_cost": dollars})
    return settings.model_copy(update={"rollouts": rollouts})


def _find_choice_problems(who: str, is_reader: bool, recipe: Recipe) -> Iterator[str]:
    """Yield why the workers of rollouts cannot be chosen by the score `who`."""
    if who not in SCORES:
        yield f"there is no score {who}: set grpo.rollouts.who to one of {', '.join(SCORES)}"
    elif not is_reader:
        yield "only a reader's workers are chosen by a score: leave grpo.rollouts.who out, or set model.prompt: reader"
    elif recipe.pool_draws:
        yield "outcomes are those of the pool as it is: leave pools out, or grpo.rollouts.who"


def _find_what_async_lacks(settings: GrpoSettings, recipe: Recipe) -> Iterator[str]:
    """Yield what sampling beside training cannot do, each with what to change."""
    if settings.rollouts.backend != "vllm-async":
        return
    loss = settings.loss
    if not settings.rollouts.vllm_url:
        yield "the server is your own, on another GPU: set grpo.rollouts.vllm_url"
    if recipe.model.lora is None and not recipe.model.start:
        yield "the server is given adapters: set model.lora"
    if settings.saving.check_tasks:
        yield "checkpoints cannot be measured: set grpo.saving.check_tasks: 0, and measure with evaluate"
    if settings.phases:
        yield "there is one run: leave grpo.phases out"
    if any(reward.anneal for reward in settings.rewards):
        yield "rewards keep their weight: leave anneal out"
    if (loss.type, loss.beta, loss.iterations) != ("dapo", 0, 1) or loss.scale == "batch":
        yield "the loss is dapo on each group: leave loss.type, beta, iterations and scale: batch out"


GRPO = Grpo()
