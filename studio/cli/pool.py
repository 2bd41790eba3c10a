"""`podium pool ...`: list, show, make, fill, check and try pools without the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pool_registry.errors import InvalidPool, PoolNotFound
from studio.cli.options import MAX_VERSION, HomeOption, JsonOption, open_prepared_store
from studio.cli.sources import (
    ALLOW_FORMS,
    PASTE_HELP,
    SOURCES,
    AddCommand,
    SourceOptions,
    read_pasted,
    read_permissions,
    read_source,
)
from studio.cli.worker_settings import HELP, apply_limit_settings, apply_settings

if TYPE_CHECKING:
    from orchestrator.traces.store import Store

commands = typer.Typer(help="Pools: list, show, make, fill, check and try them.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the pool.")]
WorkerName = Annotated[str, typer.Argument(help="Name of the worker.")]
KeysToKeyring = Annotated[
    bool, typer.Option("--keys-to-keyring", help="Move keys that are written out into this system's keyring.")
]
Settings = Annotated[list[str] | None, typer.Option("--set", help=HELP)]
Send = Callable[..., Mapping[str, Any]]


@contextmanager
def open_commands(home: str | None, pool: str = "") -> Iterator[Send]:
    """The commands of the Pool page as a function, which raises InvalidPool with every problem."""
    from studio.pages.pool.commands import PoolCommands
    from studio.runtime import Runtime

    with open_prepared_store(home) as store:
        runtime = Runtime(store)
        page = PoolCommands(runtime)

        def send(action: str, **fields: Any) -> Mapping[str, Any]:
            if pool and action not in ("create", "import"):
                _check_pool(store, pool)
            reply = page.run(action, {"pool": pool, **fields})
            if not reply["ok"]:
                raise InvalidPool(reply["problems"])
            return reply

        try:
            yield send
        finally:
            runtime.close()


def _check_pool(store: Store, pool: str) -> None:
    """Raises PoolNotFound, which says which pools there are and how to make this one."""
    try:
        store.pools.latest(pool)
    except PoolNotFound as error:
        raise PoolNotFound(f"{error}; make it with: podium pool new {pool}") from error


@commands.command("list")
def list_pools(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """List the pools with their current version and number of workers."""
    with open_prepared_store(home) as store:
        stored = [store.pools.latest(name) for name in store.pools.names()]
    rows = [{"name": row.pool.name, "version": row.version, "workers": len(row.pool.workers)} for row in stored]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
    else:
        typer.echo("\n".join(f"{row['name']}: version {row['version']}, {row['workers']} workers" for row in rows))


@commands.command("show")
def show_pool(
    pool: Name,
    version: Annotated[int | None, typer.Option(help="Default: the current one.", min=1, max=MAX_VERSION)] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show a pool's workers. With --json the pool's file, which `pool import` reads: keep it in git."""
    from pool_registry.kinds import kind_of
    from pool_registry.pool import export_pool

    with open_prepared_store(home) as store:
        stored = store.pools.get(pool, version) if version else store.pools.latest(pool)
    if as_json:
        typer.echo(export_pool(stored.pool), nl=False)
        return
    typer.echo(f"{pool}: version {stored.version}, {len(stored.pool.workers)} workers")
    for spec in stored.pool.workers:
        marks = [mark for mark, holds in (("judge", spec.judge_only), ("off", not spec.enabled)) if holds]
        facts = ", ".join([kind_of(spec).role, spec.kind, *marks])
        summary = " ".join(spec.description.split("\n\n")[0].split())  # without what a docstring tells further down
        typer.echo(f"  {spec.name} ({facts}): {summary}")


@commands.command("new")
def new_pool(
    pool: Name,
    copy_of: Annotated[str, typer.Option(help="Begin with the workers of this pool.")] = "",
    home: HomeOption = None,
) -> None:
    """Make a pool."""
    with open_commands(home, pool) as send:
        typer.echo(send("create", name=pool, copy_of=copy_of or None)["message"])


@commands.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="A pool's file, as `pool show --json` and the page write it.")],
    name: Annotated[str, typer.Option(help="Another name for it.")] = "",
    keys_to_keyring: KeysToKeyring = False,
    home: HomeOption = None,
) -> None:
    """Take a pool from a file. What wants keys, programs, files or private addresses arrives switched off."""
    try:
        content = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidPool([("", f"{file} cannot be read: {error}")]) from error
    with open_commands(home) as send:
        typer.echo(send("import", text=_move_keys(content, name, keys_to_keyring), name=name)["message"])


def _move_keys(content: str, pool: str, to_keyring: bool) -> str:
    """A pool's file with references in place of its keys. Raises InvalidPool where a key may not be moved."""
    try:
        document = json.loads(content)
        for worker in document["workers"]:
            worker["config"] = _refer_to_keys(pool or document["name"], worker, to_keyring)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return content  # no pool's file: the import says what is wrong with it
    return json.dumps(document)


def _refer_to_keys(pool: str, worker: Mapping[str, Any], to_keyring: bool, is_new: bool = True) -> Any:
    """The configuration of a worker with references in place of its keys, which go into the keyring; those of a new
    worker replace none there.

    Raises InvalidPool, which says how each key is stored, unless they may go there, and SecretNotFound.
    """
    from pool_registry import secrets
    from pool_registry.literal_keys import move_literal_keys

    refused: list[tuple[str, str]] = []

    def keep(name: str, key: str) -> str:
        if to_keyring:
            reference = secrets.keep(name, key, is_new=is_new)
            typer.echo(f"moved a key to {reference}", err=True)
            return reference
        store = f"{secrets.write_store_command(name)}, and write keyring:{name} in its place"
        refused.append((worker["name"], f"a key is never stored in a pool. Repeat with --keys-to-keyring, or: {store}"))
        return f"keyring:{name}"

    config = move_literal_keys(worker.get("config", {}), f"{pool}_{worker['name']}", keep)
    if refused:
        raise InvalidPool(refused)
    return config


@commands.command("add", cls=AddCommand)
def add_worker(
    pool: Name,
    worker: Annotated[str, typer.Argument(help="Name of the worker; with --from the only one to take.")] = "",
    kind: Annotated[str, typer.Option(help="Its kind, such as sql, http, chat or calculator.")] = "",
    description: Annotated[str, typer.Option(help="What it does: the orchestrator reads this.")] = "",
    settings: Settings = None,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help=f"{SOURCES}: what it offers.",
        ),
    ] = "",
    paste: Annotated[str, typer.Option(metavar="[FILE|-]", help=PASTE_HELP)] = "",
    key: Annotated[str, typer.Option(help="The key of a source or a text, as env:NAME or keyring:NAME.")] = "",
    server: Annotated[str, typer.Option(help="Where the operations or tools are called: a URL.")] = "",
    env: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE for a program; a key as NAME=env:NAME. May be repeated.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(help="'NAME: VALUE' for an address; a key as 'NAME: env:NAME'. May be repeated.")
    ] = None,
    name: Annotated[str, typer.Option(help="What it is called: the server before its tools, or the worker.")] = "",
    private: Annotated[bool, typer.Option("--private", help="It may reach private addresses.")] = False,
    reads_only: Annotated[
        bool, typer.Option("--reads-only", help="Its calls change nothing outside: trials may make them.")
    ] = False,
    as_you: Annotated[
        bool, typer.Option("--as-you", help="Functions run outside the sandbox, with your rights and environment.")
    ] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option(help=f"What functions may reach in the sandbox: {ALLOW_FORMS}. May be repeated."),
    ] = None,
    python: Annotated[
        str, typer.Option(help="The interpreter of functions and agents whose packages Podium has not: a path.")
    ] = "",
    keys_to_keyring: KeysToKeyring = False,
    home: HomeOption = None,
) -> None:
    """Add a worker of any kind, or everything that a source or a pasted text offers."""
    promised = ["effects=none"] if reads_only else []
    settings = [*promised, *(settings or [])]
    options = SourceOptions(key, server, tuple(env or ()), tuple(header or ()), name, private, python)
    with open_commands(home, pool) as send:
        if source:
            fields = {**read_source(source, options), **read_permissions(as_you, allow or [])}
            _add_offers(send, pool, worker, send("look", **fields)["offers"], settings, keys_to_keyring)
            return
        if paste:
            reply = send("look_pasted", **read_pasted(paste, options), to_keyring=keys_to_keyring)["pasted"]
            for note in reply["notes"]:
                typer.echo(note, err=True)
            _add_offers(send, pool, worker, reply["offers"], settings, keys_to_keyring)
            return
        options.refuse_all("--from or --paste")
        if not kind:
            raise InvalidPool([("kind", f"say which with --kind, or take workers with --paste or --from {SOURCES}")])
        document = apply_settings({"name": worker, "kind": kind, "description": description, "config": {}}, settings)
        document["config"] = _refer_to_keys(pool, document, keys_to_keyring)
        typer.echo(send("save_worker", worker=document)["message"])


def _add_offers(
    send: Send, pool: str, worker: str, offers: Sequence[Mapping[str, Any]], settings: Sequence[str], to_keyring: bool
) -> None:
    """Add what a source offers, or the one `worker` of it. Raises InvalidPool where nothing of it can be added."""
    chosen = [offer for offer in offers if worker in ("", offer["spec"]["name"])]
    specs = [apply_settings(offer["spec"], settings) for offer in chosen if not offer["problem"]]
    for offer in chosen:
        if offer["problem"]:
            typer.echo(f"left out: {offer['spec']['name']}: {offer['problem']}", err=True)
        for note in offer["mended"]:
            typer.echo(f"changed: {offer['spec']['name']}: {note}", err=True)
    if not specs:
        names = ", ".join(offer["spec"]["name"] for offer in offers)
        raise InvalidPool([("", f"nothing of this can be added; it has: {names or 'nothing'}")])
    specs = [{**spec, "config": _refer_to_keys(pool, spec, to_keyring)} for spec in specs]
    typer.echo(send("add_workers", workers=specs)["message"])


@commands.command("set")
def set_fields(
    pool: Name,
    worker: Annotated[
        str, typer.Argument(help="Name of the worker. Without: limits of the pool itself, such as finalizer=NAME.")
    ] = "",
    settings: Settings = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask about what it newly wants; it is printed.")] = False,
    keys_to_keyring: KeysToKeyring = False,
    home: HomeOption = None,
) -> None:
    """Change fields of a worker, or limits of the pool. What a worker newly wants of this machine or of you is shown
    and has to be confirmed."""
    from pool_registry.wants import list_new_wants
    from studio.pages.pool.forms import parse_worker

    if not settings:
        raise InvalidPool([("", "nothing to change: give at least one --set FIELD=VALUE")])
    with open_commands(home, pool) as send, open_prepared_store(home) as store:
        stored = store.pools.latest(pool).pool
        if not worker:
            limits = apply_limit_settings(stored.limits, settings)
            typer.echo(send("save_limits", limits=limits, based_on=stored.hash)["message"])
            return
        before = stored.worker(worker)
        document = apply_settings(before.model_dump(mode="json"), settings)
        document["config"] = _refer_to_keys(pool, document, keys_to_keyring, is_new=False)
        wants = list_new_wants(parse_worker(document), before)
        _confirm(worker, wants, "Change it?", yes)
        edit = {"worker": document, "replacing": worker, "based_on": stored.hash, "confirmed": wants}
        typer.echo(send("save_worker", **edit)["message"])


def _confirm(worker: str, wants: Sequence[str], question: str, yes: bool) -> None:
    """Show what a worker wants, and end the command unless a person agrees."""
    for want in wants:
        typer.echo(f"{worker} {want}", err=True)
    if wants and not yes:
        typer.confirm(question, abort=True, err=True)


@commands.command("remove")
def remove_worker(pool: Name, worker: WorkerName, home: HomeOption = None) -> None:
    """Take a worker out of a pool."""
    with open_commands(home, pool) as send:
        typer.echo(send("remove_worker", name=worker)["message"])


@commands.command("switch")
def switch_worker(
    pool: Name,
    worker: WorkerName,
    on: Annotated[bool, typer.Option("--on/--off")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask about what it wants; it is printed.")] = False,
    home: HomeOption = None,
) -> None:
    """Switch a worker on or off. Before one is switched on, what it wants is shown and has to be confirmed."""
    from pool_registry.wants import list_wants

    with open_prepared_store(home) as store:
        wants = list_wants(store.pools.latest(pool).pool.worker(worker)) if on else []
    _confirm(worker, wants, "Switch it on?", yes)
    with open_commands(home, pool) as send:
        typer.echo(send("set_enabled", name=worker, enabled=on, confirmed=wants)["message"])


@commands.command("check")
def check_pool(pool: Name, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Probe every enabled worker. Exit code 1 when one is not well."""
    with open_prepared_store(home) as store:
        names = [spec.name for spec in store.pools.latest(pool).pool.switched_on]
    with open_commands(home, pool) as send:
        health = {name: send("check_worker", name=name)["health"] for name in names}
    if as_json:
        typer.echo(json.dumps(health, indent=1, ensure_ascii=False))
    else:
        typer.echo("\n".join(f"{name}: {row['text']}" for name, row in health.items()))
    if not all(row["ok"] for row in health.values()):
        raise typer.Exit(1)


@commands.command("test")
def call_worker(
    pool: Name,
    worker: WorkerName,
    arguments: Annotated[str, typer.Option(help="A JSON object. Default: the kind's sample.")] = "",
    seen: Annotated[str, typer.Option(help="The output of an earlier step that it may see.")] = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Call one worker. Exit code 1 when the call fails."""
    with open_prepared_store(home) as store:
        spec = store.pools.latest(pool).pool.worker(worker).model_dump(mode="json")
    with open_commands(home, pool) as send:
        chosen = _read_object(arguments) if arguments else send("try_worker", worker=spec)["sample"]
        observation = send("try_worker", worker=spec, arguments=chosen, seen=seen)["observation"]
    typer.echo(json.dumps(observation, indent=1, ensure_ascii=False) if as_json else _write_observation(observation))
    if observation["status"] != "OK":
        raise typer.Exit(1)


PoolOption = Annotated[str, typer.Option("--pool", help="Name of the pool.")]
AllowOption = Annotated[
    list[str] | None,
    typer.Option("--allow", help="A tool that may be called although a call may have effects; repeat."),
]


@commands.command("value")
def value_worker(
    worker: WorkerName,
    pool: PoolOption,
    minutes: Annotated[float, typer.Option(help="Time for all tasks.", min=0.05, max=60)] = 1.0,
    orchestrator: Annotated[
        str, typer.Option(help="Who does the tasks; oracle replays reference plans. Default: as on the Run page.")
    ] = "",
    allow: AllowOption = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Say what a worker brings: the same tasks with and without it, and how score, time and cost change."""
    with open_commands(home, pool) as send:
        reply = send(
            "value_worker", name=worker, seconds=max(1, minutes * 60), orchestrator=orchestrator, allowed=allow or []
        )
    value = reply["value"]
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False) if as_json else _write_value(value))


@commands.command("describe")
def describe_worker(
    worker: WorkerName,
    pool: PoolOption,
    count: Annotated[int, typer.Option(help="Calls to make at most.", min=1, max=100)] = 12,
    agent: Annotated[str, typer.Option(help="An agent of the pool that words strengths and weaknesses.")] = "",
    allow: AllowOption = None,
    save: Annotated[bool, typer.Option("--save", help="Take the proposal as the worker's description.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Propose a description of a worker from calls of it: success, latency, price, failures."""
    with open_commands(home, pool) as send:
        proposal = send("describe_worker", name=worker, count=count, agent=agent, allowed=allow or [])["proposal"]
        if as_json:
            typer.echo(json.dumps(proposal, indent=1, ensure_ascii=False))
        else:
            notes = [f"note: {proposal['note']}"] if proposal["note"] else []
            typer.echo("\n".join([proposal["proposed"], *notes]))
        if save and proposal["facts"]:
            edit = {"name": worker, "description": proposal["proposed"], "based_on": proposal["based_on"]}
            typer.echo(send("set_description", **edit)["message"], err=as_json)


@commands.command("judge")
def judge_verdicts(
    worker: WorkerName,
    pool: PoolOption,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            help='A file of your verdicts, such as {"query": ..., "answer": ..., "expected": ..., "right": true} in '
            "each line; expected may be left out. Default: those that you gave on runs of the pool."
        ),
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Measure how far a judge agrees with your own verdicts. Figures that rest on it say so from then on."""
    from trainer.evaluation.judging import read_verdicts

    given = [verdict.model_dump(mode="json") for verdict in read_verdicts(verdicts)] if verdicts else []
    with open_commands(home, pool) as send:
        reply = send("measure_judge", name=worker, verdicts=given)
    typer.echo(json.dumps(reply["agreement"], indent=1) if as_json else reply["message"])


def _write_value(value: Mapping[str, Any]) -> str:
    rows = [
        f"{row['name']}: {row['with_it']:.3g} with, {row['without_it']:.3g} without, "
        f"{row['difference']:+.3g} (95 %: {row['low']:+.3g} to {row['high']:+.3g})"
        for row in (value["changes"] if value["pairs"] else ())
    ]
    done = f"{value['pairs']} of {value['tasks']} tasks by {value['orchestrator_label']}, {value['called']} called it"
    return "\n".join([value["verdict"], done, *rows, *value["notes"]])


def _read_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidPool([("", f"--arguments is not JSON: {error}")]) from error
    if not isinstance(value, dict):
        raise InvalidPool([("", '--arguments takes an object, such as \'{"city": "Oslo"}\'')])
    return value


def _write_observation(observation: Mapping[str, Any]) -> str:
    if observation["error"]:
        return f"{observation['status']}: {observation['error']}"
    return str(observation["value"])
