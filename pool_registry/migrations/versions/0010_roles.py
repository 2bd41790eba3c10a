"""What people who log in may do, from where they are logged in, whose a token is, and pools that only owners change."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("account", sa.Column("role", sa.String, nullable=False, server_default="owner"))
    op.add_column("login_session", sa.Column("opened_at", sa.DateTime, nullable=True))
    op.add_column("login_session", sa.Column("address", sa.String, nullable=False, server_default=""))
    op.add_column("login_session", sa.Column("browser", sa.String, nullable=False, server_default=""))
    op.add_column("api_token", sa.Column("user_name", sa.String, nullable=False, server_default=""))
    op.create_table("read_only_pool", sa.Column("name", sa.String, primary_key=True))
