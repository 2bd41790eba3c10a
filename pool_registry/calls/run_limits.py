"""The limits that a caller sets for one run: workers that it may not call, what it may cost, and which workers may see
the outputs of which.

They hold because the run gets a view of its pool in which they hold (`LivePool.limit`): orchestrator, plan check,
executor, fallbacks, summarizers and inner episodes have no other pool to call.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from pool_registry.errors import InvalidRunLimits

_STEP = re.compile(r"\$?([1-9][0-9]{0,5})")
Source = tuple[int, str]  # an output: the number of its step, and the worker that gave it


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may not do. `max_cost` is in US dollars, and no call is made that might pass it.

    `seen_by` lists, by a worker's name or by a step as `$2`, the workers that may see its outputs; a worker always sees
    its own. An orchestrator that is none of them does not read such an output either, but may quote it.
    """

    without_workers: tuple[str, ...] = ()
    max_cost: float | None = None
    seen_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.without_workers or self.seen_by) or self.max_cost is not None

    def find_readers(self, sources: Iterable[Source]) -> frozenset[str] | None:
        """The workers that may see all of these outputs; None where every worker may."""
        readers: frozenset[str] | None = None
        for step, worker in sources:
            for key in (f"${step}", worker):
                if key in self.seen_by:
                    allowed = frozenset((*self.seen_by[key], worker))
                    readers = allowed if readers is None else readers & allowed
        return readers

    def explain_hidden(self, worker: str, sources: Iterable[Source]) -> str | None:
        """Why a call of `worker` may not see one of these outputs; None where it may see all."""
        for step, source in sources:
            readers = self.find_readers([(step, source)])
            if readers is not None and worker not in readers:
                allowed = ", ".join(sorted(readers - {source})) or "no other worker"
                return f"{worker} may not see the output of step {step} ({source}): this run shows it to {allowed}"
        return None

    def may_see(self, worker: str, source: str) -> bool:
        """Whether a worker may see what another one returns."""
        return worker == source or source not in self.seen_by or worker in self.seen_by[source]

    def renumber(self, ids: Mapping[int, int]) -> RunLimits:
        """These limits for a plan whose steps have other numbers."""
        if not self.seen_by:
            return self
        numbers = {f"${old}": f"${new}" for old, new in ids.items()}
        return replace(self, seen_by={numbers.get(key, key): names for key, names in self.seen_by.items()})

    def without_steps(self) -> RunLimits:
        """What of these limits holds in an inner episode, whose steps have numbers of their own."""
        return replace(self, seen_by={key: names for key, names in self.seen_by.items() if not key.startswith("$")})

    def describe(self) -> list[str]:
        """One sentence for each limit."""
        lines = [f"Without {', '.join(self.without_workers)}."] if self.without_workers else []
        if self.max_cost is not None:
            lines.append(f"At most ${self.max_cost:g}.")
        for source, names in self.seen_by.items():
            what = f"step {source[1:]}" if source.startswith("$") else source
            readers = f"{', '.join(names)} alone" if names else "no other worker"
            lines.append(f"The output of {what} is seen by {readers}.")
        return lines


NO_RUN_LIMITS = RunLimits()


def build_run_limits(
    without_workers: Iterable[str] = (),
    max_cost: float | None = None,
    seen_by: Mapping[str, Iterable[str]] | None = None,
) -> RunLimits:
    """Build limits from what a caller wrote. Raises InvalidRunLimits where a price is none."""
    if max_cost is not None and not (math.isfinite(max_cost) and max_cost > 0):
        sentence = f"${max_cost:g} is no cap on what a run may cost; give an amount above $0, or none"
        raise InvalidRunLimits("max_cost", sentence)
    sources = {_name_source(source): tuple(dict.fromkeys(names)) for source, names in (seen_by or {}).items()}
    return RunLimits(tuple(dict.fromkeys(without_workers)), max_cost, sources)


def _name_source(text: str) -> str:
    """A step as `$2`, also where it is written `2`; a worker by its name."""
    match = _STEP.fullmatch(text.strip())
    return f"${match[1]}" if match else text.strip()


def parse_seen_by(texts: Iterable[str]) -> dict[str, list[str]]:
    """Read who may see whose outputs, each as WORKER=READER,READER. Raises InvalidRunLimits."""
    seen_by: dict[str, list[str]] = {}
    for text in texts:
        source, equals, names = text.partition("=")
        if not (source.strip() and equals):
            sentence = f"{text.strip()[:80]!r} names no readers; write WORKER=READER,READER, or WORKER= for none"
            raise InvalidRunLimits("seen_by", sentence)
        seen_by.setdefault(source.strip(), []).extend(name.strip() for name in names.split(",") if name.strip())
    return seen_by


def write_seen_by(limits: RunLimits) -> str:
    """Write who may see whose outputs as a person types it."""
    return "; ".join(f"{source.removeprefix('$')} = {', '.join(names)}" for source, names in limits.seen_by.items())


def check_run_limits(limits: RunLimits, pool: str, names: Collection[str], callable_names: Collection[str]) -> None:
    """Raise InvalidRunLimits where limits name workers that the pool has not, or leave none that can be called.

    `names` are all its workers, `callable_names` those that are switched on.
    """
    for name in limits.without_workers:
        _check_name("without_workers", name, pool, names)
    for source, readers in limits.seen_by.items():
        for name in (*(() if source.startswith("$") else (source,)), *readers):
            _check_name("seen_by", name, pool, names)
    if limits.without_workers and not set(callable_names).difference(limits.without_workers):
        raise InvalidRunLimits("without_workers", f"no worker of pool {pool!r} is left for this run; ban fewer of them")


def _check_name(field_name: str, name: str, pool: str, names: Collection[str]) -> None:
    if name in names:
        return
    nearest = get_close_matches(name[:80], list(names), 3, cutoff=0)
    listed = ", ".join(nearest) or "none"
    raise InvalidRunLimits(field_name, f"pool {pool!r} has no worker {name[:80]!r}; the nearest names are: {listed}")
