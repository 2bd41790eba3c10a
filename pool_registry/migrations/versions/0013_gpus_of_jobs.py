"""How many processes a job has, and the GPUs that are its own while it runs."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("job", sa.Column("processes", sa.Integer, nullable=False, server_default="1"))
    op.add_column("job", sa.Column("gpus", sa.String, nullable=False, server_default=""))
