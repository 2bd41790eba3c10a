"""Alembic's entry point. `pool_registry.storage.upgrade.upgrade` hands over an open connection."""

from alembic import context

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("run migrations through pool_registry.storage.upgrade.upgrade (start-up does)")
context.configure(connection=connection, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
