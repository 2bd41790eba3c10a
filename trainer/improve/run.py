"""An improvement from the task book to the report. Each part is a job, which goes on where it stopped."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from orchestrator.engine.process_identity import this_process
from pool_registry.atomic_write import write_atomically
from trainer.errors import JobNotFound, JobRefused
from trainer.improve.choice import fix_choice
from trainer.improve.choose_tasks import choose_tasks, digest_line
from trainer.improve.gate import SECONDS, judge
from trainer.improve.measure import Measurements, write_general_recipe, write_recipe
from trainer.improve.record import (
    HELD_OUT,
    LEARNT,
    MOST_HELD_OUT,
    REPLAY,
    Improvement,
    ImprovementPlan,
    find_unfinished,
    hold_pool,
    list_improvements,
    make_folder,
)
from trainer.improve.site import Site
from trainer.improve.stages import STAGES, Facts, choose_stage
from trainer.notices.send import Notice, notify
from trainer.notices.settings import NoticeKind
from trainer.results.improvement import ImprovementReport, write_report
from trainer.results.rows import read_results
from trainer.tasks.practice.stored import open_task_book
from trainer.tasks.practice.traffic_record import digest_query
from trainer.tasks.sources.jsonl import TaskLine


@dataclass(frozen=True, slots=True)
class ImprovementOptions:
    """What a person may choose. `stage` "" is the cheapest that applies; `samples` are runs of each held-out task;
    `steps` those of training a reader, None for as many as its tasks need; `minutes` those of training a choice of
    workers; `most_held_out` new tasks, and as many old ones, are measured on; a query may take `seconds_on_top` longer;
    `max_cost` caps each job, in US dollars; `again` takes tasks that were set aside."""

    serving: str
    stage: str = ""
    samples: int = 1
    general_tasks: int = 20
    steps: int | None = None
    minutes: float = 3.0
    replay: float = REPLAY
    most_held_out: int = MOST_HELD_OUT
    seconds_on_top: float = SECONDS
    seed: int = 0
    max_cost: float | None = None
    again: bool = False


def improve(
    site: Site, pool: str, options: ImprovementOptions, anew: bool = False
) -> tuple[Improvement, ImprovementReport]:
    """Improve what serves a pool, or go on with an improvement of it that was interrupted, as it was begun. One that
    has lost a job is given up, and any other with `anew`.

    Raises TooFewTasks before anything is done, AlreadyImproving while another process does, JobRefused where what was
    interrupted was begun with other options, TrainingFailed where a job does not end well: calling this again goes on.
    """
    with hold_pool(site.store.home, pool):
        improvement = _find_interrupted(site, pool, options, anew) or _begin(site, pool, options)
        improvement.update(process=this_process())
        if None not in (options.max_cost, improvement.plan.max_cost):
            improvement.update(max_cost=options.max_cost)  # what reached its cap goes on with a higher one
        plan = improvement.plan
        site.tell(
            f"{plan.id}: {STAGES[plan.stage].summary}; {plan.learnt} new and {plan.replayed} old tasks to learn from, "
            f"{plan.held_out} held out"
        )
        return improvement, _finish(improvement, site)


def _find_interrupted(site: Site, pool: str, options: ImprovementOptions, anew: bool) -> Improvement | None:
    """What there is to go on with. Raises JobRefused where that was begun with other options."""
    improvement = find_unfinished(site.store.home, pool)
    if improvement is None:
        return None
    plan = improvement.plan
    if anew or not _has_jobs(site, plan):
        site.tell(f"{plan.id} was interrupted and is given up; its jobs stay")
        shutil.rmtree(improvement.folder)
        return None
    standard, begun = asdict(ImprovementOptions("")), plan.model_dump()
    changed = [
        name.replace("_", "-")
        for name, value in asdict(options).items()
        if name != "max_cost" and value not in (standard[name], begun[name])
    ]
    if changed:
        raise JobRefused(
            f"{plan.id} was interrupted, and was begun with other options ({', '.join(changed)}): leave these out to "
            "go on with it, or give it up with --anew"
        )
    return improvement


def _has_jobs(site: Site, plan: ImprovementPlan) -> bool:
    try:
        return all(site.jobs.get(job) for job in plan.jobs.values())
    except JobNotFound:
        return False


def _begin(site: Site, pool: str, options: ImprovementOptions) -> Improvement:
    """Choose the tasks and write the plan of an improvement; its folder counts once the plan is in it."""
    stored = site.store.pools.latest(pool)
    earlier = list_improvements(site.store.home, pool)
    tasks = choose_tasks(open_task_book(pool).read(), earlier, options.most_held_out, options.seed, options.again)
    tasks.check_enough()
    stage = choose_stage(Facts(stored.pool, options.serving, len(tasks.learnt), tasks.plan_count), options.stage)
    replayed = tasks.draw_old(options.replay if stage.replays else 0.0)
    key = secrets.token_hex(3)
    name = f"{pool[:40]}-{key}"
    left_out = {line.query for line in (*tasks.held_out, *tasks.old, *tasks.set_aside)}
    measured = fix_choice(site, pool, options.serving, key, left_out)
    folder = make_folder(site.store.home, name)
    _write_lines(folder / LEARNT, (*tasks.learnt, *replayed), "train")
    _write_lines(folder / HELD_OUT, (*tasks.held_out, *tasks.old), "test")
    improvement = Improvement(
        folder,
        ImprovementPlan(
            id=name,
            key=key,
            pool=pool,
            pool_version=stored.version,
            measured=measured,
            taken=tuple(digest_line(line) for line in (*tasks.learnt, *tasks.held_out)),
            own=tuple(digest_query(line.query) for line in tasks.held_out),
            learnt=len(tasks.learnt),
            replayed=len(replayed),
            held_out=len(tasks.held_out) + len(tasks.old),
            started=time.time(),
            **{**asdict(options), "stage": stage.name},
        ),
    )
    improvement.update()
    return improvement


def _finish(improvement: Improvement, site: Site) -> ImprovementReport:
    """Run the parts that are missing."""
    stage = STAGES[improvement.plan.stage]
    learning = site.run_job(improvement, "learn", stage.write_recipe(improvement))
    if not improvement.plan.candidate:
        improvement.update(candidate=stage.name_candidate(improvement, site))
    measuring = [site.run_job(improvement, "measure", write_recipe(improvement))]
    general = write_general_recipe(improvement, site.store) if stage.changes_plans else None
    if general is not None:
        measuring.append(site.run_job(improvement, "general", general))
    report = _report(improvement, site, [learning, *measuring], measuring, general is not None)
    write_report(improvement.folder, report)
    _notify(site, report)
    return report


def _notify(site: Site, report: ImprovementReport) -> None:
    """Tell whoever wants to know what the gate has decided."""
    title = f"{report.candidate} may be promoted" if report.promotable else f"{report.candidate} is refused"
    kind: NoticeKind = "candidate_ready" if report.promotable else "gate_refused"
    text = " ".join(report.reasons)
    notify(site.store.home, Notice(kind=kind, title=title, text=text, pool=report.pool, queries=report.worse))


def _report(
    improvement: Improvement, site: Site, jobs: Sequence[str], measuring: Sequence[str], general: bool
) -> ImprovementReport:
    plan, measurements = improvement.plan, Measurements(improvement, site, measuring)
    suites, guarded = measurements.compare(general), measurements.guard()
    verdict, reasons = judge(suites, guarded)
    return ImprovementReport(
        pool=plan.pool,
        pool_version=plan.pool_version,
        serving=plan.serving,
        candidate=plan.candidate,
        suites=suites,
        guarded=guarded,
        hours=round((time.time() - plan.started) / 3600, 3),
        promotable=verdict == "better",
        reasons=reasons,
        stage=plan.stage,
        cost=round(sum(_sum_cost(site, job) for job in jobs), 4),
        worse=measurements.list_worse(),
        jobs=tuple(jobs),
    )


def _sum_cost(site: Site, job: str) -> float:
    return sum(row.cost for row in read_results(site.jobs.folder(job).results))


def _write_lines(file: Path, lines: Sequence[TaskLine], split: str) -> None:
    """Write tasks as ones of a split: what they are here for does not hang on their own."""
    copies = [line.model_copy(update={"split": split, "made": None}) for line in lines]
    write_atomically(file, "".join(f"{line.model_dump_json(exclude_none=True)}\n" for line in copies))
