"""What a shell is told of a run beside its answer: how it ended, and whether anything verified it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer


def print_result(document: Mapping[str, Any]) -> None:
    """Say on stderr how a run ended, in the colours of the Run page."""
    sentence, colour = describe_result(document)
    typer.secho(sentence, fg=colour, err=True)


def describe_result(document: Mapping[str, Any]) -> tuple[str, str]:
    """One sentence about a trace document and its colour: green only where a task's verifier found the answer right,
    yellow where nothing verified it."""
    if document["outcome"] != "answered":
        return f"{document['outcome']}: {document['reason']}", typer.colors.RED
    if document["correct"] is None:
        return "Not verified: no answer is known to compare this one with.", typer.colors.YELLOW
    if document["correct"]:
        return "Correct.", typer.colors.GREEN
    return f"Wrong, expected {document['expected']}.", typer.colors.RED
