"""A pool with an orchestrator as one Python file that runs where nothing of Podium is installed.

The file names the packages that it needs, in the form that `uv run` reads, and carries Podium's engine at its end. It
holds no path of this machine: workers that need one are left out and named.
"""

from __future__ import annotations

import base64
import io
import re
import textwrap
import zipfile
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.policies.registry import POLICIES, explain_stay, find_policy
from pool_registry.errors import InvalidPool
from pool_registry.extensions.installed_packages import pin_version
from pool_registry.kinds import KINDS
from pool_registry.pool import Pool, export_pool
from pool_registry.portable_pool import Travellers, travellers
from studio.export.engine_files import ENGINE, engine_sources, requirements

PROGRAM = "orchestrate.py"
CHECKPOINT = "checkpoint"  # the folder beside the file that holds the orchestrator's weights
MARK = "# --- Podium's engine: a zip file in base64 ---"
LOCAL_MODEL = KINDS["local_model"].module  # what runs a checkpoint
ZIP_TIME = (2020, 1, 1, 0, 0, 0)  # equal engines make equal files

TEMPLATE = '''# /// script
# requires-python = ">=3.11"
# dependencies = [
{dependencies}
# ]
# ///
"""Asks the pool {pool} through an orchestrator. Made by Podium, whose engine is at the end of this file.

    uv run {file} "your query"

or, with the packages that are listed above installed by `pip install -r requirements.txt`:

    python {file} --requirements > requirements.txt
    python {file} "your query"
{notes}
Keys are read from the variables that the pool names. Use it in your own code with `await ask("...")`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import os
import re
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve()
MARK = {mark!r}


def print_requirements() -> None:
    """Print the packages that this file needs, one a line."""
    head = HERE.read_text(encoding="utf-8").partition("# ///\\n")[0]
    print("\\n".join(re.findall(r'^#   "(.+)",$', head, re.MULTILINE)))


def unpack_engine() -> Path:
    """Put the engine into the cache folder, once, and return where it is."""
    lines = HERE.read_text(encoding="utf-8").rpartition(MARK)[2].splitlines()
    packed = base64.b64decode("".join(line.removeprefix("# ") for line in lines))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podium"
    folder = cache / f"engine-{{hashlib.sha256(packed).hexdigest()[:16]}}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        draft = tempfile.mkdtemp(dir=cache)
        zipfile.ZipFile(io.BytesIO(packed)).extractall(draft)
        try:
            os.rename(draft, folder)
        except OSError:
            if not folder.is_dir():  # another process may have been faster
                raise
    return folder


if __name__ == "__main__" and sys.argv[1:] == ["--requirements"]:
    print_requirements()
    sys.exit()
sys.path.insert(0, str(unpack_engine()))

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, Orchestrator, run_episode
from orchestrator.policies.finalizer import find_finalizer
from orchestrator.policies.registry import make_orchestrator
from pool_registry.actions import as_text
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.pools.luggage import place_luggage
from pool_registry.pool import import_pool

ORCHESTRATOR = {orchestrator}
POOL = r"""
{document}"""


def resolve(name: str, query: str, pool: LivePool) -> Orchestrator:
    """The orchestrator of an episode inside the episode."""
    return make_orchestrator(name, pool)


async def ask(query: str) -> Episode:
    """Run one query to its end: `.final_answer`, `.steps` and `.ended` tell how it went."""
    async with live_pool(place_luggage(import_pool(POOL), HERE.parent)) as pool:
        orchestrator, finalizer = make_orchestrator(ORCHESTRATOR, pool), find_finalizer(ORCHESTRATOR, pool)
        return await run_episode(EpisodeSpec(query), orchestrator, pool, resolve=resolve, finalizer=finalizer)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {{sys.argv[0]}} QUERY")
    episode = asyncio.run(ask(sys.argv[1]))
    for step in episode.steps.values():
        print(f"{{step.step.id}} {{step.step.worker}}: {{step.state}}", file=sys.stderr)
    if episode.ended is None or episode.ended.outcome != "answered":
        sys.exit(f"no answer: {{episode.ended.reason if episode.ended else 'unknown'}}")
    print(as_text(episode.final_answer))


if __name__ == "__main__":
    main()

{mark}
{engine}
'''


def build_python_file(pool: Pool, orchestrator: str, file: str = PROGRAM) -> str:
    """Write the file's text for what of a pool can leave this machine. Raises what `choose_travellers` raises."""
    return write_python_file(choose_travellers(pool, orchestrator), orchestrator, file)


def list_export_files(
    pool: Pool, orchestrator: str, file: str = PROGRAM, take: Collection[str] = ()
) -> dict[str, bytes]:
    """The file, and the files of this machine that the workers `take` need, by their paths beside it. Raises what
    `choose_travellers` raises."""
    portable = choose_travellers(pool, orchestrator, take)
    files = {path: place.read_bytes() for luggage in portable.luggage for path, place in luggage.files}
    return {file: write_python_file(portable, orchestrator, file).encode(), **files}


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """The files as a zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, ZIP_TIME), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def choose_travellers(pool: Pool, orchestrator: str, take: Collection[str] = ()) -> Travellers:
    """What of a pool can leave this machine; of the workers `take` with their files.

    Raises UnknownOrchestrator for names that do not exist, for policies that only replay a task's own plan (the oracle)
    and for a model of the pool that stays here; InvalidPool when every worker does.
    """
    policy = find_policy(orchestrator)
    if policy is not None and policy.needs_reference:
        raise UnknownOrchestrator(f"the {policy.name} knows the suites' own plans only; export another orchestrator")
    portable = travellers(pool, take)
    if pool.enabled and not portable.pool.workers:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in portable.stays)
        raise InvalidPool([("", f"no worker of {pool.name} can leave this machine ({reasons})")])
    if reason := explain_model_stay(orchestrator, pool, portable):
        raise UnknownOrchestrator(f"{reason}; export another orchestrator")
    return portable


def write_python_file(portable: Travellers, orchestrator: str, file: str, checkpoint_folder: str = CHECKPOINT) -> str:
    """Write the file's text for workers that are packed already. The files they take along lie beside it, as does
    `checkpoint_folder`, which a checkpoint is read from."""
    policy = find_policy(orchestrator)
    engine = (module for module in ENGINE if not module.startswith("studio."))
    modules = (*engine, *portable.modules, *([LOCAL_MODEL] if policy is None else []))
    packages = [
        *requirements(modules),
        *map(pin_version, portable.distributions),
        *(pin for luggage in portable.luggage for pin in luggage.packages),
        *_list_policy_packages(orchestrator),
    ]
    name = repr(orchestrator) if policy is not None else f"str(HERE.parent / {checkpoint_folder!r})"
    return TEMPLATE.format(
        pool=portable.pool.name,
        file=file,
        dependencies="\n".join(f'#   "{package}",' for package in dict.fromkeys(packages)),
        notes=_write_notes(orchestrator, policy is None, checkpoint_folder, portable),
        mark=MARK,
        orchestrator=name,
        # Raw text: JSON's backslashes stay as they are, and it never holds three quotes in a row.
        document=export_pool(portable.pool),
        engine=_pack_engine(tuple(modules)),
    )


def list_requirements(program: str) -> list[str]:
    """The packages that an exported file names."""
    return re.findall(r'^#   "(.+)",$', program.partition("# ///\n")[0], re.MULTILINE)


def explain_model_stay(orchestrator: str, pool: Pool, portable: Travellers) -> str:
    """Why the model that orchestrates does not travel with the pool; "" when it does, or is no worker of it."""
    policy = find_policy(orchestrator)
    if policy is None:
        return ""
    if reason := explain_stay(orchestrator):
        return f"{policy.name} {reason} and cannot run elsewhere"
    here = [spec.name for spec in pool.agents()]
    there = {spec.name for spec in portable.pool.agents()}
    named = OrchestratorName.parse(orchestrator).worker
    model = named if policy.takes_agent and named else here[0] if policy.takes_agent and here else ""
    if model in here and model not in there:
        return f"the model that orchestrates, {model}, stays here: {dict(portable.stays).get(model, '')}"
    needs_agents = policy.takes_agent or policy.name in ("pipeline", "cascade")
    return "every model of the pool stays here" if needs_agents and here and not there else ""


def _list_policy_packages(orchestrator: str) -> list[str]:
    policy = find_policy(orchestrator)
    package = POLICIES.package_of(policy.name) if policy is not None else ""
    return [pin_version(package)] if package else []


def _write_notes(orchestrator: str, is_checkpoint: bool, folder: str, portable: Travellers) -> str:
    notes = []
    if is_checkpoint and folder != ".":
        name = orchestrator.rstrip("/").rpartition("/")[2]
        notes.append(
            f"The weights of the orchestrator belong into the folder {folder} beside this file; this writes them: "
            f"podium export checkpoint {name} --out {folder}"
        )
    if portable.stays:
        notes.append("Left out: " + "; ".join(f"{name} ({reason})" for name, reason in portable.stays) + ".")
    lines = "\n\n".join(textwrap.fill(note.replace("\\", "/").replace('"""', "'''"), 110) for note in notes)
    return f"\n{lines}\n" if lines else ""


@cache
def _pack_engine(modules: tuple[str, ...]) -> str:
    """The sources that the modules reach, zipped, as comment lines."""
    packed = zip_files({path: Path(source).read_bytes() for path, source in engine_sources(modules).items()})
    return "\n".join(f"# {line}" for line in textwrap.wrap(base64.b64encode(packed).decode(), 110))
