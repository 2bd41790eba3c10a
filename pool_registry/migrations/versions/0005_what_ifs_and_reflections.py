"""Which episode an edited one varies, and what is remembered of failed episodes."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("episode", sa.Column("what_if_of", sa.String, nullable=True))
    op.create_index("ix_episode_what_if_of", "episode", ["what_if_of"])
    op.create_table(
        "reflection",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("pool", sa.String, nullable=False, index=True),
        sa.Column("episode", sa.String, nullable=False, unique=True),
        sa.Column("query", sa.String, nullable=False),
        sa.Column("sentence", sa.String, nullable=False),
        sa.Column("written_by", sa.String, nullable=False),
        sa.Column("instead_of", sa.String, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("cost", sa.Float, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
