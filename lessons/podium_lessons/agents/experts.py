"""Simulated experts: what each is good at, what a call costs, how long it takes and how often it fails. Nothing here is
measured on a real model."""

from __future__ import annotations

from dataclasses import dataclass

WRONG_ANSWERS = 3  # that experts who are wrong choose from
NOBODY, EVERYBODY = -1, -2  # in the place of a topic: of what no expert knows, and of what every expert can do


@dataclass(frozen=True, slots=True)
class Expert:
    """A simulated expert. `price` is that of a call in cents, `latency` in seconds, `failure` the share of calls that
    come back with an error."""

    name: str
    skills: tuple[float, ...]  # by topic of its pool
    price: float
    latency: float
    failure: float

    def skill(self, topic: int) -> float:
        """The chance that an answer is right."""
        return {NOBODY: 0.0, EVERYBODY: 1.0}[topic] if topic < 0 else self.skills[topic]

    def chance(self, topic: int) -> float:
        """The chance that one call brings the right answer."""
        return self.skill(topic) * (1 - self.failure)
