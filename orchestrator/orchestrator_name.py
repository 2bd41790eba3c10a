"""How orchestrators are called: `policy`, `policy:worker` or `policy:worker:dialect`, or the name of a checkpoint.

Behind the name of a language model may stand how its turns are written: `smollm2-sft+samples=4`,
`model:solver:plan+constrained`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Self

MAX_SAMPLES = 64
_OPTION = re.compile(
    r"\+(?:samples=([1-9][0-9]?)|(recursive)|without=([a-z_]+(?:,[a-z_]+)*)|who=([a-z]+(?:@[a-z0-9]+)?)|(whole_query)"
    r"|finalizer=(on|off)|(un)?constrained)$"
)


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """How a language model's turns are written. `samples` plans are tried for a turn, of which one is taken; a policy
    that draws answers itself draws so many. `constrained`: held to the grammar of the pool; None is the policy's own
    way. `recursive`: its first answer is shown to it once more. `without`: repairs of its turns that are off
    (repairs/table.py). `who`: the score by which workers are chosen (choice/scores.py), with `@KEY` as it was kept
    (choice/own_predictors.py), "" for the policy's own way.
    `whole_query`: agents read the query, not the subtask that a plan wrote for them. `finalizer`: whether the pool's
    finalizer writes the final answer; None: by default of where it runs (policies/finalizer.py). Those that wrap an
    orchestrator stand in policies/options."""

    samples: int = 1
    constrained: bool | None = None
    recursive: bool = False
    without: tuple[str, ...] = ()
    who: str = ""
    whole_query: bool = False
    finalizer: bool | None = None

    def __str__(self) -> str:
        samples = f"+samples={self.samples}" if self.samples > 1 else ""
        constrained = {None: "", True: "+constrained", False: "+unconstrained"}[self.constrained]
        without = f"+without={','.join(self.without)}" if self.without else ""
        recursive = "+recursive" if self.recursive else ""
        who = f"+who={self.who}" if self.who else ""
        whole_query = "+whole_query" if self.whole_query else ""
        finalizer = {None: "", True: "+finalizer=on", False: "+finalizer=off"}[self.finalizer]
        return samples + constrained + without + who + whole_query + recursive + finalizer


@dataclass(frozen=True, slots=True)
class OrchestratorName:
    """A name in its parts, each "" where it is left out. Of a checkpoint's name (`starter-grpo`, `JOB@STEP`, a
    folder) `policy` is all or most: only the table of policies knows which of the two a name is."""

    policy: str
    worker: str = ""  # the agent that the policy takes, or its seed
    dialect: str = ""
    options: TurnOptions = TurnOptions()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The parts of a name. Never fails: whether there is such an orchestrator is for the pool to say."""
        name, options = split_options(text)
        policy, _, rest = name.partition(":")
        worker, _, dialect = rest.partition(":")
        return cls(policy, worker, dialect, options)

    def __str__(self) -> str:
        return f"{self.policy}:{self.worker}:{self.dialect}".rstrip(":") + str(self.options)


def split_options(text: str) -> tuple[str, TurnOptions]:
    """A name without its options, and these."""
    name, options = text.strip(), TurnOptions()
    while match := _OPTION.search(name):
        name = name[: match.start()]
        if match[1]:
            options = replace(options, samples=min(int(match[1]), MAX_SAMPLES))
        elif match[2]:
            options = replace(options, recursive=True)
        elif match[3]:
            options = replace(options, without=tuple(match[3].split(",")))
        elif match[4]:
            options = replace(options, who=match[4])
        elif match[5]:
            options = replace(options, whole_query=True)
        elif match[6]:
            options = replace(options, finalizer=match[6] == "on")
        else:
            options = replace(options, constrained=not match[7])
    return name, options


def drop_kept_choice(text: str) -> str:
    """A name that chooses workers by the traces of now, in the place of what was kept for one pool."""
    name, options = split_options(text)
    return f"{name}{replace(options, who=options.who.partition('@')[0])}"


def add_options(text: str, options: TurnOptions) -> str:
    """A name with these options in the place of its own; options that are not set leave those of the name."""
    name, old = split_options(text)
    samples = options.samples if options.samples > 1 else old.samples
    constrained = old.constrained if options.constrained is None else options.constrained
    recursive, without = options.recursive or old.recursive, options.without or old.without
    who, whole_query = options.who or old.who, options.whole_query or old.whole_query
    finalizer = old.finalizer if options.finalizer is None else options.finalizer
    return f"{name}{TurnOptions(samples, constrained, recursive, without, who, whole_query, finalizer)}"
