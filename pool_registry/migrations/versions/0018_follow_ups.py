"""Which run a follow-up question goes on with."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("episode", sa.Column("continues", sa.String, nullable=True))
    op.create_index("ix_episode_continues", "episode", ["continues"])
