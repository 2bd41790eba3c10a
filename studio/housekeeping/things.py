"""Deletes and renames what a data folder holds: pools, traces, jobs, checkpoints and so on.

Everything that is deleted goes to the trash, and what depends on it is named first. What is in use is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, update
from sqlmodel import Session, col, select

from orchestrator.checkpoints import STARTERS, complete_steps
from orchestrator.choice.own_predictors import find_own_folder
from orchestrator.failure_memory.lessons import LessonRow
from orchestrator.traces.store import EpisodeRow, EventRow, StarRow, Store
from pool_registry.errors import StorageError
from pool_registry.storage.pool_store import PoolHeadRow, PoolVersionRow, copy_head, keep_versions
from pool_registry.text import count_of
from studio.access.pool_rights import ReadOnlyPoolRow, ReadOnlyPools
from studio.access.shared_runs import SharedRunRow
from studio.deployments.states import ServingSide
from studio.deployments.store import DeploymentChangeRow, Deployments
from studio.housekeeping.trash import Trash, TrashEntry
from studio.improving.schedule import find_timer_file
from studio.improving.start import find_log
from studio.model_server.server_record import list_servers
from studio.orchestrators.default import STARTER
from studio.publish.publication_record import find_record
from trainer.improve.record import list_improvements
from trainer.jobs.queue import JobRow, JobStore
from trainer.tasks.practice.making import read_making
from trainer.tasks.practice.task_book import TaskBook

IN_USE = ("queued", "running", "stopping")
MEASURES = "evaluate"  # the kind of a job that is an evaluation and nothing else
MAX_TRACES = 5000  # of one deletion


@dataclass(frozen=True, slots=True)
class Dependents:
    """What stands or falls with something: `blocking` forbids its deletion, `affected` is what a person should know."""

    blocking: tuple[str, ...] = ()
    affected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ThingKind:
    """What is done with the things of one kind, by name; `rename` is None where they have no name of their own."""

    find_dependents: Callable[[str], Dependents]
    delete: Callable[[str], TrashEntry]
    rename: Callable[[str, str], str] | None = None


def open_things(store: Store) -> Things:
    """The things of a data folder, with every trace of this process among them."""
    store.traces.flush()
    return Things(store)


class Things:
    """What a data folder holds, by kind and name."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._jobs = JobStore(store.engine, store.home)
        self._deployments = Deployments(store.engine)
        self.trash = Trash(store.engine, store.home)
        self.kinds: Mapping[str, ThingKind] = {
            "pool": ThingKind(self._pool_dependents, self._delete_pool, self._rename_pool),
            "trace": ThingKind(
                lambda name: self.find_trace_dependents([name]), lambda name: self.delete_traces([name])
            ),
            "job": ThingKind(self._job_dependents, self._delete_job, self._rename_job),
            "checkpoint": ThingKind(self._checkpoint_dependents, self._delete_checkpoint),
            "evaluation": ThingKind(self._evaluation_dependents, self._delete_evaluation),
            "publication": ThingKind(self._publication_dependents, self._delete_publication),
            "deployment": ThingKind(self._deployment_dependents, self._delete_deployment),
        }

    def find_dependents(self, kind: str, name: str) -> Dependents:
        """Find what depends on something.

        Raises StorageError, PoolNotFound, JobNotFound or PublishError where there is no such thing.
        """
        return self._find_kind(kind).find_dependents(name)

    def delete(self, kind: str, name: str) -> TrashEntry:
        """Move something to the trash. Raises StorageError naming what uses it, and RoleRefused for a pool that only
        owners change."""
        blocking = self.find_dependents(kind, name).blocking
        if blocking:
            raise StorageError(f"{kind} {name} cannot be deleted: {'; '.join(blocking)}")
        return self._find_kind(kind).delete(name)

    def delete_traces(self, ids: Sequence[str]) -> TrashEntry:
        """Move traces, with the inner episodes that belong to them, to the trash as one thing. Raises StorageError."""
        if not ids or len(ids) > MAX_TRACES:
            raise StorageError(f"choose 1 to {MAX_TRACES:,} traces")
        blocking = self.find_trace_dependents(ids).blocking
        if blocking:
            raise StorageError(f"nothing was deleted: {'; '.join(blocking)}")
        every = self._with_inner(ids)
        rows = [
            ("episode", col(EpisodeRow.id).in_(every)),
            ("event", col(EventRow.episode).in_(every)),
            ("star", col(StarRow.episode).in_(every)),
        ]
        return self.trash.put("trace", ids[0] if len(ids) == 1 else f"{len(ids)} traces", rows)

    def rename(self, kind: str, name: str, new: str) -> str:
        """Give something another name; returns what of it keeps the old one. Raises StorageError, and RoleRefused for a
        pool that only owners change."""
        rename = self._find_kind(kind).rename
        if rename is None:
            nameable = " and ".join(f"{other}s" for other, row in self.kinds.items() if row.rename)
            raise StorageError(f"a {kind} has no name of its own that could be changed; {nameable} have one")
        return rename(name, new)

    def _find_kind(self, name: str) -> ThingKind:
        if name not in self.kinds:
            raise StorageError(f"there is no kind {name!r}; use one of: {', '.join(self.kinds)}")
        return self.kinds[name]

    def _delete_pool(self, name: str) -> TrashEntry:
        return self._put_pool(name, lambda _session: None)

    def _put_pool(self, name: str, first: Callable[[Session], None]) -> TrashEntry:
        """Move a pool to the trash, after `first` in the same transaction; its traces keep the versions they name."""
        ReadOnlyPools(self._store.engine).check(name)
        rows = [
            ("pool_version", col(PoolVersionRow.name) == name),
            ("pool_head", col(PoolHeadRow.name) == name),
            ("reflection", col(LessonRow.pool) == name),
            ("read_only_pool", col(ReadOnlyPoolRow.name) == name),
        ]

        places: list[Path] = []

        def prepare(session: Session) -> None:
            first(session)
            keep_versions(session, name)
            session.flush()
            places.extend(self._list_files(name))

        return self.trash.put("pool", name, rows, places, prepare)

    def _rename_pool(self, name: str, new: str) -> str:
        blocking = self._pool_dependents(name).blocking
        if blocking:
            raise StorageError(f"pool {name} cannot be renamed: {'; '.join(blocking)}")

        def move(session: Session) -> None:
            copy_head(session, name, new)
            session.connection().execute(update(LessonRow).where(col(LessonRow.pool) == name).values(pool=new))
            renamed = update(ReadOnlyPoolRow).where(col(ReadOnlyPoolRow.name) == name).values(name=new)
            session.connection().execute(renamed)
            TaskBook(self._tasks_file(name)).move(self._tasks_file(new))
            for find in (self._own_predictor, self._timer, self._improvements_log):
                if find(name).exists() and not find(new).exists():
                    find(name).rename(find(new))
            for improvement in list_improvements(self._store.home, name):
                if improvement.report is not None:  # what was interrupted learns from the pool of the old name
                    improvement.update(pool=new)

        self._put_pool(name, move)
        return "earlier traces keep the old name, and its older versions are in the trash"

    def _pool_dependents(self, name: str) -> Dependents:
        self._store.pools.latest(name)
        blocking = [
            f"a server on port {one.port} serves it" for one in list_servers(self._store.home) if one.pool == name
        ]
        blocking += [f"deployment {one} serves it" for one in self._list_deployments(lambda side: side.pool == name)]
        blocking += [f"job {row.id} uses it" for row in self._list_jobs_in_use() if self._job_uses(row.id, name)]
        making = read_making(TaskBook(self._tasks_file(name)).making_file)
        if making is not None and making.state == "running":
            blocking.append("practice tasks for it are being made")
        improvements = list_improvements(self._store.home, name)
        if any(improvement.is_running for improvement in improvements):
            blocking.append("it is being improved")
        if name == STARTER:
            blocking.append("it ships with Podium and would come back at the next start")
        with Session(self._store.engine) as session:
            runs = session.exec(select(func.count()).where(EpisodeRow.pool == name)).one()
            waiting = session.exec(
                select(func.count()).where(EpisodeRow.pool == name, EpisodeRow.state == "waiting")
            ).one()
        if waiting:
            blocking.append(f"{count_of(waiting, 'plan')} of it waiting for approval")
        affected = [f"{count_of(runs, 'trace')} of runs on it can still be opened"] if runs else []
        lessons = self._store.lessons.count(name)
        affected += [f"its failure memory goes with it: {count_of(lessons, 'lesson')}"] if lessons else []
        affected += ["its own tasks go with it"] if self._tasks_file(name).is_file() else []
        affected += ["its own success predictor goes with it"] if self._own_predictor(name).is_dir() else []
        affected += [f"with it goes what {count_of(len(improvements), 'improvement')} settled"] if improvements else []
        affected += ["its timer goes with it"] if self._timer(name).is_file() else []
        return Dependents(tuple(blocking), tuple(affected))

    def find_trace_dependents(self, ids: Sequence[str]) -> Dependents:
        with Session(self._store.engine) as session:
            rows = session.exec(select(EpisodeRow).where(col(EpisodeRow.id).in_(ids))).all()
            variations = session.exec(
                select(func.count()).where(col(EpisodeRow.what_if_of).in_(ids), col(EpisodeRow.id).not_in(ids))
            ).one()
            stars = session.exec(select(func.count()).where(col(StarRow.episode).in_(ids))).one()
            links = session.exec(select(func.count()).where(col(SharedRunRow.episode).in_(ids))).one()
        missing = set(ids) - {row.id for row in rows}
        if missing:
            raise StorageError(f"there is no trace {sorted(missing)[0]!r} in this data folder")
        active = [row.id for row in rows if row.state in ("running", "waiting")]
        blocking = (
            [f"{len(active)} of them still running or waiting for approval, such as {active[0]}"] if active else []
        )
        affected = [f"{count_of(variations, 'what-if')} made of them can still be opened"] if variations else []
        affected += [f"SFT would no longer imitate what is starred: {count_of(stars, 'trace')}"] if stars else []
        affected += [f"nobody opens them by a link any more: {count_of(links, 'link')}"] if links else []
        return Dependents(tuple(blocking), tuple(affected))

    def _job_dependents(self, name: str) -> Dependents:
        row = self._jobs.get(name)
        steps = [step for step, _ in complete_steps(self._jobs.folder(name).checkpoints)]
        blocking = [f"it is {row.state}; stop it first"] if row.state in IN_USE else []
        blocking += self._list_uses(name)
        affected = [f"{count_of(len(steps), 'checkpoint')} of it can no longer be run or compared"] if steps else []
        affected += ["its evaluation goes with it"] if self._jobs.folder(name).evaluations.is_file() else []
        return Dependents(tuple(blocking), tuple(affected))

    def _delete_job(self, name: str) -> TrashEntry:
        rows = [("job", col(JobRow.id) == name)]
        return self.trash.put("job", name, rows, [self._jobs.folder(name).path], _refuse_in_use(name))

    def _rename_job(self, name: str, new: str) -> str:
        if not new.strip() or len(new) > 80:
            raise StorageError("a job's name has 1 to 80 characters")
        self._jobs.rename(name, new.strip())
        return f"its id, and the names of its checkpoints, stay {name}"

    def _evaluation_dependents(self, name: str) -> Dependents:
        row = self._jobs.get(name)
        if row.kind == MEASURES:
            return self._job_dependents(name)
        if not any(place.exists() for place in self._list_results(name)):
            raise StorageError(f"job {name} has measured nothing")
        blocking = (f"it is {row.state}; stop it first",) if row.state in IN_USE else ()
        return Dependents(blocking, ("the job and its checkpoints stay",))

    def _delete_evaluation(self, name: str) -> TrashEntry:
        """Delete what a job measured; a job that does nothing else goes whole."""
        if self._jobs.get(name).kind == MEASURES:
            return self.delete("job", name)
        return self.trash.put("evaluation", name, [], self._list_results(name), _refuse_in_use(name))

    def _list_results(self, job: str) -> list[Path]:
        folder = self._jobs.folder(job)
        return [folder.results, folder.evaluations, folder.frozen_past]

    def _checkpoint_dependents(self, name: str) -> Dependents:
        self._find_checkpoint(name)
        job = name.partition("@")[0]
        row = self._jobs.get(job)
        blocking = [f"job {job} is {row.state}"] if row.state in IN_USE else []
        return Dependents((*blocking, *self._list_uses(name)))

    def _delete_checkpoint(self, name: str) -> TrashEntry:
        job = name.partition("@")[0]
        return self.trash.put("checkpoint", name, [], [self._find_checkpoint(name)], _refuse_in_use(job))

    def _publication_dependents(self, name: str) -> Dependents:
        state = find_record(self._store.home, name).state()
        running = (f"{name} is being published",) if state.state == "running" else ()
        return Dependents(running, (f"what is on the Hub stays there: {state.space}",) if state.space else ())

    def _delete_publication(self, name: str) -> TrashEntry:
        return self.trash.put("publication", name, [], [find_record(self._store.home, name).folder])

    def _list_uses(self, name: str) -> list[str]:
        """What uses the checkpoints of a name now."""
        servers = [one for one in list_servers(self._store.home) if _names(one.orchestrator, name)]
        jobs = [
            row for row in self._list_jobs_in_use() if row.id != name.partition("@")[0] and self._job_uses(row.id, name)
        ]
        deployments = self._list_deployments(lambda side: _names(side.orchestrator, name))
        return [
            *(f"a server on port {one.port} serves it" for one in servers),
            *(f"deployment {one} uses it, or a rollback of it would" for one in deployments),
            *(f"job {row.id} uses it" for row in jobs),
        ]

    def _list_deployments(self, needs: Callable[[ServingSide], bool]) -> list[str]:
        """The deployments that serve, try or may roll back to what is needed."""
        return list(dict.fromkeys(name for name, side in self._deployments.list_uses() if needs(side)))

    def _deployment_dependents(self, name: str) -> Dependents:
        self._deployments.latest(name)
        servers = [one for one in list_servers(self._store.home) if one.deployment == name]
        blocking = tuple(f"a server on port {one.port} serves it" for one in servers)
        return Dependents(blocking, ("its history goes with it; the traces of its requests stay",))

    def _delete_deployment(self, name: str) -> TrashEntry:
        return self.trash.put("deployment", name, [("deployment_change", col(DeploymentChangeRow.deployment) == name)])

    def _find_checkpoint(self, name: str) -> Path:
        if name in STARTERS:
            raise StorageError(f"{name} ships with Podium; it cannot be deleted")
        job, _, step = name.partition("@")
        folders = {str(number): folder for number, folder in complete_steps(self._jobs.folder(job).checkpoints)}
        if step not in folders:
            raise StorageError(f"there is no checkpoint {name!r}; a checkpoint is called JOB@STEP")
        return folders[step]

    def _list_jobs_in_use(self) -> list[JobRow]:
        return [row for row in self._jobs.all() if row.state in IN_USE]

    def _job_uses(self, job: str, name: str) -> bool:
        recipe = self._jobs.folder(job).recipe
        return recipe.is_file() and any(_names(word, name) for word in recipe.read_text(encoding="utf-8").split())

    def _own_predictor(self, pool: str) -> Path:
        return find_own_folder(pool, self._store.home.root)

    def _timer(self, pool: str) -> Path:
        return find_timer_file(self._store.home, pool)

    def _improvements_log(self, pool: str) -> Path:
        return find_log(self._store.home, pool)

    def _list_files(self, pool: str) -> Iterator[Path]:
        """What a pool has in the data folder, of which some may not exist."""
        yield from TaskBook(self._tasks_file(pool)).files
        yield from (self._own_predictor(pool), self._timer(pool), self._improvements_log(pool))
        yield from (improvement.folder for improvement in list_improvements(self._store.home, pool))

    def _tasks_file(self, pool: str) -> Path:
        return self._store.home.root / "tasks" / f"{pool}.jsonl"

    def _with_inner(self, ids: Iterable[str]) -> list[str]:
        """The traces and every episode inside them."""
        every, new = set(ids), set(ids)
        with Session(self._store.engine) as session:
            while new:
                inner = session.exec(select(EpisodeRow.id).where(col(EpisodeRow.parent).in_(new))).all()
                new = set(inner) - every
                every |= new
        return sorted(every)


def _refuse_in_use(job: str) -> Callable[[Session], None]:
    """What begins a deletion: it raises StorageError where somebody has resumed the job since its dependents were
    listed."""

    def check(session: Session) -> None:
        row = session.get(JobRow, job, with_for_update=True)
        if row is not None and row.state in IN_USE:
            raise StorageError(f"nothing was deleted: job {job} is {row.state}; stop it first")

    return check


def _names(word: str, name: str) -> bool:
    """Whether a word of a recipe, or an orchestrator's name, is this name, one of its checkpoints, or has options."""
    plain = word.strip("'\",[]").removeprefix("practice:")
    return plain == name or plain.startswith((f"{name}@", f"{name}+"))
