"""Pools drawn anew for every step of the success predictor's training, on the device that trains.

Agents: skills of each agent in each topic of its pool (flat, specialists, or strong and weak ones on hard and easy
topics), a log of 0 to 30 outcomes a topic, verdicts that are sometimes wrong, cards that say much, little or nothing,
and now and then what is not so. Nothing can be learnt about an agent: only how to read what is known of it.
Tools: a pool of the task generators with needs of reference plans; a log of needs that a tool served, and of some that
it was given and did not serve. Where a tool is asked for what it cannot do, a near one is tried oftener.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from orchestrator.choice.network import CLS, COMMA, NOTHING, SEP, Logs, measure_cosines, show_log
from trainer.choice.corpus import Corpus, ToolSet, TopicSet

TOPICS = 8  # of a pool, at most
ENTRIES = 30  # of a log, on one topic, at most
TOOL_ENTRIES = 12
LABELS = 3  # topics that a card names, at most
NEAR_TOOLS = 8  # among which a tool for a need is drawn that does not serve it
SERVED, UNSERVED = 0.98, 0.02


@dataclass(frozen=True, slots=True)
class Batch:
    """Needs and workers: what the network reads, and the true chance of each row. Rows are workers within pools."""

    segments: Tensor
    logs: Logs
    cosines: Tensor
    chances: Tensor
    workers: int
    log_verdicts: Tensor  # beside the cosines, for baselines
    skills: Tensor  # [pools, workers, topics], of agents alone
    topic: Tensor  # [pools]: which topic the need is of


def draw_agents(
    corpus: Corpus, topics: TopicSet, pools: int, workers: int, generator: torch.Generator,
    entries: int | None = None, plain: bool = False,
) -> Batch:  # fmt: skip
    """Draw pools of agents with one need each. `entries` a topic for all, or drawn; `plain`: cards say nothing, skills
    are flat, verdicts right: for an evaluation."""
    draw = _Draw(corpus, generator)
    per_pool, chosen = draw.choose_topics(topics, pools, 4 if plain else None)
    skills = draw.draw_skills(pools, workers, plain)
    topic = (draw.uniform(pools) * per_pool).long()
    need = draw.draw_texts(topics, chosen.gather(1, topic.unsqueeze(1)).squeeze(1))
    counts = draw.draw_counts(per_pool, workers, entries)
    past = draw.draw_texts(topics, chosen[:, None, :, None].expand(-1, workers, -1, ENTRIES))
    noise = 0.0 if plain else draw.uniform(pools, 1, 1, 1) * 0.3 * (draw.uniform(pools, 1, 1, 1) < 0.5)
    truth = draw.uniform(*past.shape) < skills.unsqueeze(3)
    verdicts = truth ^ (draw.uniform(*past.shape) < noise * 0.5)
    present = torch.arange(ENTRIES, device=corpus.device) < counts.unsqueeze(3)
    cards = draw.write_cards(topics, chosen, per_pool, skills, plain)
    chances = skills.gather(2, topic[:, None, None].expand(-1, workers, 1)).squeeze(2)
    tool = torch.zeros(pools * workers, dtype=torch.bool, device=corpus.device)
    return draw.make_batch(
        need, cards.flatten(0, 1), past.flatten(2).flatten(0, 1), verdicts.flatten(2).flatten(0, 1),
        present.flatten(2).flatten(0, 1), chances.flatten(), tool, workers, skills, topic,
    )  # fmt: skip


def draw_tools(corpus: Corpus, split: str, pools: int, workers: int, generator: torch.Generator) -> Batch:
    """Draw needs of tools: one tool that serves each, and others of its pool, near ones more often."""
    draw, tools = _Draw(corpus, generator), corpus.tools[split]
    row = (draw.uniform(pools) * len(tools.needs)).long()
    need, pool, serves = tools.needs[row], tools.pool[row], tools.serves[row]
    cards = tools.cards[pool]
    likeness = (corpus.bound[cards.clamp(min=0)] @ corpus.bound[need].unsqueeze(2)).squeeze(2).float()
    likeness = likeness.masked_fill(cards == NOTHING, -9.0)
    # The order: the tool that serves it, then the nearest others in random order, then what is farther.
    keys = draw.uniform(*likeness.shape)
    near = likeness.masked_fill(serves, -9.0)
    bound = near.topk(min(NEAR_TOOLS, near.shape[1]), dim=1).values[:, -1:]
    keys = keys + 2 * (near >= bound) * (near > -9.0) + 9 * serves - 99 * (cards == NOTHING)
    places = keys.topk(workers, dim=1).indices
    chosen = cards.gather(1, places)
    served = serves.gather(1, places)
    past, verdicts, present = draw.draw_tool_logs(tools, pool, places)
    chances = torch.where(served, SERVED, UNSERVED)
    blank = torch.full_like(chosen, NOTHING)
    segments = torch.stack([blank, blank, blank, blank, blank, chosen, blank], dim=2)
    is_tool = torch.ones(pools * workers, dtype=torch.bool, device=corpus.device)
    return draw.make_batch(
        need, segments.flatten(0, 1), past.flatten(0, 1), verdicts.flatten(0, 1), present.flatten(0, 1),
        chances.flatten(), is_tool, workers, chances.unsqueeze(2), torch.zeros_like(pool),
        likeness.gather(1, places).flatten().clamp(min=-1.0),
    )  # fmt: skip


class _Draw:
    """Draws on one device."""

    def __init__(self, corpus: Corpus, generator: torch.Generator) -> None:
        self._corpus = corpus
        self._generator = generator

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self._generator, device=self._corpus.device)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self._generator, device=self._corpus.device)

    def choose_topics(self, topics: TopicSet, pools: int, per_pool: int | None) -> tuple[Tensor, Tensor]:
        """How many topics each pool has [pools], and which [pools, TOPICS], each once."""
        chosen = self.uniform(pools, len(topics.names)).topk(TOPICS, dim=1).indices
        if per_pool is not None:
            return torch.full((pools,), per_pool, device=self._corpus.device), chosen
        return 2 + (self.uniform(pools) * (TOPICS - 1)).long(), chosen

    def draw_skills(self, pools: int, workers: int, plain: bool) -> Tensor:
        """The true chance of each worker on each topic [pools, workers, TOPICS]."""
        flat = 0.05 + 0.9 * self.uniform(pools, workers, TOPICS)
        if plain:
            return flat
        low, high = 0.4 * self.uniform(pools, workers, 1) + 0.02, 0.6 + 0.38 * self.uniform(pools, workers, 1)
        special = torch.where(self.uniform(pools, workers, TOPICS) < 0.3, high, low)
        mixed = torch.sigmoid(
            1.0 * self.normal(pools, workers, 1) + 0.7 * self.normal(pools, 1, TOPICS) + 1.2 * self.normal(*flat.shape)
        )
        style = self.uniform(pools, 1, 1)
        return torch.where(style < 0.4, flat, torch.where(style < 0.7, special, mixed))

    def draw_counts(self, per_pool: Tensor, workers: int, entries: int | None) -> Tensor:
        """The outcomes of each worker on each topic of its pool [pools, workers, TOPICS]."""
        there = torch.arange(TOPICS, device=self._corpus.device) < per_pool[:, None, None]
        if entries is not None:
            return torch.where(there, entries, 0).expand(-1, workers, -1)
        shape = (len(per_pool), workers, TOPICS)
        scale = torch.exp(self.uniform(len(per_pool), 1, 1) * 4.4 - 1.2)  # 0.3 to 25, as many small as large
        counts = scale * torch.exp(0.5 * self.normal(shape[0], workers, 1)) * (0.4 + 1.2 * self.uniform(*shape))
        empty = (self.uniform(len(per_pool), 1, 1) < 0.08) | (self.uniform(*shape) < 0.1)
        return torch.where(there & ~empty, (counts + self.uniform(*shape) - 0.5).round().clamp(0, ENTRIES).long(), 0)

    def draw_texts(self, topics: TopicSet, topic: Tensor) -> Tensor:
        """A text of each topic: rows of the table."""
        places = topics.starts[topic] + (self.uniform(*topic.shape) * topics.counts[topic]).long()
        return topics.texts[places]

    def write_cards(self, topics: TopicSet, chosen: Tensor, per_pool: Tensor, skills: Tensor, plain: bool) -> Tensor:
        """The segments of each agent's card [pools, workers, 7]: opening, up to three topics with commas, name."""
        pools, workers, _ = skills.shape
        shape = (pools, workers)
        there = torch.arange(TOPICS, device=skills.device) < per_pool[:, None, None]
        lies = self.uniform(*shape, 1) < 0.12
        merit = torch.where(lies, self.uniform(*skills.shape), skills + 0.15 * self.normal(*skills.shape))
        best = merit.masked_fill(~there, -9.0).topk(LABELS, dim=2).indices
        label_topic = chosen.unsqueeze(1).expand(-1, workers, -1).gather(2, best)
        label_topic = torch.where(  # a topic that nobody asks about
            self.uniform(*label_topic.shape) < 0.1,
            (self.uniform(*label_topic.shape) * len(topics.names)).long(),
            label_topic,
        )
        labels = topics.labels[
            topics.label_starts[label_topic]
            + (self.uniform(*label_topic.shape) * topics.label_counts[label_topic]).long()
        ]
        count = torch.minimum(1 + (self.uniform(*shape) * LABELS).long(), per_pool.unsqueeze(1))
        named = torch.arange(LABELS, device=skills.device) < count.unsqueeze(2)
        labels = torch.where(named, labels, NOTHING)
        commas = torch.where(labels[:, :, 1:] == NOTHING, NOTHING, COMMA)
        corpus = self._corpus
        opening = torch.where(self.uniform(*shape) < 0.8, self._pick(corpus.openings, shape), NOTHING)
        telling = torch.stack(
            [opening, labels[:, :, 0], commas[:, :, 0], labels[:, :, 1], commas[:, :, 1], labels[:, :, 2]], dim=2
        )
        general = torch.full_like(telling, NOTHING)
        general[:, :, 0] = self._pick(corpus.general, shape)
        kind = self.uniform(*shape, 1) if not plain else torch.ones(*shape, 1, device=skills.device)
        kind = torch.where(
            self.uniform(pools, 1, 1) < 0.3, torch.ones_like(kind), kind
        )  # pools whose cards say nothing
        card = torch.where(kind < 0.6, telling, torch.where(kind < 0.8, general, torch.full_like(telling, NOTHING)))
        return torch.cat([card, self._pick(corpus.names, shape).unsqueeze(2)], dim=2)

    def _pick(self, rows: Tensor, shape: tuple[int, ...]) -> Tensor:
        return rows[(self.uniform(*shape) * len(rows)).long()]

    def draw_tool_logs(self, tools: ToolSet, pool: Tensor, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The logs of tools [pools, workers, 2 x TOOL_ENTRIES]: needs that each served, then needs of its pool that it
        was given and did not."""
        shape = (*places.shape, TOOL_ENTRIES)
        starts, counts = tools.tool_starts[pool].gather(1, places), tools.tool_counts[pool].gather(1, places)
        own = starts.unsqueeze(2) + (self.uniform(*shape) * counts.unsqueeze(2)).long()
        total = tools.pool_counts[pool][:, None, None]
        other = tools.pool_starts[pool][:, None, None] + (self.uniform(*shape) * total).long()
        wrong = ~tools.serves[other].gather(3, places[:, :, None, None].expand(*shape, 1)).squeeze(3)
        amount = torch.exp(self.uniform(len(pool), 1) * 4.0 - 1.5) * (self.uniform(len(pool), 1) > 0.25)
        order = torch.arange(TOOL_ENTRIES, device=pool.device)
        some = (order < (amount * self.uniform(*places.shape)).unsqueeze(2)) & (counts.unsqueeze(2) > 0)
        few = (order < (amount * 0.4 * self.uniform(*places.shape)).unsqueeze(2)) & wrong
        noise = self.uniform(len(pool), 1, 1) * 0.15 * (self.uniform(len(pool), 1, 1) < 0.5)
        verdicts = torch.cat([torch.ones(shape, device=pool.device), torch.zeros(shape, device=pool.device)], 2) > 0.5
        verdicts = verdicts ^ (self.uniform(*verdicts.shape) < noise)
        return (
            tools.needs[torch.cat([own.clamp(max=len(tools.needs) - 1), other], 2)],
            verdicts,
            torch.cat([some, few], 2),
        )

    def make_batch(
        self, need: Tensor, cards: Tensor, past: Tensor, verdicts: Tensor, present: Tensor, chances: Tensor,
        is_tool: Tensor, workers: int, skills: Tensor, topic: Tensor, likeness: Tensor | None = None,
    ) -> Batch:  # fmt: skip
        """What the network reads: one row for each worker of each pool."""
        corpus = self._corpus
        rows = need.repeat_interleave(workers)
        group = torch.arange(len(need), device=corpus.device).repeat_interleave(workers)
        verdict = verdicts.float()
        likeness = torch.zeros(len(rows), device=corpus.device) if likeness is None else likeness
        logs = Logs(corpus.vectors[rows], corpus.vectors[past], verdict, present, group, is_tool, likeness)
        cosines = measure_cosines(logs)
        mark = torch.full((len(rows), 1), CLS, device=corpus.device)
        end = torch.full_like(mark, SEP)
        shown = show_log(cosines, past, verdict)
        segments = torch.cat([mark, rows.unsqueeze(1), end, cards, end, shown], dim=1)
        return Batch(segments, logs, cosines, chances, workers, verdict, skills, topic)
