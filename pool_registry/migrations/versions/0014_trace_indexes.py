"""Indexes that serve the Traces page over millions of episodes: the newest of a pool, and the pools of a source."""

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_index("ix_episode_pool_started_at", "episode", ["pool", "started_at"])
    op.drop_index("ix_episode_pool", "episode")
    op.create_index("ix_episode_source_pool", "episode", ["source", "pool"])
    op.drop_index("ix_episode_source", "episode")
