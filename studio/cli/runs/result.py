"""What a shell is told of a run beside its answer: how many drawn plans agree on it, how it ended, whether anything
verified it, and what to try next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from orchestrator.reader.refusal import is_refusal
from studio.cli.runs import approvals

if TYPE_CHECKING:
    from orchestrator.engine.episode import Episode
    from orchestrator.traces.store import Store
    from pool_registry.pool import Pool
    from studio.episode_documents.schema import Offer


def print_run(store: Store, document: dict[str, Any], pool: Pool, as_json: bool) -> None:
    """Print how a run went, once its plans are decided; exits with 3 where one still waits, with 1 where there is no
    answer."""
    from studio.episode_documents.audit import describe_audit
    from studio.episode_documents.trace import (
        describe_bindings,
        describe_final,
        describe_limits,
        describe_second_try,
        shown_answer,
    )
    from studio.orchestrators.offers import list_offers

    document = approvals.ask_until_over(store, document)
    if document["outcome"] == "waiting":
        approvals.print_outcome(store, document, as_json)
    typer.echo(json.dumps(document, indent=1, ensure_ascii=False) if as_json else shown_answer(document))
    if not as_json:
        about = (*describe_bindings(document), *describe_audit(document["audit"]), *describe_limits(document))
        for line in (*about, *describe_second_try(document), *describe_final(document)):
            typer.echo(line, err=True)
    episode = store.traces.episode(document["id"])
    print_result(document, episode, list_offers(episode, pool))
    if document["outcome"] != "answered":
        raise typer.Exit(1)


def print_result(document: Mapping[str, Any], episode: Episode, offers: list[Offer]) -> None:
    """Say on stderr how a run ended, in the colours of the Run page."""
    from orchestrator.out_of_depth.gauge import describe_depth, is_beyond
    from orchestrator.policies.labels import label_orchestrator
    from studio.episode_documents.chance import measure_chance
    from studio.orchestrators.offers import format_offers

    if (chance := measure_chance(episode, document["orchestrator"])) is not None:
        typer.secho(f"{chance.sentence}.", fg=typer.colors.YELLOW if chance.unsure else None, err=True)
    elif (agreement := episode.agreement) is not None:
        typer.secho(agreement.sentence, fg=typer.colors.YELLOW if agreement.unsure else None, err=True)
    if episode.out_of_depth is not None and is_beyond(episode.out_of_depth):
        label = label_orchestrator(document["orchestrator"])
        typer.secho(describe_depth(episode.out_of_depth, label), fg=typer.colors.YELLOW, err=True)
    sentence, colour = describe_result(document)
    typer.secho(sentence, fg=colour, err=True)
    if offers:
        typer.echo(format_offers(offers), err=True)


def describe_result(document: Mapping[str, Any]) -> tuple[str, str]:
    """One sentence about a trace document and its colour: green only where a task's verifier found the answer right,
    yellow where nothing verified it."""
    if document["outcome"] != "answered":
        return f"{document['outcome']}: {document['reason']}", typer.colors.RED
    if document["correct"] is None and is_refusal(document["answer"]):
        return "Refused: no worker of this pool fits.", typer.colors.YELLOW
    if document["correct"] is None:
        return "Not verified: no answer is known to compare this one with.", typer.colors.YELLOW
    final = document["final"]
    graded = "" if final is None or final["state"] != "OK" or not final["worker"] else "The plan's own answer: "
    if document["correct"]:
        return f"{graded}Correct.", typer.colors.GREEN
    expected = f", expected {document['expected']}" if document["expected"] else ""
    return f"{graded}Wrong{expected}.", typer.colors.RED
