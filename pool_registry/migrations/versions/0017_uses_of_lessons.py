"""What came of each lesson: the run that was right with it, and how often it was shown and helped."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("reflection", sa.Column("retry", sa.String, nullable=False, server_default=""))
    op.add_column("reflection", sa.Column("shown", sa.Integer, nullable=False, server_default="0"))
    op.add_column("reflection", sa.Column("helped", sa.Integer, nullable=False, server_default="0"))
    op.add_column("reflection", sa.Column("used_at", sa.DateTime, nullable=True))
