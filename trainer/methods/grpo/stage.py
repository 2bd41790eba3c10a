"""The GRPO stage: TRL's GRPOTrainer does the learning, our rollout engine the episodes.

TRL asks `rollout_func` for as many token sequences as a step needs. What it hands over as prompts are only
places: the curriculum decides which tasks fill them, and groups of one outcome are drawn anew. Advantages are
computed here: TRL gets rewards that it only has to centre. Tokens that the model did not write are masked
through `env_mask`. The private call for vLLM in this process (`_generate_single_turn`) is the only one of its
kind, and a test holds its contract.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback
from trl import GRPOConfig  # type: ignore[attr-defined]  # lazily exported

from orchestrator.choice.predictor import check_installed
from orchestrator.choice.scores import PREDICTOR
from orchestrator.dialects import find_dialect
from pool_registry.actions import Usage
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.patience import Patience
from pool_registry.language_models.model_files import model_path, pick_device
from trainer.choice.own_log import read_record_to_learn_from
from trainer.errors import TrainingFailed
from trainer.jobs.job_folder import read_lines
from trainer.learner.generator import Generator, SamplingParams
from trainer.learner.load_and_save import (
    JobCallback,
    Learner,
    TrainingContext,
    build_trainer_arguments,
    clear_draft,
    find_resume_checkpoint,
    find_start_weights,
    load_learner,
)
from trainer.learner.ranks import count_ranks, is_first_rank, share_first
from trainer.learner.token_transcript import ChatTokens
from trainer.learner.transformers_generator import TransformersGenerator
from trainer.learner.vllm_colocation import check_vllm_is_here, follow_platform, generate_held, send_exact_weights
from trainer.learner.vllm_generator import ColocatedGenerator, ServerGenerator
from trainer.learner.vllm_server import serve_model
from trainer.methods.base import StageStart
from trainer.methods.grpo.cpu_trainer import choose_grpo_trainer
from trainer.methods.grpo.curriculum import CELLS, Curriculum, cell_of
from trainer.methods.grpo.learning_reader import WorkerScore
from trainer.methods.grpo.past_success import count_past_success
from trainer.methods.grpo.phases import Phase, find_phase, list_phases, make_phased, make_rate_factor
from trainer.methods.grpo.rewards import WeightedReward, anneal_rewards, load_rewards
from trainer.methods.grpo.rollout_metrics import RolloutTimer, compute_rollout_metrics
from trainer.methods.grpo.rollouts import (
    EpisodeFormat,
    RolloutEngine,
    RolloutGroup,
    select_fitting_tasks,
)
from trainer.methods.grpo.section import GrpoSettings
from trainer.recipe_sections import ModelSettings
from trainer.tasks.registry import open_source
from trainer.tasks.shared_pools import make_vary
from trainer.tasks.task import Task
from trainer.tasks.task_pools import VaryTask

log = logging.getLogger(__name__)
TRAINED = "trained"  # the column of rewards that TRL trains on; those of the terms are only logged
RolloutFunction = Callable[[list[Any], Any], dict[str, Any]]  # (prompts, trainer) -> columns, one row per episode
HELD = "held"  # the column that says which tokens were drawn under a grammar
PLACEHOLDER = "placeholder"  # the text of the prompts that the trainer hands over; nothing reads it


def run_grpo(training: TrainingContext, settings: GrpoSettings, start: StageStart) -> bool:
    """Train from the checkpoint of `start` (else the recipe's start), or go on where an interrupted job
    stopped. False when it was stopped on request.

    Raises TrainingFailed (and what loading a model raises) with the next action.
    """
    recipe, job_folder = training.recipe, training.job_folder
    offset = start.before
    terms = load_rewards(settings.rewards)
    if settings.rollouts.backend == "vllm-colocate":
        check_vllm_is_here()
    resume = find_resume_checkpoint(job_folder, "grpo", offset)
    learner = load_learner(recipe.model, settings.optimizer.seed, resume or start.checkpoint)
    if resume is not None and not learner.adapter:  # KL counts from where the stage began, also after a resume
        learner.model.config.name_or_path = str(find_start_weights(recipe.model, start.checkpoint))
    if settings.rollouts.backend == "vllm" and not learner.adapter:
        raise TrainingFailed(
            "vllm",
            "a vLLM server can be given new adapters, not whole models: set model.lora, or choose the backend "
            "vllm-colocate or transformers",
        )
    clear_draft(job_folder)
    phases = list_phases(settings, recipe)
    callback = JobCallback(training, "grpo", settings.saving, learner, offset, settings.all_steps, name_ends(phases))
    with ExitStack() as stack:
        sample = _open_rollouts(training, settings, learner, phases, offset, terms, stack) if is_first_rank() else None
        if settings.rollouts.backend == "vllm-colocate":
            stack.enter_context(follow_platform(pick_device("auto") == "cuda", settings.rollouts.vllm_eager))
        kind = choose_grpo_trainer(learner.model)
        trainer = (make_phased(kind, make_rate_factor(settings, phases)) if settings.phases else kind)(
            model=learner.model,
            args=_make_arguments(training, settings),
            reward_funcs=make_reward_functions(list(terms)),
            train_dataset=_make_placeholders(settings),
            processing_class=learner.tokenizer,
            callbacks=[callback],
            rollout_func=share_rollouts(sample),
        )
        trainer.remove_callback(PrinterCallback)  # the job's log has lines of its own
        if settings.rollouts.backend == "vllm-colocate":
            send_exact_weights(trainer)
        trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    return not callback.stopped


def _open_rollouts(
    training: TrainingContext,
    settings: GrpoSettings,
    learner: Learner,
    phases: Sequence[Phase],
    offset: int,
    terms: dict[str, WeightedReward],
    stack: ExitStack,
) -> RolloutFunction:
    """Open what samples episodes for as long as the stack is open. Raises TrainingFailed where no task fits."""
    engine = open_engine(training, settings, learner.tokenizer, terms, stack)
    runs = open_phases(training, settings, phases, engine, offset)
    backend = _GeneratorBackend(training, settings, learner, stack)
    return _make_rollout_function(training, settings, engine, runs, backend, offset, terms)


def open_engine(
    training: TrainingContext,
    settings: GrpoSettings,
    tokenizer: Any,
    terms: dict[str, WeightedReward],
    stack: ExitStack,
) -> RolloutEngine:
    """Open the engine that runs episodes, for as long as the stack is open. It knows what the job has spent before."""
    recipe = training.recipe
    engine = RolloutEngine(
        recipe.name,
        CachingPool(training.pool) if settings.rollouts.cache else training.pool,
        ChatTokens(tokenizer),
        make_episode_format(recipe.model, settings.rollouts.max_rounds, settings.rollouts.max_length),
        terms,
        training.store.traces,
        scale=settings.loss.scale,
        concurrency=settings.rollouts.concurrency,
        max_cost=settings.rollouts.max_cost,
        seed=settings.optimizer.seed,
        score=make_score(training, settings.rollouts.who),
        patience=Patience(lambda: training.job_folder.stop_requested),
    )
    stack.callback(lambda: training.runner.run(engine.close()))
    engine.spending.charge(Usage(cost=training.job_folder.read_training_cost()))
    stack.callback(_keep_cost, training, engine)
    return engine


def make_score(training: TrainingContext, name: str) -> WorkerScore | None:
    """The score of this name on the pool's outcomes, those on validation and test tasks left out; None without a name.
    Raises UnknownOrchestrator where the success predictor is not installed."""
    if not name:
        return None
    if name == PREDICTOR:
        check_installed()
    return WorkerScore(name, read_record_to_learn_from(training.store.engine, training.pool.pool.name))


def share_rollouts(sample: RolloutFunction | None) -> RolloutFunction:
    """What TRL calls on every rank: the first one samples the whole step's episodes, and each gets its part of them.

    Parts are as TRL gathers them: in the order of the ranks, and equally long.
    """

    def rollout(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        columns = share_first(None if sample is None else sample(prompts * count_ranks(), trainer))
        assert columns is not None, "the first rank has something to sample with"
        first = trainer.accelerator.process_index * len(prompts)
        part = slice(first, first + len(prompts))
        own: dict[str, Any] = {name: None if values is None else values[part] for name, values in columns.items()}
        # What the trainer's scores need beside tokens (cpu_trainer.py). TRL would hand it to the rewards.
        trainer.held = {tuple(ids): held for ids, held in zip(own["completion_ids"], own.pop(HELD), strict=True)}
        return own

    return rollout


def make_episode_format(model: ModelSettings, max_rounds: int, longest: int = 1_000_000) -> EpisodeFormat:
    """How a recipe puts its model to work; `longest` in tokens."""
    limits = (model.turn_tokens, longest, max_rounds)
    return EpisodeFormat(find_dialect(model.dialect), model.prompt, *limits, listing=model.choose_listing())


def _make_rollout_function(
    training: TrainingContext,
    settings: GrpoSettings,
    engine: RolloutEngine,
    runs: Sequence[PhaseRun],
    backend: _GeneratorBackend,
    offset: int,
    terms: dict[str, WeightedReward],
) -> RolloutFunction:
    """What samples the episodes of a step, and writes them down."""
    options, names = settings.rollouts, list(terms)

    def rollout(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        step = offset + trainer.state.global_step + 1
        groups = len(prompts) // options.group
        done = trainer.state.global_step
        run = find_phase_run(runs, done + 1)
        curriculum = run.curriculum
        present = anneal_rewards(terms, done / settings.steps)
        engine.begin_step(done * groups, present, run.vary, run.phase.recursion)
        with RolloutTimer(generator := backend.get_generator(trainer)) as timer:
            kept, skipped = training.runner.run(
                engine.run_step(
                    curriculum, generator, groups, options.group, round(options.redraws * groups), options.mixed_only
                )
            )
        record_groups(training, step, kept, skipped, run.phase.name)
        training.job_folder.append_metrics(
            "grpo",
            step,
            {
                **compute_rollout_metrics(kept, skipped, names),
                **timer.metrics(),
                **{f"level/{family}-{level}": rate for (family, level), rate in curriculum.summarize_levels().items()},
                "cache/hits": float(engine.pools.hits),
                "cost/total": engine.cost,
                **{f"weight/{name}": present[name].weight for name in names if terms[name].anneal is not None},
            },
        )
        return make_columns(kept, names)

    return rollout


def make_columns(groups: list[RolloutGroup], names: list[str]) -> dict[str, Any]:
    """The episodes as TRL wants them: one row per episode, groups together."""
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    have_logprobs = all(rollout.logprobs is not None for rollout in rollouts)
    return {
        "prompt_ids": [rollout.transcript.prompt for rollout in rollouts],
        "completion_ids": [rollout.transcript.completion for rollout in rollouts],
        "env_mask": [rollout.transcript.mask for rollout in rollouts],
        "logprobs": [rollout.logprobs for rollout in rollouts] if have_logprobs else None,
        HELD: [rollout.transcript.held for rollout in rollouts],
        **{f"term_{name}": [rollout.terms.get(name) for rollout in rollouts] for name in names},
        f"term_{TRAINED}": [reward for group in groups for reward in group.trained_rewards],
    }


def make_reward_functions(names: Sequence[str]) -> list[Callable[..., list[float | None]]]:
    """Reward functions for TRL: one per term, to be logged, and the one that it trains on."""
    return [_make_column_reader(name) for name in (*names, TRAINED)]


def make_reward_arguments(count: int) -> dict[str, Any]:
    """What TRL makes of the rewards of `count` terms and of TRAINED: it only subtracts the mean of each group."""
    return {"scale_rewards": "none", "reward_weights": [*(0.0 for _ in range(count)), 1.0]}


def _make_column_reader(name: str) -> Callable[..., list[float | None]]:
    """A reward function for TRL that hands on what was computed with the episode."""

    def read(**columns: Any) -> list[float | None]:
        values: list[float | None] = columns[f"term_{name}"]
        return values

    read.__name__ = name
    return read


def record_groups(
    training: TrainingContext, step: int, kept: list[RolloutGroup], skipped: list[RolloutGroup], phase: str
) -> None:
    """Write groups of a step into the job's folder."""
    for groups, is_kept in ((kept, True), (skipped, False)):
        for group in groups:
            training.job_folder.append_group(group.row(step, is_kept) | ({"phase": phase} if phase else {}))


def _make_placeholders(settings: GrpoSettings) -> Dataset:
    """Make as many prompts as a step has groups."""
    return Dataset.from_list([{"prompt": [{"role": "user", "content": PLACEHOLDER}]}] * settings.rollouts.prompts)


@dataclass(frozen=True, slots=True)
class PhaseRun:
    """A phase with its tasks and the pools that are drawn for them."""

    phase: Phase
    curriculum: Curriculum
    vary: VaryTask


def open_phases(
    training: TrainingContext, settings: GrpoSettings, phases: Sequence[Phase], engine: RolloutEngine, offset: int
) -> list[PhaseRun]:
    """The phases with what an interrupted job has learnt in them. Raises TrainingFailed where no task fits."""
    seed, fitting = settings.optimizer.seed, dict[tuple[Any, Any], list[Task]]()
    runs = []
    for phase in phases:
        tasks = training.tasks if phase.tasks == training.recipe.tasks else _load_phase_tasks(phase)
        vary = make_vary(training.pool.pool, phase.pools, seed, training.others, tasks)
        drawn = (phase.tasks, phase.pools)
        if drawn not in fitting:
            engine.pools.vary = vary
            choose = select_fitting_tasks(tasks, engine.pools, engine.chat, engine.episode_format)
            fitting[drawn] = training.runner.run(choose)
            log.info("%s%d tasks, %d fit", f"{phase.name}: " * bool(phase.name), len(tasks), len(fitting[drawn]))
        curriculum = _restore_curriculum(fitting[drawn], training, settings, phase, offset)
        runs.append(PhaseRun(phase, curriculum, vary))
    return runs


def _load_phase_tasks(phase: Phase) -> list[Task]:
    chosen = phase.tasks
    tasks = open_source(chosen.source).tasks("train", chosen.count, chosen.seed, chosen.levels)
    if not tasks:
        raise TrainingFailed("tasks", f"{chosen.source}, of phase {phase.name}, has no task at these levels")
    return tasks


def find_phase_run(runs: Sequence[PhaseRun], step: int) -> PhaseRun:
    """The run of the phase that this step of the stage belongs to."""
    phase = find_phase([run.phase for run in runs], step)
    return next(run for run in runs if run.phase is phase)


def name_ends(phases: Sequence[Phase]) -> dict[int, str]:
    """The last step of each phase, with its name."""
    return {phase.last: phase.name for phase in phases}


def _restore_curriculum(
    tasks: Sequence[Task], training: TrainingContext, settings: GrpoSettings, phase: Phase, offset: int
) -> Curriculum:
    """The curriculum of a phase, with what is recorded of the start, and what the groups of an interrupted job have
    taught it."""
    past = None
    if CELLS[settings.curriculum.by].uses_past:  # every recorded run is looked at
        past = count_past_success(training.store, training.pool.pool.name, training.recipe.model.start)
    curriculum = Curriculum(tasks, settings.curriculum, settings.optimizer.seed, past)
    by_cell = {cell_of(task): task for task in tasks}
    by_query = {task.query: task for task in tasks}
    for row in read_lines(training.job_folder.rollouts):
        if not phase.before < int(str(row.get("step", 0))) - offset <= phase.last:
            continue
        level = (str(row.get("family")), int(str(row.get("level", 0))))
        task = by_query.get(str(row.get("query"))) or by_cell.get(level)
        episodes = row.get("episodes")
        if task is not None and isinstance(episodes, list) and episodes:
            curriculum.draw()  # so that the next draws are new ones
            curriculum.learn(task, sum(bool(episode.get("correct")) for episode in episodes) / len(episodes))
    return curriculum


def _keep_cost(training: TrainingContext, engine: RolloutEngine) -> None:
    """Write down what the episodes of a step have cost that did not end, so that it counts after a resume."""
    if engine.cost > training.job_folder.read_training_cost():
        rows = read_lines(training.job_folder.metrics)
        step = max((int(str(row.get("step", 0))) for row in rows), default=0)
        training.job_folder.append_metrics("stopped", step, {"cost/total": engine.cost})


def _make_arguments(training: TrainingContext, settings: GrpoSettings) -> GRPOConfig:
    recipe, rollouts, loss = training.recipe, settings.rollouts, settings.loss
    shared: dict[str, Any] = build_trainer_arguments(
        recipe.model, settings.optimizer, settings.all_steps, training.job_folder.draft
    )
    if rollouts.backend == "vllm-colocate":
        shared |= {
            "use_vllm": True,
            "vllm_mode": "colocate",
            "vllm_gpu_memory_utilization": rollouts.vllm_memory,
            "vllm_enable_sleep_mode": pick_device("auto") == "cuda",  # vLLM has it on no CPU
            "vllm_max_model_length": rollouts.max_length,
        }
    return GRPOConfig(
        **shared,
        per_device_train_batch_size=settings.micro_batch // recipe.processes,
        gradient_accumulation_steps=rollouts.prompts * rollouts.group // settings.micro_batch,
        num_generations=rollouts.group,
        max_completion_length=recipe.model.turn_tokens,
        temperature=rollouts.temperature,
        top_p=rollouts.top_p,
        loss_type="grpo" if loss.type == "gspo" else loss.type,
        importance_sampling_level="sequence" if loss.type == "gspo" else "token",
        beta=loss.beta,
        epsilon=loss.epsilon,
        epsilon_high=loss.epsilon_high,
        num_iterations=loss.iterations,
        **make_reward_arguments(len(settings.rewards)),
        log_completions=False,
    )


class _GeneratorBackend:
    """The generator of the recipe's choice, brought up to date before every step."""

    def __init__(self, training: TrainingContext, settings: GrpoSettings, learner: Learner, stack: ExitStack) -> None:
        self._training, self._settings, self._learner = training, settings, learner
        self._generator: Generator | None = None
        self._loaded = 0
        options = settings.rollouts
        sampling = SamplingParams(options.temperature, options.top_p)
        if options.backend == "transformers":
            generator = TransformersGenerator(learner.model, learner.tokenizer, sampling, options.concurrency)
            stack.callback(generator.close)
            self._generator = generator
        elif options.backend == "vllm":
            url = options.vllm_url or self._start_server(learner, stack)
            self._generator = ServerGenerator(url, "base", sampling)

    def _start_server(self, learner: Learner, stack: ExitStack) -> str:
        """Start a server for as long as this stage runs."""
        options = self._settings.rollouts
        extra = () if pick_device("auto") == "cpu" else ("--gpu-memory-utilization", str(options.vllm_memory))
        server = serve_model(
            model_path(learner.base),
            "base",
            lora=True,
            max_model_len=options.max_length,
            eager=options.vllm_eager,
            extra=extra,
        )
        return stack.enter_context(server).url

    def get_generator(self, trainer: Any) -> Generator:
        """The generator with the trainer's present weights."""
        if self._generator is None:
            self._generator = ColocatedGenerator(lambda prompts, grammar: generate_held(trainer, prompts, grammar))
        if isinstance(self._generator, ServerGenerator):
            self._send_adapter(self._generator, trainer)
        return self._generator

    def _send_adapter(self, server: ServerGenerator, trainer: Any) -> None:
        """Give the server the newest adapter under a new name; only the last two are kept."""
        self._loaded += 1
        adapters = self._training.job_folder.path / "adapters"
        place = adapters / str(self._loaded)
        trainer.accelerator.unwrap_model(trainer.model).save_pretrained(place)
        self._training.runner.run(server.load_adapter(f"{self._training.recipe.name}-{self._loaded}", place))
        shutil.rmtree(adapters / str(self._loaded - 2), ignore_errors=True)
