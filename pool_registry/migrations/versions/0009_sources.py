"""What an episode ran for: a person, a client of a served model, an evaluation or training."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("episode", sa.Column("source", sa.String, nullable=False, server_default=""))
    op.create_index("ix_episode_source", "episode", ["source"])
