"""An index that serves the search for a text in queries, answers and ids, where PostgreSQL's pg_trgm can be had."""

import logging

from alembic import op
from sqlalchemy.exc import DBAPIError

revision = "0015"
down_revision = "0014"

log = logging.getLogger(__name__)
COLUMNS = ", ".join(f"{column} gin_trgm_ops" for column in ("query", "answer", "id"))
CREATE_INDEX = f"CREATE INDEX ix_episode_text ON episode USING gin ({COLUMNS})"


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    try:
        with connection.begin_nested():
            connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            connection.exec_driver_sql(CREATE_INDEX)
    except DBAPIError as error:
        log.warning(
            "searching for a text reads every episode: PostgreSQL's extension pg_trgm cannot be had (%s). Once an "
            "administrator has installed it, run: CREATE EXTENSION pg_trgm; %s",
            str(error.orig).strip().splitlines()[0], CREATE_INDEX,
        )  # fmt: skip
