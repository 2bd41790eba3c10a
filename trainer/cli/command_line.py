"""Runs a command line: what a person can mend is one line on stderr, whatever the command."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer
from pydantic import ValidationError

from pool_registry.secrets import redact
from pool_registry.storage.data_folder import find_home
from pool_registry.validation_words import describe_problems
from trainer.errors import MENDABLE

BAD_INPUT = 2  # the exit code
INTERRUPTED = 130


def run_command_line(app: typer.Typer, name: str) -> None:
    """Run the command that this process was started with."""
    try:
        app(prog_name=name)
    except MENDABLE as error:
        _refuse(str(error))
    except ValidationError as error:
        _refuse(describe_problems(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        from pool_registry.storage.disk_space import explain_full_disk  # imports the database

        sentence = explain_full_disk(error, find_home().root)
        if sentence is None:
            raise
        _refuse(sentence)


def _refuse(sentence: str) -> NoReturn:
    typer.echo(f"podium: {redact(sentence)}", err=True)
    sys.exit(BAD_INPUT)
