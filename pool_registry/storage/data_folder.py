"""The data folder, which holds everything that Podium keeps, outside the checkout."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pool_registry.errors import StorageError


@dataclass(frozen=True, slots=True)
class Home:
    """`PODIUM_HOME` and the places in it."""

    root: Path

    @property
    def database_url(self) -> str:
        """`PODIUM_DATABASE_URL` (PostgreSQL), or the SQLite file in this folder."""
        return os.environ.get("PODIUM_DATABASE_URL") or f"sqlite:///{self.root / 'podium.db'}"

    @property
    def database_file(self) -> Path | None:
        """The SQLite file; None where a server keeps the database."""
        prefix = "sqlite:///"
        return Path(self.database_url.removeprefix(prefix)) if self.database_url.startswith(prefix) else None

    @property
    def backups(self) -> Path:
        return self.root / "backups"

    @property
    def artifacts(self) -> Path:
        """The folder of uploaded documents, of search indexes, and of what `built` names."""
        return self.root / "artifacts"

    @property
    def built(self) -> Path:
        """The folder of what is built once from files that ship: the starter database, its index and its model.

        `PODIUM_BUILT` names one that several data folders share."""
        return Path(os.environ.get("PODIUM_BUILT") or self.artifacts)

    @property
    def set_aside(self) -> Path:
        """The events of traces that the database refused, one JSON document a line, each with the reason."""
        return self.root / "set-aside.jsonl"

    @property
    def jobs(self) -> Path:
        return self.root / "jobs"


def find_home(folder: str | Path | None = None) -> Home:
    """Find and create the data folder: the argument, `PODIUM_HOME`, or the platform's user data folder.

    Raises StorageError when it cannot be created or written to.
    """
    root = Path(folder or os.environ.get("PODIUM_HOME") or _default_folder()).expanduser().absolute()
    return _make_home(root)


def choose_home(folder: str | Path | None) -> Home:
    """Make `find_home(folder)` this process's data folder: for commands that take `--home`."""
    os.umask(0o077)  # what a command of Podium writes is nobody else's: traces, uploads, hashes of passwords
    home = find_home(folder)
    os.environ["PODIUM_HOME"] = str(home.root)
    return home


@cache
def _make_home(root: Path) -> Home:
    """Create and try the folder once per process: workers ask for it at every call."""
    home = Home(root)
    try:
        _make_private(root)
        for place in (home.artifacts, home.jobs):
            place.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            pass
    except OSError as error:
        raise StorageError(
            f"the data folder {root} cannot be written to ({error.strerror}); choose another with --home or PODIUM_HOME"
        ) from error
    return home


def _make_private(root: Path) -> None:
    """Create the folder for this account alone, and close one that an earlier version left open to others. A folder
    that holds other things, such as a project, stays as it is."""
    root.mkdir(parents=True, exist_ok=True)
    state = root.stat()
    ours = state.st_uid == os.geteuid() if hasattr(os, "geteuid") else False
    if ours and state.st_mode & 0o077 and ((root / "podium.db").exists() or not any(root.iterdir())):
        root.chmod(0o700)


def _default_folder() -> str:
    from platformdirs import user_data_dir

    return user_data_dir("podium", appauthor=False)
