"""The row of DPO: preferences between recorded runs."""

# ruff: noqa: ARG002  a member has the arguments of every method
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from trainer.launch_gap import LaunchGap
from trainer.methods.base import Chart, Edit, Method, Problem, StageStart, Store
from trainer.methods.dpo.section import DpoSettings
from trainer.methods.edits import make_halve_batch

if TYPE_CHECKING:
    from pool_registry.pool import Pool
    from trainer.learner.load_and_save import TrainingContext
    from trainer.memory_fit.model_sizes import ModelSizes
    from trainer.memory_fit.stages import Allocation, Machine
    from trainer.methods.advice import Advice, MetricRows
    from trainer.recipe import Recipe

FEW_PAIRS = 20


class Dpo(Method[DpoSettings]):
    """Prefers the better of two recorded runs of a query."""

    name = "dpo"
    label = "DPO"
    title = "Preferences"
    summary = "Learn from pairs of a better and a worse recorded run: the recipe's dpo stage."
    Section = DpoSettings
    memory_edits: ClassVar[tuple[Callable[[Recipe], Edit], ...]] = (make_halve_batch("dpo"),)
    charts = (
        Chart(
            "preferred",
            "Preferred",
            "Share of the pairs whose better run it has made more likely than the worse one",
            (("rewards/accuracies", "trained on"), ("eval_rewards/accuracies", "held out")),
            share=True,
        ),
        Chart(
            "margin",
            "Reward margin",
            "How much more it has come to favour the better run, times beta",
            (("rewards/margins", "trained on"), ("eval_rewards/margins", "held out")),
        ),
        Chart(
            "rewards",
            "Rewards of both sides",
            "How much more likely each has become than at the start, times beta",
            (("rewards/chosen", "better"), ("rewards/rejected", "worse")),
        ),
        Chart("held_out_loss", "Loss, held out", "On pairs that it does not learn from", (("eval_loss", ""),)),
    )

    def run(self, training: TrainingContext, settings: DpoSettings, start: StageStart) -> bool:
        from trainer.methods.dpo.stage import run_dpo

        return run_dpo(training, settings, start)

    def needs_tasks(self, settings: DpoSettings) -> bool:
        return False

    def find_travel_problems(self, settings: DpoSettings) -> Iterator[Problem]:
        yield "dpo", "recorded runs do not travel: train with where: here"

    def find_gaps(self, settings: DpoSettings, recipe: Recipe, pool: Pool | None, store: Store) -> Iterator[LaunchGap]:
        from trainer.methods.dpo.pairs import HOW_TO_MAKE_PAIRS, count_candidates

        count = count_candidates(store, recipe.pool, settings.pairs)
        if count == 0:
            sentence = f"The recorded runs on {recipe.pool} make no pair yet: {HOW_TO_MAKE_PAIRS}."
            yield LaunchGap("dpo.pairs.source", sentence, f"/traces?pool={recipe.pool}")
        elif count < FEW_PAIRS:
            sentence = f"The recorded runs make at most {count} pairs, which teach little: {HOW_TO_MAKE_PAIRS}."
            yield LaunchGap("dpo.pairs.source", sentence, blocks=False)

    def allocate(self, settings: DpoSettings, recipe: Recipe, sizes: ModelSizes, machine: Machine) -> list[Allocation]:
        from trainer.methods.dpo.memory import allocate_step

        return allocate_step(settings, sizes, machine, recipe.model.checkpointing)

    def advise(self, settings: DpoSettings, metrics: MetricRows, recipe: Recipe) -> list[Advice]:
        from trainer.methods.dpo.advice import advise_on_pairs

        return advise_on_pairs(metrics.of_stage(self.name))

    def list_figures(self, section: Mapping[str, Any]) -> list[tuple[str, object]]:
        keys = ("steps", "beta", "pairs")
        return [(key, section[key]) for key in keys if section.get(key) not in (None, "", [], {})]


DPO = Dpo()
