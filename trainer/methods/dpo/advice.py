"""What the figures of preferences show."""

from __future__ import annotations

from trainer.methods.advice import WINDOW, Advice, MetricRows
from trainer.results.statistics import mean

UNLEARNT = 0.05  # of the better run's reward: what its becoming less likely by chance may cost


def advise_on_pairs(metrics: MetricRows) -> list[Advice]:
    """Say whether it tells the better runs from the worse ones, and whether it only unlearns both."""
    advices: list[Advice] = []
    preferred = metrics.all("rewards/accuracies")
    if len(preferred) >= 3 * WINDOW and mean(preferred[-WINDOW:]) <= 0.55:
        sentence = f"It favours the better run of {mean(preferred[-WINDOW:]):.0%} of the pairs, hardly more than half."
        action = (
            "Raise dpo.optimizer.learning_rate, or lower dpo.beta; look whether the verdicts of the runs are right."
        )
        advices.append(Advice("degenerate", sentence, action))
    chosen, rejected = metrics.recent("rewards/chosen"), metrics.recent("rewards/rejected")
    if len(chosen) == WINDOW and mean(chosen) < -UNLEARNT and mean(rejected) < mean(chosen):
        sentence = "Both sides become less likely, the worse one faster: it may forget how a plan is written."
        action = "Raise dpo.beta or lower dpo.optimizer.learning_rate, and watch the valid turns of the checkpoints."
        advices.append(Advice("tuning", sentence, action))
    losses = metrics.all("eval_loss")
    if len(losses) >= 3 and losses[-1] > 1.1 * min(losses):
        sentence = (
            f"The loss on held-out pairs rises again ({min(losses):.2f}, now {losses[-1]:.2f}): it learns by heart."
        )
        advices.append(Advice("tuning", sentence, "Use an earlier checkpoint, fewer dpo.epochs, or more pairs."))
    return advices
