"""A whole episode as one document that a page can replay without a server: its view, every step, every turn.

The same document serves recorded traces and a run that is still under way; assets/space/replay.js draws both.
Nothing here needs a database, so that it travels with a published Space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orchestrator.engine.episode import Episode
from pool_registry.pool import Pool
from studio.episode_documents.final_answer import build_final_detail
from studio.episode_documents.schema import Replay
from studio.episode_documents.view import build_episode_view, build_step_detail, build_turn_detail


@dataclass(frozen=True, slots=True)
class Headline:
    """The summary of an episode: an `EpisodeRow` without a database."""

    id: str
    query: str
    pool: str
    orchestrator: str
    started_at: str
    state: str = "running"
    depth: int = 0


def build_replay(
    episode: Episode, headline: Any, pool: Pool | None = None, version: int | None = None
) -> dict[str, Any]:
    """The episode so far, as schema.py's `Replay`. `headline` is a `Headline` or an `EpisodeRow`. A follow-up stands
    there without the runs before it: who shows this one to others has not chosen those."""
    view = build_episode_view(episode, headline, pool, version)
    head = view.episode.model_copy(update={"follow_up": None, "served": None})  # nobody reaches its deployment there
    steps = {str(k): build_step_detail(episode, k, pool) for k in episode.steps}
    turns = {str(played.number): build_turn_detail(episode, played.number) for played in episode.rounds}
    return Replay(
        view=view.model_copy(update={"episode": head}),
        steps={k: step for k, step in steps.items() if step},
        turns={k: turn for k, turn in turns.items() if turn},
        final=build_final_detail(episode),
    ).to_json()
