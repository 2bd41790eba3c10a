"""The error code of an ended step beside its status, so that a worker's health needs no event bodies."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("event", sa.Column("code", sa.String, nullable=True))
