"""What a person can mend is one line on stderr with exit code 2, whichever room it comes from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import typer

import studio.access.accounts
import studio.access.roles
import studio.approvals
import studio.publish.request  # noqa: F401  these rooms have errors of their own
from trainer.cli.command_line import run_command_line
from trainer.errors import MENDABLE


def list_errors(roots: tuple[type[Exception], ...] = MENDABLE) -> Iterator[type[Exception]]:
    for root in roots:
        yield root
        yield from list_errors(tuple(root.__subclasses__()))


def fail_with(error: BaseException) -> typer.Typer:
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    def fail() -> None:
        raise error

    return app


@pytest.mark.parametrize("kind", sorted(set(list_errors()), key=lambda kind: kind.__name__))
def test_every_error_of_the_house_is_one_line(kind, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["podium"])
    error = kind.__new__(kind)
    Exception.__init__(error, "it is broken: mend it")
    with pytest.raises(SystemExit) as end:
        run_command_line(fail_with(error), "podium")
    assert (end.value.code, capsys.readouterr().err) == (2, "podium: it is broken: mend it\n")


def test_a_bug_stays_a_traceback(monkeypatch):
    monkeypatch.setattr("sys.argv", ["podium"])
    with pytest.raises(ZeroDivisionError):
        run_command_line(fail_with(ZeroDivisionError()), "podium")
