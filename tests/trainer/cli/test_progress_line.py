"""Progress at a command line: one line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io

from trainer.cli import progress_line
from trainer.cli.progress_line import CLEAR, ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_changes_and_sentences_that_stay(monkeypatch):
    monkeypatch.setattr(progress_line, "TERMINAL_S", 0.0)
    stream = Terminal()
    line = ProgressLine(stream)
    line.show("1 of 3")
    line.show("2 of 3")
    line.say("Stopping")
    line.show("3 of 3")
    line.close()
    assert stream.getvalue() == f"{CLEAR}1 of 3{CLEAR}2 of 3{CLEAR}Stopping\n{CLEAR}3 of 3\n"


def test_a_line_is_no_wider_than_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    ProgressLine(stream).show("x" * 100)
    assert stream.getvalue() == CLEAR + "x" * 19


def test_a_file_gets_plain_lines_some_seconds_apart_and_the_last_one():
    stream = io.StringIO()
    line = ProgressLine(stream)
    for number in range(1000):
        line.show(f"{number} of 999")
    line.close()
    line.close()
    assert stream.getvalue() == "0 of 999\n999 of 999\n"


def test_nothing_shown_leaves_nothing():
    stream = Terminal()
    ProgressLine(stream).close()
    assert stream.getvalue() == ""
