"""Train the success predictor on a pool's own log, from the one that ships, and say whether that made it better.

A share of the questions is held out. On the others the head learns by the log loss of every outcome: the kernels that
say which questions are alike, and how figures and reading weigh. The encoder stays, so that each row is read once. For
how many steps is decided by cross-validation over questions; none may be best. What is held out then scales the chances
and judges them (own_figures.py), and the scale becomes part of the weights: what is written is a predictor like the
one that ships.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from assets import asset
from orchestrator.choice.network import SuccessPredictor
from orchestrator.choice.own_predictors import FIGURES_FILE, keep_own_predictor
from orchestrator.choice.predictor import FOLDER, check_installed, load_predictor
from orchestrator.choice.scores import Candidate, score_by_log
from trainer.choice.adapter import ADAPTER_FILE, CONFIG_FILE, HEAD_FILE
from trainer.choice.own_batch import OwnBatch, build_table, hide_questions, make_batch, read_rows, score_rows
from trainer.choice.own_figures import (
    Judgement,
    Outcomes,
    Scale,
    compute_log_loss,
    compute_scaled_loss,
    fit_scale,
    judge_chances,
    scale_by_other_half,
)
from trainer.choice.own_log import OwnLog, hold_out, normalize_need

FOLDS = 4
AT_ONCE = 16  # questions of a step, at most
STOPS = (0, 5, 10, 20, 40, 80, 160)  # steps of which cross-validation chooses
RATES = {"directions": 1e-4, "hidden": 1e-4, "out": 3e-4, "direct": 3e-4}  # by a part of the weights' names
READING_SHARE = 0.6  # of the minutes
REPORT_EVERY = 5.0  # seconds

Progress = Callable[[str], None]
KeepPredictor = Callable[[str, Callable[[Path], object]], object]  # (pool, what fills a folder)
ReadBatch = tuple[OwnBatch, Tensor]


@dataclass(frozen=True, slots=True)
class OwnFigures:
    """What a training on a pool's log came to. `before` is the predictor that ships, `after` the trained one, `log` the
    nearest outcomes of the log (`+who=log`), all on the outcomes of questions that were held out."""

    pool: str
    seed: int
    outcomes: int
    questions: int
    held_out_questions: int
    held_out_outcomes: int
    steps: int
    seconds: float
    before: Judgement
    after: Judgement
    log: Judgement
    scale: Scale

    @property
    def is_better(self) -> bool:
        """Whether the trained predictor is to be used: its log loss is lower."""
        return self.after.log_loss < self.before.log_loss


class OwnTraining:
    """A training on one log. `tell` is given a line now and then."""

    def __init__(self, log: OwnLog, seed: int, tell: Progress) -> None:
        self._log, self._seed, self._tell = log, seed, tell
        self._tokenizer, self.shipped = load_predictor(asset(FOLDER))
        self.table = build_table(log, self._tokenizer)
        self.learnt, self.held_out = hold_out(log.questions, seed)
        self._shown = torch.zeros(len(log.questions), dtype=torch.bool)
        self._shown[self.learnt] = True

    def read_held_out(self) -> list[ReadBatch]:
        """The questions that are only measured on, as the encoder reads them."""
        return self._read(self.held_out, "that are held out", None)

    def read_learnt(self, until: float) -> list[ReadBatch]:
        """As many of the other questions as there is time for."""
        order = torch.randperm(len(self.learnt), generator=torch.Generator().manual_seed(self._seed)).tolist()
        return self._read([self.learnt[place] for place in order], "to learn from", until)

    def _read(self, places: Sequence[int], what: str, until: float | None) -> list[ReadBatch]:
        at_once = max(1, min(AT_ONCE, len(places) // (2 * FOLDS)))
        batches: list[ReadBatch] = []
        last_report = time.perf_counter()
        for start in range(0, len(places), at_once):
            now = time.perf_counter()
            if until is not None and now > until and len(batches) >= 2 * FOLDS:
                break
            if now - last_report > REPORT_EVERY:
                last_report = now
                self._tell(f"read {start} of {len(places)} questions {what}")
            batch = make_batch(self._log, self.table, places[start : start + at_once], self._shown)
            batches.append((batch, read_rows(self.shipped, self.table, batch)))
        return batches

    def choose_steps(self, batches: Sequence[ReadBatch], deadline: float) -> int:
        """How many steps make the log loss lowest on questions that they did not see, over FOLDS parts of the
        batches."""
        losses: list[list[float]] = []
        for fold in range(FOLDS):
            unseen = batches[fold::FOLDS]
            hidden = torch.zeros_like(self._shown)
            hidden[join_outcomes(unseen).question] = True
            seen = [read for place, read in enumerate(batches) if place % FOLDS != fold]
            rest = [(hide_questions(batch, hidden), reading) for batch, reading in seen]
            now = time.perf_counter()
            until = now + (deadline - now) / (FOLDS + 1 - fold)  # what is left after the last fold is for the training
            losses.append(self._measure_stops(rest, unseen, until))
            self._tell(f"cross-validation {fold + 1} of {FOLDS}: log loss {losses[-1][0]:.3f}, {min(losses[-1]):.3f}")
        means = [sum(row) / FOLDS for row in zip(*losses, strict=False)]  # the stops that every fold had time for
        return STOPS[means.index(min(means))]

    def _measure_stops(self, batches: Sequence[ReadBatch], unseen: Sequence[ReadBatch], until: float) -> list[float]:
        """The log loss of what is unseen at each of STOPS, as far as there is time."""
        predictor, outcomes = copy_head(self.shipped), join_outcomes(unseen)
        losses = [compute_scaled_loss(self.score(predictor, unseen), outcomes)]
        for step, _ in enumerate(self.fit(predictor, batches, STOPS[-1]), start=1):
            if time.perf_counter() > until:
                break
            if step in STOPS:
                losses.append(compute_scaled_loss(self.score(predictor, unseen), outcomes))
        return losses

    def fit(self, predictor: SuccessPredictor, batches: Sequence[ReadBatch], steps: int) -> Iterator[float]:
        """Train the head for so many steps; yields the log loss of each."""
        generator = torch.Generator().manual_seed(self._seed)
        head = [
            (weight, next((rate for part, rate in RATES.items() if part in name), None))
            for name, weight in predictor.named_parameters()
            if not name.startswith("encoder.")
        ]
        optimizer = torch.optim.AdamW([{"params": [weight], "lr": rate} for weight, rate in head if rate])
        for _ in range(steps):
            batch, reading = batches[int(torch.randint(len(batches), (1,), generator=generator))]
            loss = compute_log_loss(score_rows(predictor, self.table, batch, reading), batch.outcomes)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_([weight for weight, rate in head if rate], 1.0)
            optimizer.step()
            yield loss.item()

    def score(self, predictor: SuccessPredictor, batches: Sequence[ReadBatch]) -> Tensor:
        """The logits of every outcome."""
        with torch.inference_mode():
            return torch.cat([score_rows(predictor, self.table, batch, reading) for batch, reading in batches])

    def score_neighbours(self, outcomes: Outcomes) -> Tensor:
        """The logits of `+who=log`: outcomes on questions like this one."""
        learnt = {normalize_need(self._log.questions[place].need) for place in self.learnt}
        logs = [
            tuple(item for item in worker.outcomes if normalize_need(item.need) in learnt)
            for worker in self._log.workers
        ]
        chances: list[float] = []
        for place in dict.fromkeys(outcomes.question.tolist()):
            question = self._log.questions[place]
            candidates = [
                Candidate(worker.name, worker.card, worker.is_tool, likeness, logs[candidate])
                for candidate, likeness in zip(question.candidates, question.likeness, strict=True)
                for worker in [self._log.workers[candidate]]
            ]
            scores = dict(zip(question.candidates, score_by_log(question.need, candidates), strict=True))
            chances += [scores[candidate] for candidate in question.candidates if candidate in question.right]
        return torch.logit(torch.tensor(chances), eps=1e-3)


def train_own(
    pool: str, log: OwnLog, minutes: float, seed: int, tell: Progress, keep: KeepPredictor = keep_own_predictor
) -> OwnFigures:
    """Train on a log, and `keep` what is better than the predictor that ships; else nothing is written, and what was
    there stays. Blocks for about so many minutes; what is held out is read beside that. Raises UnknownOrchestrator
    where the weights are not installed, and OSError."""
    check_installed()
    started = time.perf_counter()
    training = OwnTraining(log, seed, tell)
    unseen = training.read_held_out()
    begun, seconds = time.perf_counter(), 60 * minutes
    batches = training.read_learnt(begun + READING_SHARE * seconds)
    steps = training.choose_steps(batches, begun + seconds)
    trained, outcomes = copy_head(training.shipped), join_outcomes(unseen)
    before = after = training.score(training.shipped, unseen)
    for _ in training.fit(trained, batches, steps):
        pass
    if steps:
        after = training.score(trained, unseen)
    scaled = [scale_by_other_half(logits, outcomes) for logits in (before, after)]
    if compute_log_loss(scaled[1], outcomes) >= compute_log_loss(scaled[0], outcomes):  # a scale alone does as well
        steps, trained, after = 0, training.shipped, before
    figures = OwnFigures(
        pool=pool,
        seed=seed,
        outcomes=log.outcomes,
        questions=len(log.questions),
        held_out_questions=len(training.held_out),
        held_out_outcomes=int(outcomes.weight.sum()),
        steps=steps,
        seconds=round(time.perf_counter() - started, 1),
        before=judge_chances(before, outcomes),
        after=judge_chances(scaled[steps > 0], outcomes),
        log=judge_chances(training.score_neighbours(outcomes), outcomes),
        scale=fit_scale(after, outcomes),
    )
    if figures.is_better:
        keep(pool, lambda folder: write_predictor(folder, trained, figures))
    return figures


def copy_head(predictor: SuccessPredictor) -> SuccessPredictor:
    """The same predictor with a head of its own; the encoder is shared, and stays as it is."""
    copy = SuccessPredictor(predictor.encoder)
    copy.load_state_dict(predictor.state_dict())
    return copy


def join_outcomes(batches: Sequence[ReadBatch]) -> Outcomes:
    """The outcomes of several batches, in the order in which `score` has their logits."""
    parts = [batch.outcomes for batch, _ in batches]
    return Outcomes(
        torch.cat([part.question for part in parts]),
        torch.cat([part.right for part in parts]),
        torch.cat([part.weight for part in parts]),
    )


def write_predictor(folder: Path, trained: SuccessPredictor, figures: OwnFigures) -> None:
    """Write a predictor folder: the shipped adapter, the trained head with the scale in its weights, the figures."""
    head = {name: value.detach().clone() for name, value in trained.head_state().items()}
    for name in ("out.weight", "out.bias", "direct.weight", "direct.bias"):
        head[name] *= figures.scale.slope
    head["out.bias"] += figures.scale.intercept
    for file in (ADAPTER_FILE, CONFIG_FILE):
        shutil.copyfile(asset(FOLDER) / file, folder / file)
    save_file({name: value.half().contiguous() for name, value in head.items()}, folder / HEAD_FILE, {"format": "pt"})
    document = {**asdict(figures), "is_better": figures.is_better}
    (folder / FIGURES_FILE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
