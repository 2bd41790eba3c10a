"""Which second try a lesson awaits before it is used, and whose process makes it."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.add_column("reflection", sa.Column("awaits", sa.String, nullable=False, server_default=""))
    op.add_column("reflection", sa.Column("owner", sa.String, nullable=False, server_default=""))
