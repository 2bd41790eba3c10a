"""The stage `who`: what each agent gets right becomes a choice of workers that is kept as it is.

The candidate reads the outcomes that the serving one reads, and those of this improvement's tasks; nothing of tasks
that were set aside, and nothing of held-out ones. The live record of the pool is not what it goes by.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.choice.own_predictors import find_own_predictor
from orchestrator.orchestrator_name import OrchestratorName, TurnOptions, add_options
from orchestrator.traces.agent_track_record import SoloEpisode, TrackRecord
from orchestrator.traces.kept_choice import keep_choice, read_kept_outcomes
from pool_registry.calls.live_pool import live_pool
from trainer.choice.own_log import OwnLog, list_outcomes_to_learn_from, read_own_log
from trainer.errors import TrainingFailed
from trainer.improve.record import Improvement
from trainer.improve.site import Site
from trainer.results.figures import DIRECT
from trainer.results.rows import ResultRow, read_results

SCORE = "predictor"
BEFORE, AFTER = "a", "b"  # end the keys of the choice that serves and of the candidate's
WritePredictor = Callable[[Path], object]


def fix_choice(site: Site, pool: str, serving: str, key: str, left_out: Collection[str]) -> str:
    """The serving orchestrator with its choice of workers kept as it is now, without what is known of the queries
    `left_out`; itself where it chooses none by a score, or by a kept choice."""
    score = OrchestratorName.parse(serving).options.who
    if not score or "@" in score:
        return serving
    outcomes = _read_outcomes(site, pool, serving, left_out)
    keep_choice(pool, key + BEFORE, outcomes, _copy_own_predictor(pool))
    return add_options(serving, TurnOptions(who=f"{score}@{key}{BEFORE}"))


def learn_choice(improvement: Improvement, site: Site) -> str:
    """Train the predictor on what the serving choice goes by and on what every agent answered to the tasks of this
    improvement, and keep both. Returns the candidate's name. Blocks for some minutes."""
    plan = improvement.plan
    rows = read_results(site.jobs.folder(plan.jobs["learn"]).results)
    new = [_describe(row) for row in rows]
    queries = {episode.query for episode in new}
    before = [episode for episode in _read_outcomes(site, plan.pool, plan.measured, ()) if episode.query not in queries]
    outcomes = [*before, *new]
    write = _train(improvement, site, outcomes)
    keep_choice(plan.pool, plan.key + AFTER, outcomes, write)
    return add_options(plan.measured, TurnOptions(who=f"{SCORE}@{plan.key}{AFTER}"))


def _read_outcomes(site: Site, pool: str, name: str, left_out: Collection[str]) -> Sequence[SoloEpisode]:
    """What an orchestrator's choice of workers reads: what was kept with it, else the traces of now."""
    _, kept, key = OrchestratorName.parse(name).options.who.partition("@")
    if kept:
        return read_kept_outcomes(pool, key)
    site.store.traces.flush()
    episodes = list_outcomes_to_learn_from(site.store.engine, pool)
    return [episode for episode in episodes if episode.query not in left_out]


def _describe(row: ResultRow) -> SoloEpisode:
    """A graded answer of one agent as an outcome."""
    started = datetime.fromtimestamp(row.at - row.wall_s, UTC).isoformat()
    episode = SoloEpisode(row.orchestrator.removeprefix(DIRECT), row.query, row.correct, row.wall_s, row.cost)
    return replace(episode, topic=row.family, started_at=started)


def _train(improvement: Improvement, site: Site, outcomes: Sequence[SoloEpisode]) -> WritePredictor:
    """What fills the folder of the candidate: a trained predictor, or nothing where the one that ships is as good."""
    from trainer.choice.own import train_own

    plan, writers = improvement.plan, list[WritePredictor]()
    try:
        log = asyncio.run(_read_log(site, plan.pool, plan.pool_version, outcomes))
        figures = train_own(plan.pool, log, plan.minutes, plan.seed, site.tell, lambda _, write: writers.append(write))
    except TrainingFailed as error:  # too few to train on: the one that ships reads them all the same
        site.tell(f"the predictor was not trained, the one that ships reads the outcomes: {error}")
        return lambda _: None
    kept = "kept" if writers else "not kept, the one that ships is as good"
    site.tell(f"the predictor was trained on {figures.outcomes} outcomes and {kept}")
    return writers[0] if writers else lambda _: None


async def _read_log(site: Site, pool: str, version: int, outcomes: Sequence[SoloEpisode]) -> OwnLog:
    async with live_pool(site.store.pools.get(pool, version).pool) as live:
        return await asyncio.to_thread(read_own_log, live, TrackRecord(outcomes))


def _copy_own_predictor(pool: str) -> WritePredictor:
    own = find_own_predictor(pool)

    def copy(folder: Path) -> None:
        for file in own.iterdir() if own is not None else ():
            shutil.copyfile(file, folder / file.name)

    return copy
