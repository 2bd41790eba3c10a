"""Recorded observations of workers whose cache is on."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "recorded",
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("body", sa.String, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False, index=True),
    )
