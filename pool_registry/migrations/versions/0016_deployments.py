"""Deployments with every change of them, and which traces are requests to one."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "deployment_change",
        sa.Column("deployment", sa.String, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("back_to", sa.Integer, nullable=True),
        sa.Column("made_by", sa.String, nullable=False),
        sa.Column("made_at", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("report", sa.String, nullable=False),
    )
    for column in ("deployment", "side", "shadow_of"):
        op.add_column("episode", sa.Column(column, sa.String, nullable=False, server_default=""))
    op.create_index("ix_episode_deployment", "episode", ["deployment"])
