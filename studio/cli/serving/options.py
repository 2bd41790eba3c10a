"""The options that a served pool and a deployment share."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

RequestCostOption = Annotated[float | None, typer.Option(help="Most US dollars for a request.")]
DeadlineOption = Annotated[float | None, typer.Option(help="Most seconds for a request.")]
ModeOption = Annotated[
    Literal["escalate", "review"] | None,
    typer.Option(help="When plans wait for a person, where the pool is less strict."),
]
RecordOption = Annotated[
    bool, typer.Option(help="Keep the trace of each request. --no-record stores nothing that clients send.")
]
FollowUpsOption = Annotated[
    bool,
    typer.Option(
        help='Read a message such as "and in Paris?" with the question before it; --no-follow-ups plans with the whole '
        "conversation instead."
    ),
]
