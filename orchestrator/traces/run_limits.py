"""Proves from a trace that a run kept what its caller limited it to (pool_registry/calls/run_limits.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.engine.episode import Episode, StepRun
from orchestrator.errors import DamagedTrace, EpisodeNotFound
from orchestrator.traces.store import TraceStore
from pool_registry.calls.run_limits import RunLimits, Source
from pool_registry.calls.spending import ROUNDING


def read_with_inner(traces: TraceStore, episode: Episode) -> list[Episode]:
    """A run and the episodes inside it. Those that were deleted are left out: what they called is not known."""
    episodes = [episode]
    for outer in episodes:
        for run in outer.steps.values():
            if run.observation is not None and run.observation.episode is not None:
                try:
                    episodes.append(traces.episode(run.observation.episode))
                except (EpisodeNotFound, DamagedTrace):
                    continue
    return episodes


def list_violations(episodes: Sequence[Episode]) -> list[str]:
    """One sentence for each limit of a run that its trace shows broken; the run comes first, then those inside it."""
    run, inner = episodes[0], {episode.id: episode for episode in episodes[1:]}
    limits = run.run_limits
    broken = list(_Check(limits, inner).check_episode(run))
    if limits.max_cost is not None and run.usage.cost > limits.max_cost + ROUNDING:
        broken.append(f"the run cost ${run.usage.cost:.6g}; ${limits.max_cost:g} were allowed")
    return broken


@dataclass(frozen=True, slots=True)
class _Check:
    """The check of one episode. `readers` may read what the call around it sees (None: everybody), `runners` made that
    call, and read what the episode's workers return."""

    limits: RunLimits
    inner: Mapping[str, Episode]
    readers: frozenset[str] | None = None
    runners: tuple[str, ...] = ()

    def check_episode(self, episode: Episode) -> Iterator[str]:
        for k, run in episode.steps.items():
            if run.started_at is None:
                continue
            sources = [source for seen in run.step.access for source in _list_sources(seen, episode.steps[seen])]
            for sentence in self._check_call(run, sources):
                yield f"step {k} of {episode.id}: {sentence}"
            inner = self.inner.get(run.observation.episode or "") if run.observation is not None else None
            if inner is not None:
                yield from self._enter(run, sources).check_episode(inner)
        final = episode.final
        if final is not None and final.started_at is not None:
            shown = [source for seen in final.sources for source in _list_sources(seen, episode.steps[seen])]
            for name in dict.fromkeys((final.worker, final.writer)):
                hidden = self.limits.explain_hidden(name, shown)
                if hidden is not None:
                    yield f"the final answer of {episode.id}: {hidden}"
                if name in self.limits.without_workers:
                    yield f"the final answer of {episode.id}: {name} was called, which this run may not call"

    def _check_call(self, run: StepRun, sources: Sequence[Source]) -> Iterator[str]:
        for name in _list_workers(run):
            if name in self.limits.without_workers:
                yield f"{name} was called, which this run may not call"
            if self.readers is not None and name not in self.readers:
                yield f"{name} was called inside a call that sees what it may not see"
            hidden = self.limits.explain_hidden(name, sources)
            if hidden is not None:
                yield hidden
            for runner in self.runners:
                hidden = self.limits.explain_hidden(runner, [(run.step.id, name)])
                if hidden is not None:
                    yield hidden

    def _enter(self, run: StepRun, sources: Sequence[Source]) -> _Check:
        """The check of the episode inside a call."""
        own = self.limits.find_readers(sources)
        readers = self.readers if own is None else own if self.readers is None else own & self.readers
        return _Check(self.limits.without_steps(), self.inner, readers, tuple(_list_workers(run)))


def _list_sources(step: int, run: StepRun) -> list[Source]:
    return [(step, name) for name in _list_workers(run)]


def _list_workers(run: StepRun) -> list[str]:
    """The worker of a step, and the one that answered in its place."""
    answered_by = run.observation.answered_by if run.observation is not None else None
    return [run.step.worker] if answered_by is None else [run.step.worker, answered_by]
