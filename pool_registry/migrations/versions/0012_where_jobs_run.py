"""Where a job runs: on this machine, or on a rented one."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("job", sa.Column("where", sa.String, nullable=False, server_default="here"))
