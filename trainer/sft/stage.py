"""The SFT stage: collect demonstrations from a teacher on the pool, then TRL's SFTTrainer imitates them.

Loss on the orchestrator's own turns only, and not on those that made a mistake: labels are made here, from
the same transcripts that GRPO uses, so that both stages learn exactly the same form.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, set_seed
from trl import SFTConfig  # type: ignore[attr-defined]  # lazily exported

from pool_registry.atomic_write import draft_file
from trainer.errors import TrainingFailed
from trainer.grpo.token_transcript import ChatTokens
from trainer.jobs.job_folder import JobFolder
from trainer.learner.cpu_trainers import choose_sft_trainer
from trainer.learner.load_and_save import (
    JobCallback,
    TrainingContext,
    build_trainer_arguments,
    clear_draft,
    find_resume_checkpoint,
    load_learner,
)
from trainer.recipe import Recipe, SftSettings
from trainer.sft.collect import DemonstrationCollector, Progress
from trainer.sft.demonstrations import (
    Demonstration,
    load_demonstrations,
    load_starred_demonstrations,
    save_demonstrations,
)
from trainer.sft.renamed_copies import make_variants
from trainer.tasks.task import Task
from trainer.tasks.teachers import EXPLAIN_NO_PLANS

log = logging.getLogger(__name__)


def run_sft(training: TrainingContext) -> bool:
    """Train, or go on where an interrupted job stopped. False when it was stopped on request.

    Raises TrainingFailed (and what loading a model raises) with the next action.
    """
    recipe, job_folder = training.recipe, training.job_folder
    settings = recipe.sft
    assert settings is not None, "the caller chose this stage"
    resume = find_resume_checkpoint(job_folder, "sft", 0)
    rows = prepare_demonstrations(training, settings)
    if job_folder.stop_requested:
        return False
    learner = load_learner(recipe.model, settings.optimizer.seed, resume)
    data = make_dataset(rows, ChatTokens(learner.tokenizer), settings.max_length)
    log.info("%d demonstrations, %d fit into %d tokens", len(rows), len(data), settings.max_length)
    clear_draft(job_folder)
    set_seed(settings.optimizer.seed)
    callback = JobCallback(training, "sft", settings.saving, learner, 0, settings.steps)
    trainer = choose_sft_trainer(learner.model)(
        model=learner.model,
        args=_make_arguments(recipe, settings, job_folder),
        train_dataset=data,
        processing_class=learner.tokenizer,
        callbacks=[callback],
    )
    trainer.remove_callback(PrinterCallback)  # the job's log has lines of its own
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    return not callback.stopped


def prepare_demonstrations(training: TrainingContext, settings: SftSettings) -> list[Demonstration]:
    """What to imitate: kept from before when this is a resume, else sampled now. Written into the folder."""
    recipe, pool, job_folder = training.recipe, training.pool, training.job_folder
    if job_folder.demonstrations.exists():
        return load_demonstrations(job_folder.demonstrations)
    rounds = pool.pool.limits.max_rounds
    options = settings.demonstrations
    rows = (
        list(load_starred_demonstrations(training.store.traces, pool, recipe.model, rounds)) if options.starred else []
    )
    if options.file:
        rows += load_demonstrations(Path(options.file).expanduser())
    seed = settings.optimizer.seed
    collector = DemonstrationCollector(
        options, recipe.model, pool, training.store.traces, seed, rounds, training.make_vary(seed)
    )
    rows += training.runner.run(_collect(collector, training.tasks, job_folder))
    if job_folder.stop_requested:
        return []
    log.info(
        "%d tasks, %d trajectories, %d tasks solved, %d kept with a recovery",
        len(training.tasks), collector.tried, collector.correct, collector.recovered,
    )  # fmt: skip
    if not rows:
        raise TrainingFailed(
            "demonstrations",
            f"the teacher {options.teacher} solved none of {len(training.tasks)} tasks: there is nothing to imitate. "
            + _suggest_teachers(training.tasks),
        )
    rows += make_variants(rows, options.variants, settings.optimizer.seed)
    with draft_file(job_folder.demonstrations) as draft:
        save_demonstrations(draft, rows)
    return rows


def _suggest_teachers(tasks: Sequence[Task]) -> str:
    """What else could teach these tasks."""
    if any(task.oracle_turn is not None for task in tasks):
        return (
            "Their reference plans are a teacher (sft.demonstrations.teacher: oracle); or choose easier tasks "
            "(tasks.levels), or more samples of a checkpoint that reads any pool"
        )
    return f"{EXPLAIN_NO_PLANS[0].upper()}{EXPLAIN_NO_PLANS[1:]}"


async def _collect(
    collector: DemonstrationCollector, tasks: Sequence[Task], job_folder: JobFolder
) -> list[Demonstration]:
    progress = _make_progress(job_folder)
    collecting = asyncio.create_task(collector.collect(tasks, progress))
    while not collecting.done():
        await asyncio.wait([collecting], timeout=0.5)
        if job_folder.stop_requested and not collecting.done():
            collecting.cancel()
            await asyncio.wait([collecting])
            return []
    return collecting.result()


def _make_progress(job_folder: JobFolder) -> Progress:
    """Tell every twentieth of the way."""

    def report(done: int, total: int) -> None:
        if done == total or done % max(1, total // 20) == 0:
            job_folder.append_metrics("demonstrations", 0, {"demonstrations/done": done, "demonstrations/total": total})
            log.info("demonstrations: %d of %d tasks", done, total)

    return report


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


def _make_arguments(recipe: Recipe, settings: SftSettings, job_folder: JobFolder) -> SFTConfig:
    shared: dict[str, Any] = build_trainer_arguments(recipe.model, settings.optimizer, settings.steps, job_folder.draft)
    return SFTConfig(
        **shared,
        per_device_train_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulation,
        max_length=settings.max_length,
        packing=settings.packing,
        # Every optimizer step is a random sample; only its micro-batches are sorted by length, to save padding.
        # Batches of equal length throughout would each hold one family of tasks, and the steps would fight.
        train_sampling_strategy="random" if settings.packing else "batch_rebalance",
    )
