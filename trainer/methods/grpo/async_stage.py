"""GRPO with episodes that run on while the trainer updates: TRL's AsyncGRPOTrainer, our engine, and a vLLM server.

The server is the user's own, on other GPUs than the job's. Each new adapter goes there as a folder, under a name that
it has never had. Groups of episodes are learnt one by one as they end.
"""

from __future__ import annotations

import logging
import secrets
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback
from trl.experimental.async_grpo.async_grpo_config import AsyncGRPOConfig
from trl.experimental.async_grpo.async_grpo_trainer import AsyncGRPOTrainer

from trainer.errors import TrainingFailed
from trainer.learner.generator import SamplingParams
from trainer.learner.load_and_save import (
    JobCallback,
    Learner,
    TrainingContext,
    build_trainer_arguments,
    clear_draft,
    find_resume_checkpoint,
    load_learner,
)
from trainer.learner.ranks import is_first_rank, share_first
from trainer.learner.vllm_generator import ServerGenerator
from trainer.methods.base import StageStart
from trainer.methods.grpo.async_worker import AsyncWorker
from trainer.methods.grpo.phases import list_phases
from trainer.methods.grpo.rewards import load_rewards
from trainer.methods.grpo.rollouts import RolloutGroup
from trainer.methods.grpo.section import GrpoSettings
from trainer.methods.grpo.stage import PLACEHOLDER, open_engine, open_phases, record_groups
from trainer.precision import choose_precision

log = logging.getLogger(__name__)
STALENESS = 4  # updates after which an episode is too old to be learnt from
SILENCE_S = 1800.0  # without a group that ends


def run_async_grpo(training: TrainingContext, settings: GrpoSettings, start: StageStart) -> bool:
    """Train an adapter from the checkpoint of `start` (else the recipe's start), or go on where an interrupted job
    stopped. False when it was stopped on request.

    Raises TrainingFailed (and what loading a model raises) with the next action.
    """
    recipe, job_folder = training.recipe, training.job_folder
    offset = start.before
    _check_kernels()
    resume = find_resume_checkpoint(job_folder, "grpo", offset)
    learner = load_learner(recipe.model, settings.optimizer.seed, resume or start.checkpoint)
    if not learner.adapter:
        raise TrainingFailed("vllm", "the server is given adapters, not whole models: set model.lora")
    clear_draft(job_folder)
    name = share_first(f"{recipe.name}-{secrets.token_hex(3)}")
    callback = JobCallback(training, "grpo", settings.saving, learner, offset, settings.steps)
    with ExitStack() as stack:
        worker = _open_worker(training, settings, learner, offset, name, stack) if is_first_rank() else None
        trainer = _make_trainer(training, settings, learner, callback, worker)
        trainer._lora_name = name  # noqa: SLF001  a resumed job must not give a name again that the server knows
        trainer.remove_callback(PrinterCallback)  # the job's log has lines of its own
        trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    return not callback.stopped


def _check_kernels() -> None:
    try:
        import kernels  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError as error:
        raise TrainingFailed(
            "kernels",
            "vllm-async needs the package kernels, which fetches its attention for Hopper GPUs from the Hub: install "
            "it (pip install kernels), or set grpo.rollouts.backend: vllm",
        ) from error


def _open_worker(
    training: TrainingContext, settings: GrpoSettings, learner: Learner, offset: int, name: str, stack: ExitStack
) -> AsyncWorker:
    """What samples episodes for as long as the stack is open. Raises TrainingFailed where no task fits."""
    options = settings.rollouts
    engine = open_engine(training, settings, learner.tokenizer, load_rewards(settings.rewards), stack)
    (run,) = open_phases(training, settings, list_phases(settings, training.recipe), engine, offset)
    engine.pools.vary = run.vary

    def record(group: RolloutGroup, version: int, kept: bool) -> None:
        record_groups(training, offset + version, [group] if kept else [], [] if kept else [group], "")

    worker = AsyncWorker(
        training.runner,
        engine,
        run.curriculum,
        ServerGenerator(options.vllm_url, "base", SamplingParams(options.temperature, options.top_p)),
        groups=options.prompts,
        size=options.group,
        mixed_only=options.mixed_only,
        adapter=name,
        most_samples=options.prompts * options.group,
        on_group=record,
    )
    stack.callback(worker.stop)
    return worker


def _make_trainer(
    training: TrainingContext,
    settings: GrpoSettings,
    learner: Learner,
    callback: JobCallback,
    worker: AsyncWorker | None,
) -> AsyncGRPOTrainer:
    """TRL's trainer with the learner's adapter: it loads the base itself, and makes an adapter of the same form."""
    from peft import get_peft_model_state_dict, set_peft_model_state_dict

    config, weights = learner.model.peft_config["default"], get_peft_model_state_dict(learner.model)
    base, learner.model = str(learner.model.config.name_or_path), None
    try:
        trainer = AsyncGRPOTrainer(
            model=base,
            args=_make_arguments(training, settings),
            train_dataset=Dataset.from_list([{"prompt": PLACEHOLDER}]),
            processing_class=learner.tokenizer,
            callbacks=[callback],
            peft_config=replace(config, inference_mode=False),
            rollout_worker=worker,  # type: ignore[arg-type]  # its queues are one of the two kinds that TRL names
        )
    except (ImportError, OSError, ValueError, RuntimeError, TimeoutError) as error:
        raise TrainingFailed(
            "vllm", f"the vLLM server at {settings.rollouts.vllm_url} cannot be used: {error}"
        ) from error
    if not trainer._lora_sync:  # noqa: SLF001  it would send whole weights, which needs vLLM in this process, too
        raise TrainingFailed("vllm", "the vLLM server takes no adapters: start it as docs/scale.md says")
    learner.model = trainer.model
    set_peft_model_state_dict(learner.model, weights)
    return trainer


def _make_arguments(training: TrainingContext, settings: GrpoSettings) -> AsyncGRPOConfig:
    recipe, rollouts = training.recipe, settings.rollouts
    shared: dict[str, Any] = build_trainer_arguments(
        recipe.model, settings.optimizer, settings.steps, training.job_folder.draft
    )
    return AsyncGRPOConfig(
        **shared,
        dtype=choose_precision(recipe.model, gpu=True),
        per_device_train_batch_size=settings.micro_batch // recipe.processes,
        gradient_accumulation_steps=rollouts.prompts * rollouts.group // settings.micro_batch,
        num_generations=rollouts.group,
        temperature=rollouts.temperature,
        epsilon=settings.loss.epsilon,
        epsilon_high=settings.loss.epsilon_high,
        token_budget=-1,  # a step is so many episodes, as everywhere
        max_staleness=STALENESS,
        heartbeat_stale_after_s=SILENCE_S,
        vllm_server_base_url=rollouts.vllm_url.removesuffix("/").removesuffix("/v1"),
    )
