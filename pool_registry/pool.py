"""A pool: a named set of workers with limits. Immutable; an edit is another pool with another hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field, ValidationError

from pool_registry.checked_documents import CheckedDocuments
from pool_registry.deployment_mode import AUTONOMOUS, DeploymentMode
from pool_registry.errors import InvalidPool, PoolNotFound
from pool_registry.kinds import field_problems, kind_of, load_config, role_of
from pool_registry.literal_keys import find_literal_keys
from pool_registry.schemas.argument_schema import size_problem_of_arguments
from pool_registry.schemas.schema_size import size_problem
from pool_registry.secrets import WRITE_REFERENCE
from pool_registry.strict_model import FrozenModel
from pool_registry.worker import NAME_PATTERN, WorkerSpec

MAX_POOL_FILE_BYTES = 4_000_000
_without_keys = CheckedDocuments()  # looking through a worker's texts takes some milliseconds
MAX_FALLBACKS = 3  # workers in a row, the one that is called among them
# Fields that came later: where they stand at their default, the hash leaves them out, so that the
# versions, episodes and checkpoints of older pools keep theirs.
_LATER = ("output", "fallback", "rate_limit", "cache", "free", "effects", "context_tokens", "summarizer", "judge_only")
_LATER_LIMITS = ("max_shown", "memory", "fallback", "finalizer", "exact_arguments", "memory_retry")
_HASH = "_hash"  # pydantic leaves out what begins so when it compares, lists and writes fields
NO_FINALIZER = "off"  # of Limits.finalizer


class Limits(FrozenModel):
    """What every episode on this pool may use at most; always on. Times in seconds, cost in US dollars.

    Steps, tokens, cost and deadline are shared by an episode and the episodes inside it.
    """

    max_rounds: int = Field(default=6, ge=1, le=64)
    max_steps: int = Field(default=50, ge=1, le=1000)
    max_depth: int = Field(default=2, ge=0, le=8, description="How many episodes may be nested.")
    deadline_s: float = Field(default=300.0, gt=0, le=86_400)
    max_tokens: int = Field(default=200_000, ge=1)
    max_cost: float | None = Field(default=None, gt=0, description="US dollars; empty means no cap.")
    max_shown: int = Field(
        default=24,
        ge=2,
        le=1000,
        description="How many workers an orchestrating model sees; of a larger pool, those that fit the query best.",
    )
    memory: str = Field(
        default="off",
        pattern=NAME_PATTERN,
        description="Who writes a sentence about each failed episode, to be shown before similar queries: "
        "rule, or an agent of the pool. off keeps and shows none.",
    )
    memory_retry: bool = Field(
        default=False,
        description="Run a question that failed once more at once, with the lesson before it and within the run's "
        "limits. The lesson is kept only where the answer is right then.",
    )
    fallback: str = Field(
        default="auto",
        pattern=NAME_PATTERN,
        description="Who answers a served request that the orchestrator cannot take: an agent of the pool; auto, which "
        "is its first chat model, else its first local one; sentence, which says what the pool can do; or off.",
    )
    finalizer: str = Field(
        default=NO_FINALIZER,
        pattern=NAME_PATTERN,
        description="Who writes the final answer for a person, from the question and the outputs that the plan's "
        "answer rests on: an agent of the pool, or off. The plan's own answer is kept beside it.",
    )
    exact_arguments: bool = Field(
        default=False,
        description='Refuse arguments of another type. Else "5" is read as a number and "true" as a switch where only '
        "those fit, and null is left out where it is the default; the step says so.",
    )


class Pool(FrozenModel):
    """Workers and limits under one name. Two pools with equal content have equal `hash`."""

    name: str = Field(pattern=NAME_PATTERN)
    description: str = Field(default="", max_length=2000)
    workers: tuple[WorkerSpec, ...] = ()
    limits: Limits = Limits()
    mode: DeploymentMode = AUTONOMOUS

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON, as 64 hex digits; computed once, for a pool does not change."""
        own = self.__dict__
        if _HASH not in own:
            own[_HASH] = self._compute_hash()
        content_hash: str = own[_HASH]
        return content_hash

    def model_copy(self, *, update: Mapping[str, object] | None = None, deep: bool = False) -> Pool:
        copy = super().model_copy(update=update, deep=deep)
        copy.__dict__.pop(_HASH, None)
        return copy

    def _compute_hash(self) -> str:
        content = self.model_dump(mode="json")
        for worker in content["workers"]:
            for name in _LATER:
                if worker[name] == WorkerSpec.model_fields[name].default:
                    del worker[name]
        for name in _LATER_LIMITS:
            if content["limits"][name] == Limits.model_fields[name].default:
                del content["limits"][name]
        if self.mode == AUTONOMOUS:
            del content["mode"]
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def enabled(self) -> tuple[WorkerSpec, ...]:
        """The workers that an orchestrator may call, in pool order: switched on, and not there to judge only."""
        return tuple(spec for spec in self.switched_on if not spec.judge_only)

    @property
    def switched_on(self) -> tuple[WorkerSpec, ...]:
        """The workers that can be used, those that only judge among them, in pool order."""
        return tuple(spec for spec in self.workers if spec.enabled)

    def agents(self) -> tuple[WorkerSpec, ...]:
        """The language models (chat and local ones) that an orchestrator may call."""
        return tuple(spec for spec in self.enabled if kind_of(spec).role == "agent")

    def worker(self, name: str) -> WorkerSpec:
        """The worker called `name`; PoolNotFound when there is none."""
        spec = self.find_worker(name)
        if spec is None:
            raise PoolNotFound(f"pool {self.name!r} has no worker {name!r}")
        return spec

    def find_worker(self, name: str) -> WorkerSpec | None:
        """The worker called `name`, or None."""
        return next((spec for spec in self.workers if spec.name == name), None)

    def with_worker(self, spec: WorkerSpec, replacing: str | None = None) -> Pool:
        """Return this pool with `spec` in the place of `replacing`, or at the end."""
        if replacing is None:
            return self._with((*self.workers, spec), spec)
        self.worker(replacing)
        return self._with((spec if old.name == replacing else old for old in self.workers), spec)

    def with_workers(self, specs: Sequence[WorkerSpec]) -> Pool:
        """Return this pool with `specs` at its end. How they fit in is checked here, each one when it is stored."""
        return self._with((*self.workers, *specs))

    def without_worker(self, name: str) -> Pool:
        self.worker(name)
        return self._with(spec for spec in self.workers if spec.name != name)

    def _with(self, workers: Iterable[WorkerSpec], new: WorkerSpec | None = None) -> Pool:
        """Return this pool with other workers, of which the `new` one is checked: the others were when they came, and
        a pool is checked as a whole before it is stored."""
        pool = self.model_copy(update={"workers": tuple(workers)})
        _check_workers(pool, () if new is None else (new,))
        return pool


def rename_pool(pool: Pool, name: str) -> Pool:
    """Return `pool` under another name. Raises InvalidPool when that is no name."""
    try:
        return Pool.model_validate({**pool.model_dump(), "name": name})
    except ValidationError as error:
        raise InvalidPool(field_problems(error)) from error


def check_pool(pool: Pool, before: Pool | None = None) -> None:
    """Raise InvalidPool with every problem: names used twice, unknown kinds, wrong configurations, keys that are
    written out, fallbacks. Workers that stood in `before`, just so, are not looked at again: a rule that a newer Podium
    brings must not stop other changes."""
    _check_workers(pool, _list_new(pool, before))


def _list_new(pool: Pool, before: Pool | None) -> list[WorkerSpec]:
    """The workers that `before` has not, or has otherwise."""
    same = {spec.name: spec for spec in before.workers} if before is not None else {}
    return [spec for spec in pool.workers if not _is_same(spec, same.get(spec.name))]


def _is_same(spec: WorkerSpec, other: WorkerSpec | None) -> bool:
    """Whether two workers are the same to a reader, for whom 1 and true differ."""
    return spec == other and repr(spec.config) == repr(other.config)


def _check_workers(pool: Pool, new: Sequence[WorkerSpec]) -> None:
    """Check how the workers of a pool fit together, and what each of the `new` ones says itself."""
    members, unchecked = _Members.of_pool(pool), {id(spec) for spec in new}
    seen: set[str] = set()
    problems: list[tuple[str, str]] = []
    for index, spec in enumerate(pool.workers):
        if spec.name in seen:
            problems.append((f"workers.{index}.name", f"the name {spec.name!r} is used twice"))
        seen.add(spec.name)
        own = _list_own_problems(spec) if id(spec) in unchecked else ()
        problems += [(f"workers.{index}.{where}", what) for where, what in (*own, *_list_misfits(members, spec))]
    problem = _finalizer_problem(members, pool.limits.finalizer)
    if problem is not None:
        problems.append(("limits.finalizer", problem))
    if problems:
        raise InvalidPool(problems)


def _list_own_problems(spec: WorkerSpec) -> Iterator[tuple[str, str]]:
    """What is wrong with a worker in any pool."""
    try:
        yield from _list_large_schemas(spec)
        if spec.judge_only and kind_of(spec).role != "agent":
            yield "judge_only", f"only a language model can judge, and {spec.name} is none; untick it"
    except InvalidPool as error:
        for where, what in error.problems:
            yield f"{'' if where == 'kind' else 'config.'}{where}", what
    yield from _list_written_keys(spec)


def _list_written_keys(spec: WorkerSpec) -> Iterator[tuple[str, str]]:
    texts = {"config": spec.config, "description": spec.description}
    if _without_keys.holds(texts):
        return
    keys = list(find_literal_keys(texts))
    if not keys:
        _without_keys.add(texts)
    for where, what in keys:
        yield where, f"{what}: {WRITE_REFERENCE}"


@dataclass(frozen=True, slots=True)
class _Members:
    """The names in a pool by which workers refer to each other, gathered once for all of them."""

    names: frozenset[str]
    enabled: Mapping[str, WorkerSpec]
    judges: frozenset[str]

    @classmethod
    def of_pool(cls, pool: Pool) -> _Members:
        names = frozenset(spec.name for spec in pool.workers)
        judges = frozenset(spec.name for spec in pool.workers if spec.judge_only)
        return cls(names, {spec.name: spec for spec in pool.enabled}, judges)

    def describe_absence(self, name: str) -> str:
        """Say why a worker that is not among the enabled ones cannot be called."""
        if name in self.judges:
            return "only judges"
        return "is switched off" if name in self.names else "is not there"


def _list_misfits(members: _Members, spec: WorkerSpec) -> Iterator[tuple[str, str]]:
    """What is wrong with what a worker says of the others in its pool."""
    tool = _missing_tool(members, spec)
    if tool is not None:
        yield (
            "config.tools",
            f"{tool} only judges" if tool in members.judges else f"there is no other worker {tool!r} in this pool",
        )
    problem = _fallback_problem(members, spec)
    if problem is not None:
        yield "fallback", problem
    problem = _summarizer_problem(members, spec)
    if problem is not None:
        yield "summarizer", problem


def check_files(pool: Pool, before: Pool | None = None) -> None:
    """Raise InvalidPool where an enabled worker names files that are missing or unusable. Workers that stood in
    `before`, just so, are not asked: what has gone since then must not stop other changes."""
    unchecked = {id(spec) for spec in _list_new(pool, before)}
    problems = [
        (f"workers.{index}.config.{where}", what)
        for index, spec in enumerate(pool.workers)
        if spec.enabled and id(spec) in unchecked
        for where, what in kind_of(spec).load().list_missing(load_config(spec))
    ]
    if problems:
        raise InvalidPool(problems)


def _list_large_schemas(spec: WorkerSpec) -> list[tuple[str, str]]:
    """The schemas of an enabled worker that ask for too much. Raises InvalidPool where its configuration is wrong."""
    config = load_config(spec)
    sizes = {"config.parameters": size_problem_of_arguments(spec.config.get("parameters"))}
    if spec.output is not None:
        sizes["output.json_schema"] = size_problem(spec.output.json_schema)
    problems = [(where, problem) for where, problem in sizes.items() if problem]
    for inner in kind_of(spec).load().inner_workers(config):
        problems += _list_large_schemas(inner)
    return problems if spec.enabled else []


def _missing_tool(members: _Members, spec: WorkerSpec) -> str | None:
    """The first tool of an agent that it cannot call in this pool; None where it can call all."""
    if role_of(spec.kind) != "agent":
        return None
    tools = spec.config.get("tools")
    names = tools if isinstance(tools, list | tuple) else ()
    callable_names = members.names - members.judges - {spec.name}
    return next((str(tool) for tool in names if str(tool) not in callable_names), None)


def _fallback_problem(members: _Members, spec: WorkerSpec) -> str | None:
    """Explain why the fallbacks of `spec` cannot work; None when they can."""
    if spec.judge_only:
        return f"{spec.name} only judges, and nothing takes over for a judge; choose none" if spec.fallback else None
    chain = [spec.name]
    while spec.enabled and spec.fallback:
        if spec.fallback not in members.enabled:
            state = members.describe_absence(spec.fallback)
            return f"{spec.name} falls back on {spec.fallback!r}, which {state}; choose another worker, or none"
        if spec.fallback in chain:
            return f"{' -> '.join([*chain, spec.fallback])} is a circle; let one of them fall back on nothing"
        chain.append(spec.fallback)
        if len(chain) > MAX_FALLBACKS:
            return f"{' -> '.join(chain)} is too long; at most {MAX_FALLBACKS} workers may stand in a row"
        spec = members.enabled[spec.fallback]
    return None


def _summarizer_problem(members: _Members, spec: WorkerSpec) -> str | None:
    """Explain why outputs cannot be shortened for `spec`; None when they can."""
    if not spec.summarizer:
        return None
    if spec.summarizer == spec.name:
        return "a worker cannot shorten outputs for itself; choose another agent, or none"
    summarizer = members.enabled.get(spec.summarizer)
    if summarizer is None or role_of(summarizer.kind) != "agent":
        return f"{spec.summarizer!r} is no enabled language model of this pool; choose one, or none"
    return None


def _finalizer_problem(members: _Members, name: str) -> str | None:
    """Explain why a worker cannot write the final answers of a pool; None when it can, or none is named."""
    if name == NO_FINALIZER:
        return None
    spec = members.enabled.get(name)
    if spec is None:
        return f"the finalizer {name!r} {members.describe_absence(name)}; choose another agent, or {NO_FINALIZER}"
    if role_of(spec.kind) != "agent":
        return f"{name!r} is no language model, and only one can be the finalizer; choose an agent, or {NO_FINALIZER}"
    if spec.config.get("tools"):
        return f"{name!r} has tools of its own, and a finalizer only writes; choose another agent, or {NO_FINALIZER}"
    return None


def mend_finalizer(pool: Pool, renaming: Mapping[str, str] = {}) -> Pool:
    """The pool with its finalizer under its new name, and without one that is not among its agents any more."""
    name = renaming.get(pool.limits.finalizer, pool.limits.finalizer)
    if _finalizer_problem(_Members.of_pool(pool), name) is not None:
        name = NO_FINALIZER
    return pool.model_copy(update={"limits": pool.limits.model_copy(update={"finalizer": name})})


def export_pool(pool: Pool) -> str:
    """Write the pool as a JSON document; secrets are references, so the file holds none.

    Raises InvalidPool for a pool of an older Podium that holds a key which only this one knows as such.
    """
    problems = [
        (f"workers.{index}.{where}", what)
        for index, spec in enumerate(pool.workers)
        for where, what in _list_written_keys(spec)
    ]
    if problems:
        raise InvalidPool(problems)
    return json.dumps({"podium_pool": 1, **pool.model_dump(mode="json")}, indent=2, ensure_ascii=False) + "\n"


def import_pool(text: str | bytes) -> Pool:
    """Read a pool from a JSON document made by `export_pool`. Raises InvalidPool saying what to correct."""
    if len(text) > MAX_POOL_FILE_BYTES:
        raise InvalidPool([("", f"the file has {len(text):,} bytes; a pool may have {MAX_POOL_FILE_BYTES:,}")])
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidPool([("", f"this is not JSON: {error}")]) from error
    if not isinstance(document, dict) or document.pop("podium_pool", None) != 1:
        raise InvalidPool([("", 'this is not a pool of Podium: "podium_pool": 1 is missing')])
    try:
        pool = Pool.model_validate(document)
    except ValidationError as error:
        raise InvalidPool(field_problems(error)) from error
    check_pool(pool)
    return pool
