"""Pools that only traces refer to: those that training and evaluation drew for a task."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "unlisted_pool",
        sa.Column("hash", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
