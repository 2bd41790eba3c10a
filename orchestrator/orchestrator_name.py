"""How orchestrators are called: `policy`, `policy:worker` or `policy:worker:dialect`, or the name of a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class OrchestratorName:
    """A name in its parts, each "" where it is left out. Of a checkpoint's name (`starter-grpo`, `JOB@STEP`, a
    folder) `policy` is all or most: only the table of policies knows which of the two a name is."""

    policy: str
    worker: str = ""  # the agent that the policy takes, or its seed
    dialect: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The parts of a name. Never fails: whether there is such an orchestrator is for the pool to say."""
        policy, _, rest = text.strip().partition(":")
        worker, _, dialect = rest.partition(":")
        return cls(policy, worker, dialect)

    def __str__(self) -> str:
        return f"{self.policy}:{self.worker}:{self.dialect}".rstrip(":")
