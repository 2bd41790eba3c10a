"""How many of an episode's calls were other tries of a rejected one."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("episode", sa.Column("tries", sa.Integer, nullable=False, server_default="0"))
