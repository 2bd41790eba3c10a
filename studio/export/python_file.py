"""A pool with an orchestrator as one plain Python file: the packages alone run it, without studio or database."""

from __future__ import annotations

from orchestrator.checkpoints import find_checkpoint
from orchestrator.errors import UnknownOrchestrator
from orchestrator.policies.registry import POLICIES, find_policy
from pool_registry.pool import Pool, export_pool

TEMPLATE = '''"""Asks the pool {pool} through an orchestrator. Made by Podium.

    pip install podium-studio
    python {file} "your query"

Keys are read from the variables that the pool names. Use it in your own code with `await ask("...")`.
"""

from __future__ import annotations

import asyncio
import sys

from orchestrator.policies.registry import make_orchestrator
from orchestrator.engine.episode_loop import EpisodeSpec, Orchestrator, run_episode
from orchestrator.engine.episode import Episode
from pool_registry.actions import as_text
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.pool import import_pool

ORCHESTRATOR = {orchestrator!r}{note}
POOL = r"""
{document}"""


def resolve(name: str, query: str, pool: LivePool) -> Orchestrator:
    """The orchestrator of an episode inside the episode."""
    return make_orchestrator(name, pool)


async def ask(query: str) -> Episode:
    """Run one query to its end: `.answer`, `.steps` and `.ended` tell how it went."""
    async with live_pool(import_pool(POOL)) as pool:
        return await run_episode(EpisodeSpec(query), make_orchestrator(ORCHESTRATOR, pool), pool, resolve=resolve)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {{sys.argv[0]}} QUERY")
    episode = asyncio.run(ask(sys.argv[1]))
    for step in episode.steps.values():
        print(f"{{step.step.id}} {{step.step.worker}}: {{step.state}}", file=sys.stderr)
    if episode.ended is None or episode.ended.outcome != "answered":
        sys.exit(f"no answer: {{episode.ended.reason if episode.ended else 'unknown'}}")
    print(as_text(episode.answer))


if __name__ == "__main__":
    main()
'''


def build_python_file(pool: Pool, orchestrator: str, file: str = "orchestrate.py") -> str:
    """Write the file's text. Raises UnknownOrchestrator for names that do not exist and for policies that only replay a
    task's own plan (the oracle)."""
    policy = find_policy(orchestrator)
    if policy is not None and policy.needs_reference:
        raise UnknownOrchestrator(f"the {policy.name} knows the suites' own plans only; export another orchestrator")
    note = ""
    if policy is not None:
        package = POLICIES.package_of(policy.name)
        note = f"  # of the package {package}" if package else ""
    else:
        folder, _ = find_checkpoint(orchestrator)
        note = f"  # a checkpoint of this data folder ({folder.name}); elsewhere give the folder of its export"
    # Raw text: JSON's backslashes stay as they are, and it never holds three quotes in a row.
    return TEMPLATE.format(pool=pool.name, orchestrator=orchestrator, file=file, note=note, document=export_pool(pool))
