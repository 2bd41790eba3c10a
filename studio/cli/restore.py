"""`podium restore`: lists the copies of the database, and puts one back."""

from __future__ import annotations

from typing import Annotated

import typer

from studio.cli.options import HomeOption


def restore(
    copy: Annotated[
        str | None,
        typer.Argument(help="A file of the data folder's `backups`, or the path of one. Without: list them."),
    ] = None,
    home: HomeOption = None,
) -> None:
    """Put a copy of the database back. The present one is kept in `backups`; stop the studio and its jobs first."""
    from pool_registry.storage.backups import list_backups, restore_backup
    from pool_registry.storage.data_folder import choose_home
    from pool_registry.storage.upgrade import list_revisions

    folder = choose_home(home)
    if copy is None:
        backups = list_backups(folder)
        for backup in backups:
            content = f"{backup.pools} pools, {backup.episodes} traces" if backup.schema else "damaged"
            typer.echo(f"{backup.name}  schema {backup.schema or '?'}  {content}")
        if not backups:
            typer.echo(f"No copy is in {folder.backups}: the studio makes one a day, and before each upgrade.")
        return
    kept = restore_backup(folder, copy, list_revisions())
    typer.echo(f"Restored {copy}." + (f" The database that was there is now {kept}." if kept else ""))
