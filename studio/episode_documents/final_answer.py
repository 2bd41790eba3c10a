"""The final answer of an episode, for a person: who wrote it, from what, and what the plan's own answer is."""

from __future__ import annotations

from orchestrator.engine.episode import Episode, FinalAnswer
from pool_registry.actions import NO_USAGE, as_text
from studio.episode_documents.schema import FinalAnswerDetail, FinalAnswerView, SeenStep

PRESENTED = "Put into words by a template; no model was asked."


def build_final_view(episode: Episode) -> FinalAnswerView | None:
    """Who writes the answer of an episode; None where it is the plan's own, and no finalizer was called or refused."""
    final = episode.final
    if final is None:
        return _build_presented(episode) if episode.presented is not None else None
    return FinalAnswerView(
        worker=final.writer,
        state="RUNNING" if final.observation is None else "OK" if final.is_written else "EXEC_ERR",
        started_at=final.started_at,
        sentence=_describe(final),
        plan_answer=None if episode.answer is None else as_text(episode.answer),
        sources=list(final.sources),
    )


def _build_presented(episode: Episode) -> FinalAnswerView:
    return FinalAnswerView(
        worker="",
        state="OK",
        started_at=None,
        sentence=PRESENTED,
        plan_answer=None if episode.answer is None else as_text(episode.answer),
        sources=[],
    )


def build_final_detail(episode: Episode) -> FinalAnswerDetail | None:
    """Everything about the call that wrote the final answer; None where there was none."""
    view, final, seen = build_final_view(episode), episode.final, episode.observations()
    if view is None or final is None:
        return None
    observation = final.observation
    usage = observation.usage if observation else NO_USAGE
    failure = observation.error if observation else None
    return FinalAnswerDetail(
        **view.model_dump(),
        visible=[
            SeenStep(step=k, worker=episode.steps[k].step.worker, status="OK", value=seen[k].value, error=None)
            for k in final.sources
        ],
        prompt=observation.prompt if observation else None,
        value=observation.value if observation else None,
        code=failure.code if failure else None,
        error=failure.message if failure else None,
        latency_s=observation.latency_s if observation else None,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        cost=usage.cost,
    )


def _describe(final: FinalAnswer) -> str:
    if final.observation is None:
        return f"{final.worker} writes the final answer."
    if final.observation.error is not None:
        failure = final.observation.error
        return f"The plan's own answer: {final.worker} wrote no final one ({failure.code}: {failure.message})"
    instead = f", in the place of {final.worker}" if final.writer != final.worker else ""
    return f"Final answer written by {final.writer}{instead}."
