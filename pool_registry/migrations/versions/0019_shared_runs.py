"""Links to one run each that open without a login."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.create_table(
        "shared_run",
        sa.Column("token_hash", sa.String, primary_key=True),
        sa.Column("episode", sa.String, sa.ForeignKey("episode.id", ondelete="CASCADE"), nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("expires_at", sa.DateTime, nullable=False),
        sa.Column("user_name", sa.String, nullable=False),
    )
    op.create_index("ix_shared_run_episode", "shared_run", ["episode"])
