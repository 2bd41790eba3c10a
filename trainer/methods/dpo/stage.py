"""The DPO stage: pairs of recorded runs, then TRL's DPOTrainer learns to prefer the better side.

Tokens and their masks come from the transcripts that every method uses: a worker's output is context on both sides and
counts on neither. How likely the start finds each side is computed once, before the first step, so that no second
model is held; after a resume it is computed from the start again, and not from the checkpoint.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, set_seed
from trl import DPOConfig, DPOTrainer  # type: ignore[attr-defined]  # lazily exported
from trl.trainer.dpo_trainer import DataCollatorForPreference

from pool_registry.atomic_write import draft_file
from pool_registry.pool import Pool
from trainer.errors import TrainingFailed
from trainer.evaluation.stage import load_evaluation_tasks
from trainer.learner.load_and_save import (
    JobCallback,
    TrainingContext,
    build_trainer_arguments,
    clear_draft,
    find_resume_checkpoint,
    load_learner,
)
from trainer.learner.token_transcript import ChatTokens, Transcript
from trainer.methods.base import StageStart
from trainer.methods.checks import load_check_tasks
from trainer.methods.dpo.pairs import HOW_TO_MAKE_PAIRS, Pair, load_pairs, make_pairs, save_pairs
from trainer.methods.dpo.section import DpoSettings
from trainer.recipe import Recipe
from trainer.tasks.task import normalize_query

PAIRS = "pairs.jsonl"  # in the job's folder
REFERENCE = "ref"  # the adapter that TRL copies the start to
log = logging.getLogger(__name__)


def run_dpo(training: TrainingContext, settings: DpoSettings, start: StageStart) -> bool:
    """Train, or go on where an interrupted job stopped. False when it was stopped on request.

    Raises TrainingFailed (and what loading a model raises) with the next action.
    """
    recipe, job_folder = training.recipe, training.job_folder
    pairs = prepare_pairs(training, settings)
    resume = find_resume_checkpoint(job_folder, "dpo", start.before)
    # The start also after a resume: preferences count from there. The trainer then reads the checkpoint's weights.
    learner = load_learner(recipe.model, settings.optimizer.seed, start.checkpoint)
    learnt, held_out = make_datasets(pairs, ChatTokens(learner.tokenizer), settings.max_length)
    steps = count_steps(settings, len(learnt))
    left_out = len(pairs) - len(learnt) - len(held_out)
    log.info(
        "%d pairs to learn from, %d held out, %d longer than %d tokens; %d steps",
        len(learnt), len(held_out), left_out, settings.max_length, steps,
    )  # fmt: skip
    if resume is not None and int(resume.name) >= start.before + steps:
        return True  # each pair was seen as often as the recipe says
    clear_draft(job_folder)
    set_seed(settings.optimizer.seed)
    callback = JobCallback(training, "dpo", settings.saving, learner, start.before, steps)
    trainer = PairTrainer(
        model=learner.model,
        args=_make_arguments(training, settings, steps, measures=len(held_out) > 0),
        data_collator=PairCollator(learner.tokenizer.pad_token_id),
        train_dataset=learnt,
        eval_dataset=held_out if len(held_out) else None,
        processing_class=learner.tokenizer,
        callbacks=[callback],
    )
    trainer.remove_callback(PrinterCallback)  # the job's log has lines of its own
    if learner.adapter:
        learner.model.delete_adapter(REFERENCE)  # its figures are computed; a checkpoint has one adapter
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    return not callback.stopped


def prepare_pairs(training: TrainingContext, settings: DpoSettings) -> list[Pair]:
    """What to learn from: kept from before when this is a resume, else made of the recorded runs. Raises TrainingFailed
    where there is nothing, with what makes pairs."""
    file = training.job_folder.path / PAIRS
    if file.exists():
        return load_pairs(file)
    recipe, pool = training.recipe, training.pool
    measured = list_measured_queries(recipe, pool.pool)
    pairs = list(make_pairs(training.store, pool, recipe.model, settings.pairs, measured))
    if all(pair.held_out for pair in pairs):
        what = "the only pairs are held out" if pairs else "no recorded runs make a pair"
        raise TrainingFailed("pairs", f"{what} on the pool {pool.pool.name}: {HOW_TO_MAKE_PAIRS}")
    with draft_file(file) as draft:
        save_pairs(draft, pairs)
    return pairs


def list_measured_queries(recipe: Recipe, pool: Pool) -> set[str]:
    """The queries that the job's checkpoints and its evaluation are measured on. Raises TrainingFailed, UnknownTask."""
    tasks = load_evaluation_tasks(recipe.complete_evaluate()) if recipe.evaluate else []
    count = max((stage.settings.saving.check_tasks for stage in recipe.training_stages), default=0)
    checks = load_check_tasks(recipe, pool, count).values() if count else []
    return {normalize_query(task.query) for task in (*tasks, *(task for part in checks for task in part))}


def count_steps(settings: DpoSettings, pairs: int) -> int:
    """The steps that show each pair as often as the recipe says, at most those that it allows."""
    return min(settings.steps, max(1, math.ceil(settings.epochs * pairs / (settings.batch * settings.accumulation))))


def make_datasets(pairs: Sequence[Pair], chat: ChatTokens, max_length: int) -> tuple[Dataset, Dataset]:
    """Token ids of the pairs that fit, to learn from and held out. Raises TrainingFailed where none fits."""
    rows: dict[bool, list[dict[str, list[int]]]] = {False: [], True: []}
    shortest = math.inf
    for pair in pairs:
        better, worse = pair.better.transcript(chat), pair.worse.transcript(chat)
        longest = max(len(better.ids), len(worse.ids))
        shortest = min(shortest, longest)
        assert better.prompt == worse.prompt, "both sides of a pair begin alike"
        if longest <= max_length:
            rows[pair.held_out].append(_write_row(better, worse))
    if not rows[False]:
        raise TrainingFailed(
            "max_length", f"no pair fits: the longer side of the shortest has {shortest:,} tokens; raise dpo.max_length"
        )
    return Dataset.from_list(rows[False]), Dataset.from_list(rows[True])


def _write_row(better: Transcript, worse: Transcript) -> dict[str, list[int]]:
    return {
        "prompt_ids": better.prompt,
        "chosen_ids": better.completion,
        "rejected_ids": worse.completion,
        "chosen_learnt": better.mask,
        "rejected_learnt": worse.mask,
    }


class PairTrainer(DPOTrainer):
    """TRL's trainer on rows that are token ids already."""

    def _prepare_dataset(self, dataset: Dataset, *_: Any) -> Dataset:
        return dataset


class PairCollator:
    """Pads pairs as TRL does, and counts only the tokens that the model wrote: workers' outputs are context."""

    def __init__(self, pad: int) -> None:
        self._pad = DataCollatorForPreference(pad_token_id=pad)

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        batch: dict[str, Any] = self._pad(rows)
        learnt = [row[f"{side}_learnt"] for side in ("chosen", "rejected") for row in rows]
        prompts = [len(row["prompt_ids"]) for row in rows] * 2
        for line, (mask, before) in enumerate(zip(learnt, prompts, strict=True)):
            counted = batch["completion_mask"].new_tensor(mask)
            batch["completion_mask"][line, before : before + len(mask)] = counted
        return batch


def _make_arguments(training: TrainingContext, settings: DpoSettings, steps: int, measures: bool) -> DPOConfig:
    os.environ.setdefault("TQDM_DISABLE", "1")  # TRL's own bar over the reference figures
    output: Path = training.job_folder.draft
    shared = build_trainer_arguments(training.recipe.model, settings.optimizer, steps, output)
    return DPOConfig(
        **shared,
        beta=settings.beta,
        per_device_train_batch_size=settings.batch,
        per_device_eval_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulation,
        max_length=None,
        precompute_ref_log_probs=True,
        eval_strategy="steps" if measures else "no",
        eval_steps=min(settings.saving.every, steps),
    )
