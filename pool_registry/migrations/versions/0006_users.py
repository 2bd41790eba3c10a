"""Who ran an episode; the people who may log in, their open sessions, and the tokens of served models."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("episode", sa.Column("user_name", sa.String, nullable=False, server_default=""))
    op.create_index("ix_episode_user_name", "episode", ["user_name"])
    op.create_table(
        "account",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("password_hash", sa.String, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "login_session",
        sa.Column("key_hash", sa.String, primary_key=True),
        sa.Column("user_name", sa.String, sa.ForeignKey("account.name", ondelete="CASCADE"), nullable=False),
        sa.Column("expires_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "api_token",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("token_hash", sa.String, nullable=False, unique=True),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
