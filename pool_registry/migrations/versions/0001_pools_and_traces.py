"""Pools, episodes and their events."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "pool_version",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False, index=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("hash", sa.String, nullable=False, index=True),
        sa.Column("body", sa.String, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.UniqueConstraint("name", "version"),
        sa.UniqueConstraint("name", "hash"),
    )
    op.create_table(
        "pool_head",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
    )
    op.create_table(
        "episode",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("query", sa.String, nullable=False),
        sa.Column("pool", sa.String, nullable=False, index=True),
        sa.Column("pool_hash", sa.String, nullable=False),
        sa.Column("orchestrator", sa.String, nullable=False, index=True),
        sa.Column("started_at", sa.String, nullable=False, index=True),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("parent", sa.String, nullable=True, index=True),
        sa.Column("family", sa.String, nullable=True),
        sa.Column("state", sa.String, nullable=False, index=True),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("answer", sa.String, nullable=True),
        sa.Column("correct", sa.Boolean, nullable=True),
        sa.Column("wall_s", sa.Float, nullable=False),
        sa.Column("steps", sa.Integer, nullable=False),
        sa.Column("failed_steps", sa.Integer, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("cost", sa.Float, nullable=False),
    )
    op.create_table(
        "event",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("episode", sa.String, sa.ForeignKey("episode.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("type", sa.String, nullable=False),
        sa.Column("worker", sa.String, nullable=True),
        sa.Column("status", sa.String, nullable=True),
        sa.Column("latency_s", sa.Float, nullable=True),
        sa.Column("body", sa.String, nullable=False),
    )
    op.create_index("ix_event_worker", "event", ["worker", "id"])
