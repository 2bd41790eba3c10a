"""What a predictor does on topics and tools that training never had, beside baselines on the same draws."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from orchestrator.choice.network import SuccessPredictor
from trainer.choice.corpus import Corpus
from trainer.choice.draw_pools import ENTRIES, Batch, draw_agents, draw_tools
from trainer.choice.score_batch import score_batch

AMOUNTS = (0, 1, 3, 10, 30)  # outcomes a topic
SEEDS = (17, 18, 19)
AT_ONCE = 32
NEIGHBOUR_WIDTH = 0.1


def measure_all(predictor: SuccessPredictor, corpus: Corpus, pools: int) -> dict[str, Any]:
    """Shares of the gap closed, error and calibration, for each number of outcomes; and needs of tools bound right."""
    predictor.eval()
    figures: dict[str, Any] = {}
    for split in ("train", "held_out"):
        figures[split] = [
            _measure_agents(predictor, corpus, split, entries, pools, seed) for entries in AMOUNTS for seed in SEEDS
        ]
    figures["tools"] = {split: _measure_tools(predictor, corpus, split, pools) for split in ("train", "test")}
    predictor.train()
    return figures


def _measure_agents(
    predictor: SuccessPredictor, corpus: Corpus, split: str, entries: int, pools: int, seed: int
) -> dict[str, float]:
    generator = torch.Generator(corpus.device).manual_seed(seed)
    parts = []
    for _ in range(0, pools, AT_ONCE):
        batch = draw_agents(corpus, corpus.topics[split], min(pools, AT_ONCE), 4, generator, entries, plain=True)
        parts.append((_predict(predictor, corpus, batch), batch))
    chances = torch.cat([batch.chances for _, batch in parts]).view(-1, 4)
    skills = torch.cat([batch.skills[:, :, :4] for _, batch in parts])
    topic = torch.cat([batch.topic for _, batch in parts])
    probabilities = torch.cat([part for part, _ in parts]).view(-1, 4)
    choosers = {
        "predictor": probabilities,
        "neighbours": torch.cat([judge_by_neighbours(batch) for _, batch in parts]).view(-1, 4),
        "reader": torch.cat([_read_topic(batch) for _, batch in parts]).view(-1, 4),
        "best_log": torch.cat([_judge_whole(batch) for _, batch in parts]).view(-1, 4),
    }
    best, single = chances.amax(1).mean(), _best_single(skills, topic).mean()
    figures: dict[str, float] = {"entries": entries, "seed": seed, "best": best.item(), "single": single.item()}
    for name, scores in choosers.items():
        value = chances.gather(1, scores.argmax(1, keepdim=True)).mean()
        figures[name] = round(((value - single) / (best - single)).item(), 3)
    figures["error"] = round((probabilities - chances).abs().mean().item(), 4)
    figures["calibration"] = round(calibration_error(probabilities.flatten(), chances.flatten()), 4)
    return figures


def _predict(predictor: SuccessPredictor, corpus: Corpus, batch: Batch) -> Tensor:
    with torch.inference_mode():
        return torch.sigmoid(score_batch(predictor, corpus, batch))


def _best_single(skills: Tensor, topic: Tensor) -> Tensor:
    """The chance of the worker that is best over all topics of its pool, on the topic that was asked."""
    best = skills.mean(2).argmax(1)
    return skills[torch.arange(len(skills)), best, topic]


def judge_by_neighbours(batch: Batch) -> Tensor:
    """kNN on the log: outcomes weighted by likeness, leaning on the worker's whole log where there are few."""
    weights = torch.exp((batch.cosines - 1) / NEIGHBOUR_WIDTH) * batch.logs.present
    return ((weights * batch.log_verdicts).sum(1) + 0.1 * _judge_whole(batch)) / (weights.sum(1) + 0.1)


def _read_topic(batch: Batch) -> Tensor:
    """What nobody can surpass who reads the log: the posterior mean, given which entries are of the need's topic."""
    entry_topic = torch.arange(batch.cosines.shape[1], device=batch.cosines.device) // ENTRIES
    own = (entry_topic == batch.topic.repeat_interleave(batch.workers).unsqueeze(1)) & batch.logs.present
    return ((own * batch.log_verdicts).sum(1) + 1) / (own.sum(1) + 2)


def _judge_whole(batch: Batch) -> Tensor:
    present = batch.logs.present.float()
    return ((present * batch.log_verdicts).sum(1) + 1) / (present.sum(1) + 2)


def calibration_error(probabilities: Tensor, chances: Tensor, bins: int = 10) -> float:
    """The mean distance of probability and chance over ten bins of equal size."""
    order = probabilities.argsort()
    parts = zip(probabilities[order].chunk(bins), chances[order].chunk(bins), strict=True)
    total = sum(float((part.mean() - truth.mean()).abs()) * len(part) for part, truth in parts)
    return total / len(order)


def _measure_tools(predictor: SuccessPredictor, corpus: Corpus, split: str, pools: int) -> dict[str, float]:
    """The share of needs whose tool is chosen out of four (two of the others are near), by predictor and by cosine."""
    generator = torch.Generator(corpus.device).manual_seed(18)
    right = {"predictor": 0, "cosine": 0}
    count = 0
    for _ in range(0, pools, AT_ONCE):
        batch = draw_tools(corpus, split, min(pools, AT_ONCE), 4, generator)
        served = batch.chances.view(-1, 4) > 0.5
        for name, scores in (("predictor", _predict(predictor, corpus, batch)), ("cosine", batch.logs.likeness)):
            right[name] += int(served.gather(1, scores.view(-1, 4).argmax(1, keepdim=True)).sum())
        count += len(served)
    return {name: round(number / count, 4) for name, number in right.items()}
