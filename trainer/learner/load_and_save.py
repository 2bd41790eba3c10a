"""What methods share: loading the model that learns, the trainer's arguments, and the callback that writes
figures, saves checkpoints and stops on request.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from orchestrator.checkpoints import Checkpoint, find_checkpoint, read_checkpoint, verify_checkpoint
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import LivePool
from pool_registry.language_models.adapter_folder import check_adapter
from pool_registry.language_models.model_files import model_path, pick_device
from pool_registry.pool import Pool
from trainer.errors import TrainingFailed
from trainer.jobs.job_folder import JobFolder, new_manifest
from trainer.learner.fit_depth import fit_learnt_queries
from trainer.learner.ranks import is_first_rank, share_first, wait_for_ranks
from trainer.precision import choose_precision, warn_of_slow_bfloat16
from trainer.recipe import Recipe
from trainer.recipe_sections import (
    DemonstrationSettings,
    LoraSettings,
    ModelSettings,
    OptimizerSettings,
    SavingSettings,
)
from trainer.tasks.shared_pools import make_vary
from trainer.tasks.task import Task
from trainer.tasks.task_pools import VaryTask

log = logging.getLogger(__name__)
# (context, model, tokenizer, number of tasks) -> figures on validation tasks
MeasureCheckpoint = Callable[["TrainingContext", Any, Any, int], Mapping[str, float]]
# (recipe, settings, pool, store) -> where a teacher is sampled (demonstrations/collect.py); None: this process
OpenTeacher = Callable[[Recipe, DemonstrationSettings, Pool, Store], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class TrainingContext:
    """Everything that a training stage works with. The pool is open on the runner's event loop."""

    recipe: Recipe
    tasks: Sequence[Task]
    pool: LivePool
    store: Store
    job_folder: JobFolder
    runner: asyncio.Runner
    check: MeasureCheckpoint | None = None
    others: Sequence[Pool] = ()  # pools whose workers may be distractors
    open_teacher: OpenTeacher = lambda *_: nullcontext()

    def make_vary(self, seed: int) -> VaryTask:
        """The function that draws the pool of each task as the recipe says."""
        return make_vary(self.pool.pool, self.recipe.pools, seed, self.others, self.tasks)


@dataclass(slots=True)
class Learner:
    """A model ready for training, with its tokenizer. `base` is the model reference that an adapter belongs to."""

    model: Any
    tokenizer: Any
    base: str
    adapter: bool


def load_learner(settings: ModelSettings, seed: int, start: Path | None = None, sharded: bool = False) -> Learner:
    """Load the base model, or the checkpoint in `start` (else `settings.start`) to continue from. One that is to be
    `sharded` stays on the CPU: the trainer takes it from there layer by layer.

    Raises TrainingFailed, WorkerFault or UnknownOrchestrator when something is missing.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed

    from pool_registry.language_models.decode_attention import speed_up_on_cpu

    set_seed(seed)
    from_checkpoint = _find_start(settings, start)
    base, weights, adapter = settings.base, model_path(settings.base), None
    if from_checkpoint is not None:
        folder, manifest = from_checkpoint
        base = manifest.base
        if manifest.kind == "adapter":
            weights, adapter = model_path(manifest.base), folder
        else:
            weights = model_path(str(folder))
            base = str(folder) if settings.lora is not None else manifest.base
    learns_adapter = adapter is not None or settings.lora is not None
    # Weights that learn are float32: a step of 1e-6 is less than bfloat16 can add to most of them.
    precision = choose_precision(settings, torch.cuda.is_available())
    dtype = getattr(torch, precision) if learns_adapter else torch.float32
    warn_of_slow_bfloat16(settings)
    tokenizer = AutoTokenizer.from_pretrained(
        weights, local_files_only=True, padding_side="left", trust_remote_code=False
    )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(
        weights, dtype=dtype, local_files_only=True, trust_remote_code=False, use_safetensors=True
    )
    if not sharded:
        model = model.to(pick_device("auto"))
        speed_up_on_cpu(model)
    model.config.name_or_path = str(weights)  # TRL loads its reference model by this name
    if adapter is not None:
        model = _load_adapter(model, adapter)
    elif settings.lora is not None:
        model = _add_adapter(model, settings.lora)
    return Learner(model if sharded else model.to(pick_device("auto")), tokenizer, base, learns_adapter)


def _find_start(settings: ModelSettings, start: Path | None) -> tuple[Path, Checkpoint] | None:
    if start is not None:
        return start, verify_checkpoint(start)
    if not settings.start:
        return None
    # Not open_checkpoint: one that learnt with another version of the prompt may learn this one.
    folder, _ = find_checkpoint(settings.start)
    return folder, verify_checkpoint(folder)


def trains_adapter(settings: ModelSettings) -> bool:
    """Whether a recipe trains an adapter instead of every weight. Raises UnknownOrchestrator."""
    return settings.lora is not None or bool(settings.start and find_checkpoint(settings.start)[1].kind == "adapter")


def find_start_weights(settings: ModelSettings, start: Path | None) -> Path:
    """Find the folder of the model that a stage starts from."""
    checkpoint = _find_start(settings, start)
    return model_path(settings.base) if checkpoint is None else checkpoint[0]


def _add_adapter(model: Any, lora: LoraSettings) -> Any:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.targets,
        task_type="CAUSAL_LM",
    )
    try:
        return get_peft_model(model, config)
    except ValueError as error:
        raise TrainingFailed("lora_targets", f"model.lora.targets does not fit the base model: {error}") from error


def _load_adapter(model: Any, adapter: Path) -> Any:
    from peft import PeftModel

    check_adapter(adapter)
    return PeftModel.from_pretrained(model, adapter, is_trainable=True, use_safetensors=True)


def build_trainer_arguments(
    model: ModelSettings, optimizer: OptimizerSettings, steps: int, output: Path
) -> dict[str, Any]:
    """Build the arguments that TRL's configs share. Their defaults log, save and cast for GPUs.

    `bf16` is autocast: products in bfloat16 with weights of float32. On a CPU an adapter does without, as its frozen
    base is bfloat16 already.
    """
    import torch

    gpu = torch.cuda.is_available()
    return {
        "output_dir": str(output),
        "max_steps": steps,
        "learning_rate": optimizer.learning_rate,
        "lr_scheduler_type": optimizer.schedule,
        "warmup_steps": int(optimizer.warmup * steps),
        "weight_decay": optimizer.weight_decay,
        "max_grad_norm": optimizer.max_grad_norm,
        "seed": optimizer.seed,
        "data_seed": optimizer.seed,
        "bf16": choose_precision(model, gpu) == "bfloat16" and (gpu or not trains_adapter(model)),
        "use_cpu": not gpu,
        "gradient_checkpointing": model.checkpointing,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "remove_unused_columns": False,
    }


def configure_libraries(threads: int) -> None:
    """Turn off the libraries' progress bars and warnings, and limit torch to `threads` CPU threads (0: all)."""
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import datasets
    import torch
    from transformers.utils import logging as transformers_logging

    datasets.disable_progress_bars()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    warnings.filterwarnings("ignore", module=r"(transformers|trl|peft|torch)\b.*")
    if threads:
        torch.set_num_threads(threads)


class JobCallback(TrainerCallback):  # type: ignore[misc]  # transformers is not typed
    """Writes the trainer's figures and checkpoints to the job's folder, and stops it on request.

    `total` is the number of steps of this stage, `offset` the job's step before its first. `ends` are the last steps of
    the stage's phases, with their names: there is a checkpoint at each of them. The training's `check`
    measures the model at every checkpoint; its figures are stored in the manifest. Of several ranks the first one
    writes, measures and decides.
    """

    def __init__(
        self,
        training: TrainingContext,
        stage: str,
        saving: SavingSettings,
        learner: Learner,
        offset: int,
        total: int,
        ends: Mapping[int, str] | None = None,
    ) -> None:
        self.training, self.stage, self.learner = training, stage, learner
        self.job_folder = training.job_folder
        self.offset, self.total = offset, total
        self.ends = ends or {total: ""}
        self.saving = saving
        self.stopped = False
        self._figures: dict[str, float] = {}
        self._learnt_queries = cache(lambda: fit_learnt_queries(training.recipe.tasks))

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        step = state.global_step
        if share_first(self.job_folder.stop_requested):
            self.stopped = control.should_training_stop = True
        control.should_save = self.stopped or step % self.saving.every == 0 or step in self.ends
        control.should_log = True

    def on_log(self, _args: Any, state: Any, _control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        figures = {key: float(value) for key, value in (logs or {}).items() if isinstance(value, int | float)}
        if "train_runtime" in figures or not is_first_rank():  # the former: the summary after the last step
            return
        self._figures |= figures
        self.job_folder.append_metrics(self.stage, self.offset + state.global_step, figures)
        shown = ", ".join(f"{key} {figures[key]:.4g}" for key in ("loss", "reward", "learning_rate") if key in figures)
        log.info("%s step %d of %d: %s", self.stage, state.global_step, self.total, shown)

    def on_save(self, args: Any, state: Any, _control: Any, model: Any = None, **_: Any) -> None:
        wait_for_ranks()  # each has written its random state
        if is_first_rank():
            self._save(args, state, model)

    def _save(self, args: Any, state: Any, model: Any) -> None:
        step = self.offset + state.global_step
        drafted = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        self.learner.tokenizer.save_pretrained(drafted)
        figures: dict[str, float] = {}
        if self.training.check is not None and self.saving.check_tasks and not self.stopped:
            count = self.saving.check_tasks
            figures = dict(self.training.check(self.training, model, self.learner.tokenizer, count))
            self.job_folder.append_metrics(self.stage, step, figures)
        recipe, pool = self.training.recipe, self.training.pool
        manifest = new_manifest(recipe, pool, self.stage, step, self.learner.adapter, self.learner.base).model_copy(
            update={"metrics": {**self._figures, **figures}, "phase": self._name_phase(state.global_step)}
        )
        if (learnt := self._learnt_queries()) is not None:
            learnt.save(drafted)
        self.job_folder.save_checkpoint(drafted, manifest)
        self.job_folder.prune_checkpoints(self.saving.keep)
        log.info("checkpoint %d saved%s", step, f": {figures}" if figures else "")

    def _name_phase(self, step: int) -> str:
        return next((name for last, name in sorted(self.ends.items()) if step <= last), "")


def clear_draft(job_folder: JobFolder) -> None:
    """Remove what a killed job left incomplete."""
    if is_first_rank():
        shutil.rmtree(job_folder.draft, ignore_errors=True)


def find_resume_checkpoint(job_folder: JobFolder, stage: str, offset: int) -> Path | None:
    """Find the newest complete checkpoint of this stage, with the trainer's own state to resume from."""
    newest = job_folder.find_newest_checkpoint()
    if newest is None or newest[0] <= offset:
        return None
    folder = newest[1]
    return folder if read_checkpoint(folder, verify=True).stage == stage else None
