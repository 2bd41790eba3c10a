"""A job's folder: what training writes and what the page reads. No database here: files only.

recipe.yaml            the recipe of the job
log.txt                the output of the job's process
metrics.jsonl          one object per line: step, stage, figures
rollouts.jsonl         one line per group of sampled episodes
demonstrations.jsonl   what is imitated
taught.jsonl           one line per task that a teacher has shown (demonstrations/taught.py); taught.json sums them up
results.jsonl          one line per evaluated episode (results/rows.py)
known.json             the recorded past that an evaluation reads (evaluation/frozen_past.py)
evaluations.jsonl      one line per orchestrator and condition of the evaluate stage
outcomes.jsonl         one line per question that an agent answered alone in the stage `who`; agents.jsonl sums them up
costs.jsonl            what episodes have cost that is in none of these rows: a cap cut them off, or a judge was asked
who.json               what came of training the success predictor
checkpoints/STEP/      complete checkpoints (orchestrator/checkpoints.py)
name.txt               the name that a person gave the job
stop                   exists once the job was asked to stop
end.json               how the job's process ended (end_record.py)
attempt.json           of a job on rented machines: which machine it is, counted from 1
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.binding.learnt_worker import describe_learnt_pool
from orchestrator.checkpoints import JOB_NAME, Checkpoint, TrainedPool, complete_steps, read_checkpoint, seal
from orchestrator.errors import UnknownOrchestrator
from orchestrator.prompt_styles import PROMPTS
from pool_registry.actions import JsonValue
from pool_registry.atomic_write import write_atomically
from pool_registry.calls.live_pool import LivePool
from trainer.recipe import Recipe
from trainer.results.rows import RESULTS, append_line

log = logging.getLogger(__name__)
BEST_METRIC = "check/correct"


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The files of one job."""

    path: Path

    @property
    def recipe(self) -> Path:
        return self.path / "recipe.yaml"

    @property
    def log(self) -> Path:
        return self.path / "log.txt"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def rollouts(self) -> Path:
        return self.path / "rollouts.jsonl"

    @property
    def results(self) -> Path:
        return self.path / RESULTS

    @property
    def evaluations(self) -> Path:
        return self.path / "evaluations.jsonl"

    @property
    def outcomes(self) -> Path:
        return self.path / "outcomes.jsonl"

    @property
    def who(self) -> Path:
        return self.path / "who.json"

    @property
    def name(self) -> Path:
        return self.path / JOB_NAME

    @property
    def frozen_past(self) -> Path:
        return self.path / "known.json"

    @property
    def demonstrations(self) -> Path:
        return self.path / "demonstrations.jsonl"

    def find_demonstrations(self, round_number: int) -> Path:
        """What is imitated in a round of expert iteration, from 1; the first round has the plain name."""
        first = self.demonstrations
        return first if round_number == 1 else first.with_stem(f"{first.stem}-{round_number}")

    def find_taught(self, round_number: int) -> Path:
        """What a teacher has shown in a round of expert iteration, from 1."""
        return self.path / ("taught.jsonl" if round_number == 1 else f"taught-{round_number}.jsonl")

    @property
    def taught(self) -> Path:
        return self.path / "taught.json"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def draft(self) -> Path:
        """The folder in which a checkpoint is written before it is moved to `checkpoints`."""
        return self.path / "draft"

    @property
    def stop_file(self) -> Path:
        return self.path / "stop"

    @property
    def end(self) -> Path:
        return self.path / "end.json"

    @property
    def attempt(self) -> int:
        """Which machine a job on rented ones has now, counted from 1."""
        try:
            return int(json.loads(self._attempt_file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return 1

    @property
    def _attempt_file(self) -> Path:
        return self.path / "attempt.json"

    def begin_attempt(self) -> None:
        """Let the job have another rented machine, with a log of its own; the one before is kept beside it."""
        if self.log.exists():
            self.log.rename(self.log.with_stem(f"{self.log.stem}-{self.attempt}"))
        write_atomically(self._attempt_file, json.dumps(self.attempt + 1))

    def create(self) -> JobFolder:
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        return self

    @property
    def stop_requested(self) -> bool:
        """Whether the job was asked to stop."""
        return self.stop_file.exists()

    def append_metrics(self, stage: str, step: int, figures: Mapping[str, float]) -> None:
        """Append the figures of a step to metrics.jsonl."""
        self._append(self.metrics, {"stage": stage, "step": step, "at": time.time(), **figures})

    def append_group(self, group: Mapping[str, JsonValue]) -> None:
        """Append a group of episodes to rollouts.jsonl."""
        self._append(self.rollouts, group)

    def append_cost(self, stage: str, dollars: float) -> None:
        """Append what an episode of a stage has cost that is in no row of results."""
        self._append(self._costs, {"stage": stage, "cost": dollars})

    def sum_costs(self, stage: str) -> float:
        """What the episodes of a stage have cost, in US dollars, that is in no row of results."""
        return sum(float(str(row["cost"])) for row in read_lines(self._costs) if row.get("stage") == stage)

    @property
    def _costs(self) -> Path:
        return self.path / "costs.jsonl"

    def append_evaluation(self, evaluation: Mapping[str, JsonValue]) -> None:
        """Append the summary of an orchestrator in one condition to evaluations.jsonl."""
        self._append(self.evaluations, evaluation)

    def truncate_after(self, step: int) -> None:
        """Drop lines beyond `step`, where training resumes: they will be written again.

        A last line that a kill has torn is dropped too. The money spent so far is carried over in a new line.
        """
        spending = self.read_training_cost()
        self._drop_after(step)
        if spending > 0:
            self.append_metrics("resumed", step, {"cost/total": spending})

    def read_training_cost(self) -> float:
        """What training has cost so far, in US dollars."""
        totals = [float(str(row["cost/total"])) for row in read_lines(self.metrics) if "cost/total" in row]
        return totals[-1] if totals else 0.0

    def _drop_after(self, step: int) -> None:
        for path in (self.metrics, self.rollouts, self.evaluations):
            kept = [row for row in read_lines(path) if int(str(row.get("step", 0))) <= step]
            write_atomically(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept))

    def find_intact_checkpoint(self) -> tuple[int, Path] | None:
        """Find the newest checkpoint whose files match their hashes; damaged ones that are newer are renamed."""
        for step, folder in complete_steps(self.checkpoints):
            try:
                read_checkpoint(folder, verify=True)
            except UnknownOrchestrator as error:
                log.warning("%s; going on from the one before", error)
                folder.rename(folder.with_name(f"{step}.damaged-{time.time_ns()}"))
            else:
                return step, folder
        return None

    def find_newest_checkpoint(self) -> tuple[int, Path] | None:
        """Find the newest complete checkpoint: (step, folder)."""
        return next(iter(complete_steps(self.checkpoints)), None)

    def save_checkpoint(self, drafted: Path, checkpoint: Checkpoint) -> Path:
        """Seal a drafted checkpoint and move it to `checkpoints/STEP`, all or nothing. Returns its folder."""
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        seal(drafted, checkpoint)
        target = self.checkpoints / str(checkpoint.step)
        if target.exists():  # incomplete after a kill, or written again after a resume
            shutil.rmtree(target)
        drafted.rename(target)
        return target

    def prune_checkpoints(self, keep: int) -> None:
        """Remove old checkpoints, but never the newest `keep`, the last of a stage or phase, or the best one.

        Incomplete folders that a kill left behind are removed too.
        """
        steps = complete_steps(self.checkpoints)
        complete = {folder for _, folder in steps}
        for folder in self.checkpoints.iterdir():
            if folder.name.isdigit() and folder not in complete:
                shutil.rmtree(folder, ignore_errors=True)
        manifests = {step: read_checkpoint(folder) for step, folder in steps}
        last = {(manifest.stage, manifest.phase): step for step, manifest in sorted(manifests.items())}
        best = max(manifests, key=lambda step: (manifests[step].metrics.get(BEST_METRIC, -1.0), step), default=None)
        kept = {step for step, _ in steps[:keep]} | set(last.values()) | {best}
        for step, folder in steps:
            if step not in kept:
                shutil.rmtree(folder)

    @staticmethod
    def _append(path: Path, row: Mapping[str, JsonValue]) -> None:
        append_line(path, json.dumps(row, ensure_ascii=False))


def read_lines(path: Path, offset: int = 0) -> list[dict[str, JsonValue]]:
    """Read the complete lines of a JSONL file from a byte offset on; a torn last line is left out."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            text = file.read()
    except FileNotFoundError:
        return []
    rows = []
    for line in text.split(b"\n")[:-1]:
        try:
            row = json.loads(line)
        except ValueError:  # torn by a kill in the middle of a write; the lines after it are whole
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def new_manifest(recipe: Recipe, pool: LivePool, stage: str, step: int, adapter: bool, base: str) -> Checkpoint:
    """Build the manifest of a checkpoint of this job; `seal` adds the hashes of its files."""
    return Checkpoint.model_validate(
        {
            "name": f"{recipe.name}-{stage}-{step}",
            "kind": "adapter" if adapter else "full",
            "base": base,
            "stage": stage,
            "step": step,
            "dialect": recipe.model.dialect,
            "prompt": recipe.model.prompt,
            "prompt_version": PROMPTS[recipe.model.prompt].version,
            "hints": recipe.model.count_hints(),
            "languages": recipe.model.list_languages(),
            "turn_tokens": recipe.model.turn_tokens,
            "max_rounds": recipe.max_rounds,
            "pool": TrainedPool(
                name=pool.pool.name,
                hash=pool.hash,
                workers=tuple(pool.workers),
                specs=describe_learnt_pool(pool),
            ),
            "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "recipe": recipe.model_dump(mode="json"),
        }
    )
