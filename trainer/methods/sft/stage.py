"""The SFT stage: collect demonstrations from a teacher on the pool, then TRL's SFTTrainer imitates them.

With several rounds of demonstrations (expert iteration) each round trains on what the checkpoint of the round before
finds, with the tasks' answers as judge.

Loss on the orchestrator's own turns only, and not on those that made a mistake: labels are made here, from
the same transcripts that GRPO uses, so that both stages learn exactly the same form.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, set_seed
from transformers.trainer_pt_utils import BatchRebalanceSampler
from trl import SFTConfig, SFTTrainer  # type: ignore[attr-defined]  # lazily exported

from pool_registry.atomic_write import draft_file, write_atomically
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.patience import RATE_LIMITED
from pool_registry.calls.spending import Spending
from trainer.demonstrations.collect import DemonstrationCollector, Progress
from trainer.demonstrations.lesson_files import load_lesson_file
from trainer.demonstrations.renamed_copies import make_variants
from trainer.demonstrations.taught import TaughtTasks, sum_taught
from trainer.demonstrations.token_lessons import load_lessons
from trainer.demonstrations.transcripts import (
    Demonstration,
    ReaderLesson,
    load_demonstrations,
    load_starred_demonstrations,
    save_demonstrations,
)
from trainer.errors import SpendCapReached, TrainingFailed
from trainer.jobs.job_folder import JobFolder
from trainer.learner.load_and_save import (
    JobCallback,
    TrainingContext,
    build_trainer_arguments,
    clear_draft,
    find_resume_checkpoint,
    load_learner,
)
from trainer.learner.ranks import run_ranks
from trainer.learner.sharding import SHARDING, shard_on_cpu
from trainer.learner.token_transcript import ChatTokens
from trainer.methods.sft.cpu_trainer import choose_sft_trainer
from trainer.methods.sft.section import SftSettings
from trainer.recipe import Recipe
from trainer.recipe_sections import DemonstrationSettings
from trainer.tasks.task import Task
from trainer.tasks.teachers import EXPLAIN_NO_PLANS, list_shown

SEED_DISTANCE = 1_000_003  # between the orders of two seeds, in epochs
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SftRound:
    """A round of expert iteration: its number from 1, and the job's steps before and after it."""

    number: int
    before: int
    end: int


def run_sft(training: TrainingContext, settings: SftSettings) -> bool:
    """Train, or go on where an interrupted job stopped. False when it was stopped on request.

    Raises TrainingFailed (and what loading a model raises) with the next action.
    """
    newest = training.job_folder.find_newest_checkpoint()
    for sft_round in list_rounds(settings):
        if settings.has_nothing_to_imitate(training.job_folder.demonstrations):
            return True
        if (newest is None or newest[0] < sft_round.end) and not _run_round(training, settings, sft_round):
            return False
    return True


def list_rounds(settings: SftSettings) -> list[SftRound]:
    """The rounds of expert iteration; one where there is none."""
    ends = settings.list_round_ends()
    return [SftRound(number, before, end) for number, (before, end) in enumerate(pairwise((0, *ends)), start=1)]


def _run_round(training: TrainingContext, settings: SftSettings, sft_round: SftRound) -> bool:
    recipe, job_folder = training.recipe, training.job_folder
    rows = [] if settings.demonstrations.lessons else prepare_demonstrations(training, settings, sft_round)
    if job_folder.stop_requested:
        return False
    if settings.has_nothing_to_imitate(job_folder.demonstrations):
        return True
    if recipe.processes > 1:
        home = training.store.home.root
        return run_ranks(job_folder.path.name, home, "sft", sft_round.number, recipe.processes)
    return _learn(training, settings, sft_round, rows)


def train_sft_round(training: TrainingContext, settings: SftSettings, number: int) -> bool:
    """Learn what the job's process has collected for a round, as one of several processes. False when stopped."""
    has_file = not settings.demonstrations.lessons
    rows = load_demonstrations(training.job_folder.find_demonstrations(number)) if has_file else []
    return _learn(training, settings, list_rounds(settings)[number - 1], rows)


def _learn(
    training: TrainingContext, settings: SftSettings, sft_round: SftRound, rows: Sequence[Demonstration]
) -> bool:
    """Train on demonstrations, or on lessons that are there already, up to the last step of a round. False when it was
    stopped on request."""
    recipe, job_folder = training.recipe, training.job_folder
    resume = find_resume_checkpoint(job_folder, "sft", sft_round.before)
    start = job_folder.find_newest_checkpoint() if sft_round.before and resume is None else None
    sharded = recipe.sharding == "full"
    learner = load_learner(recipe.model, settings.optimizer.seed, resume or (start[1] if start else None), sharded)
    data = _load_data(recipe, settings, rows, learner.tokenizer)
    clear_draft(job_folder)
    set_seed(settings.optimizer.seed)
    steps = sft_round.end - sft_round.before
    ends = {steps: f"round-{sft_round.number}"} if settings.demonstrations.rounds > 1 else None
    callback = JobCallback(training, "sft", settings.saving, learner, sft_round.before, steps, ends)
    trainer = draw_order_by_seed(choose_sft_trainer(learner.model))(
        model=learner.model,
        args=_make_arguments(recipe, settings, job_folder, steps),
        train_dataset=data,
        processing_class=learner.tokenizer,
        callbacks=[callback],
    )
    trainer.remove_callback(PrinterCallback)  # the job's log has lines of its own
    shard_on_cpu(trainer)
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    return not callback.stopped


def _load_data(recipe: Recipe, settings: SftSettings, rows: Sequence[Demonstration], tokenizer: Any) -> Dataset:
    """The rows to train on. Raises TrainingFailed."""
    folder = settings.demonstrations.lessons
    if folder:
        data = load_lessons(Path(folder).expanduser(), recipe.model.prompt, tokenizer, settings.max_length)
        log.info("%d lessons of %s have at most %d tokens", len(data), folder, settings.max_length)
        return data
    data = make_dataset(rows, ChatTokens(tokenizer), settings.max_length)
    log.info("%d demonstrations, %d fit into %d tokens", len(rows), len(data), settings.max_length)
    return data


def draw_order_by_seed(kind: type[SFTTrainer]) -> type[SFTTrainer]:
    """The trainer, with rows in an order that `data_seed` decides: that of batch_rebalance is fixed in transformers."""

    class SeededTrainer(kind):  # type: ignore[misc, valid-type]  # chosen at run time
        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            sampler = super()._get_train_sampler(train_dataset)
            if isinstance(sampler, BatchRebalanceSampler):
                # It adds the number of the epoch. Far apart, one seed's second epoch is not another's first.
                sampler.seed = (sampler.seed + SEED_DISTANCE * self.args.data_seed) % 2**63
            return sampler

    return SeededTrainer


def prepare_demonstrations(
    training: TrainingContext, settings: SftSettings, sft_round: SftRound
) -> list[Demonstration]:
    """What to imitate: kept from before when this is a resume, else sampled now. Written into the folder."""
    file = training.job_folder.find_demonstrations(sft_round.number)
    if file.exists():
        return load_demonstrations(file)
    rows = _collect_first(training, settings) if sft_round.number == 1 else _collect_next(training, settings, sft_round)
    if training.job_folder.stop_requested:
        return []
    with draft_file(file) as draft:
        save_demonstrations(draft, rows)
    return rows


def _collect_next(training: TrainingContext, settings: SftSettings, sft_round: SftRound) -> list[Demonstration]:
    """What the checkpoint of the round before finds, and for tasks that it does not solve what earlier rounds found."""
    job_folder, options = training.job_folder, settings.demonstrations
    earlier = load_demonstrations(job_folder.find_demonstrations(sft_round.number - 1))
    teacher = f"{job_folder.path.name}@{sft_round.before}"
    own = options.model_copy(update={"teacher": teacher, "faults": 0.0})
    new = _sample_teacher(training, own, settings.optimizer.seed + sft_round.number, sft_round.number)
    solved = {row.query for row in new}
    kept = [row for row in earlier if row.query not in solved]
    log.info("round %d: %d tasks solved by %s, %d kept from before", sft_round.number, len(new), teacher, len(kept))
    return [*new, *kept]


def _sample_teacher(
    training: TrainingContext, options: DemonstrationSettings, seed: int, round_number: int
) -> list[Demonstration]:
    """One demonstration of the teacher for each task that it solves; empty when the job was asked to stop, and where
    the teacher can show none. Raises SpendCapReached, and TrainingFailed where a worker takes no calls for too long."""
    recipe, job_folder = training.recipe, training.job_folder
    tasks = list_shown(options.teacher, training.tasks)
    if not tasks:
        return []
    taught = TaughtTasks(
        job_folder.find_taught(round_number),
        options.max_cost,
        sum(sum_taught(job_folder.find_taught(number)) for number in range(1, round_number)),
        lambda: job_folder.stop_requested,
        training.store.traces.flush,
    )
    pool = CachingPool(training.pool)
    rounds = pool.pool.limits.max_rounds
    with training.open_teacher(recipe, options, pool.pool, training.store) as place:
        collector = DemonstrationCollector(
            options, recipe.model, pool, training.store.traces, seed, rounds, training.make_vary(seed), place, taught
        )
        progress = _make_progress(job_folder, taught.spending)
        rows = training.runner.run(collector.collect(tasks, progress))
    _write_cost(job_folder, taught.spending)
    if job_folder.stop_requested:
        return []
    _check_complete(taught, collector.ended, len(tasks))
    sentence = describe_taught(options, collector, len(tasks), len(rows))
    write_atomically(job_folder.taught, json.dumps({"sentence": sentence}))
    log.info("%s", sentence)
    return rows


def _check_complete(taught: TaughtTasks, ended: int, tasks: int) -> None:
    """Raise TrainingFailed or SpendCapReached where tasks are left to be shown."""
    if ended == tasks:
        return
    if taught.spending.lost:
        raise TrainingFailed(RATE_LIMITED, taught.patience.explain_loss())
    raise SpendCapReached(
        f"its cap of ${taught.spending.max_cost:g} allows no more: ${taught.spending.used.cost:.4f} spent on the "
        f"demonstrations of {ended:,} of {tasks:,} tasks. What is finished counts. To go on, raise "
        "sft.demonstrations.max_cost: jobs resume JOB --max-cost DOLLARS"
    )


def describe_taught(options: DemonstrationSettings, collector: DemonstrationCollector, tasks: int, kept: int) -> str:
    """What came of asking the teacher, as a sentence for people."""
    if kept or options.required:
        recovered = f", {collector.recovered:,} of them with a recovery" if collector.recovered else ""
        solved = f"The teacher {options.teacher} solved {collector.correct:,} of {tasks:,} tasks"
        return f"{solved}; {kept:,} of its runs are imitated{recovered}."
    return (
        f"The teacher {options.teacher} showed nothing to imitate on {tasks:,} tasks: {explain_nothing(collector)}. "
        "The job goes on without demonstrations, from the model that it starts with."
    )


def explain_nothing(collector: DemonstrationCollector) -> str:
    """Why nothing is imitated, as the end of a sentence."""
    if collector.correct:
        return "none of its right answers came from a plan that calls workers"
    if not collector.failures:
        return "it solved none"
    (failure, count), *_ = collector.failures.most_common(1)
    return f"it could not be asked on {count:,} of them ({failure.rstrip('.')})"


def _collect_first(training: TrainingContext, settings: SftSettings) -> list[Demonstration]:
    """What the recipe's teacher shows, and what a person starred or gives in a file. Raises TrainingFailed where there
    is nothing."""
    recipe, pool, job_folder = training.recipe, training.pool, training.job_folder
    rounds = pool.pool.limits.max_rounds
    options = settings.demonstrations
    lesson = ReaderLesson(recipe.model.choose_listing(), options.listed_needs)
    rows: list[Demonstration] = []
    if options.starred:
        rows += load_starred_demonstrations(training.store.traces, pool, recipe.model, rounds, lesson)
    if options.file:
        rows += load_lesson_file(Path(options.file).expanduser(), recipe.model, lesson)
    rows += _sample_teacher(training, options, settings.optimizer.seed, 1)
    if job_folder.stop_requested:
        return []
    if not rows and options.required:
        raise TrainingFailed(
            "demonstrations",
            f"the teacher {options.teacher} solved none of {len(training.tasks)} tasks: there is nothing to imitate. "
            + _suggest_teachers(training.tasks),
        )
    return [*rows, *make_variants(rows, options.variants, settings.optimizer.seed)]


def _suggest_teachers(tasks: Sequence[Task]) -> str:
    """What else could teach these tasks."""
    if any(task.oracle_turn is not None for task in tasks):
        return (
            "Their reference plans are a teacher (sft.demonstrations.teacher: oracle); or choose easier tasks "
            "(tasks.levels), or more samples of a checkpoint that reads any pool"
        )
    return f"{EXPLAIN_NO_PLANS[0].upper()}{EXPLAIN_NO_PLANS[1:]}"


def _make_progress(job_folder: JobFolder, spending: Spending) -> Progress:
    """Tell every twentieth of the way."""

    def report(done: int, total: int) -> None:
        if done == total or done % max(1, total // 20) == 0:
            figures = {"demonstrations/done": done, "demonstrations/total": total}
            job_folder.append_metrics("demonstrations", 0, figures)
            _write_cost(job_folder, spending)
            log.info("demonstrations: %d of %d tasks", done, total)

    return report


def _write_cost(job_folder: JobFolder, spending: Spending) -> None:
    """Count what the teacher has spent among what training has."""
    if spending.used.cost:
        job_folder.append_metrics("demonstrations", 0, {"cost/total": spending.used.cost})


def make_dataset(rows: Sequence[Demonstration], chat: ChatTokens, max_length: int) -> Dataset:
    """`input_ids` and `labels` of equal length, and that `length`, per row. Raises TrainingFailed when nothing fits."""
    transcripts = [row.transcript(chat) for row in rows]
    fitting = [transcript for transcript in transcripts if len(transcript.ids) <= max_length and any(transcript.mask)]
    if not fitting:
        longest = min((len(transcript.ids) for transcript in transcripts), default=0)
        raise TrainingFailed(
            "max_length", f"no demonstration fits: the shortest has {longest:,} tokens; raise sft.max_length"
        )
    return Dataset.from_list(
        [{"input_ids": row.ids, "labels": row.labels(), "length": len(row.ids)} for row in fitting]
    )


def _make_arguments(recipe: Recipe, settings: SftSettings, job_folder: JobFolder, steps: int) -> SFTConfig:
    shared: dict[str, Any] = build_trainer_arguments(recipe.model, settings.optimizer, steps, job_folder.draft)
    if recipe.sharding == "full":
        shared |= SHARDING
    return SFTConfig(
        **shared,
        per_device_train_batch_size=settings.batch // recipe.processes,
        gradient_accumulation_steps=settings.accumulation,
        max_length=settings.max_length,
        packing=settings.packing,
        # Every optimizer step is a random sample; only its micro-batches are sorted by length, to save padding.
        # Batches of equal length throughout would each hold one family of tasks, and the steps would fight.
        train_sampling_strategy="random" if settings.packing else "batch_rebalance",
    )
