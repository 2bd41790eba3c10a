"""What a person chose in the binding of a checkpoint to a version of a pool."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "binding_edit",
        sa.Column("checkpoint", sa.String, primary_key=True),
        sa.Column("pool_hash", sa.String, primary_key=True),
        sa.Column("learnt", sa.String, primary_key=True),
        sa.Column("worker", sa.String, nullable=False),
    )
