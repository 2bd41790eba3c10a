"""Three pools that are not ours, each from registration to a trained and measured checkpoint.

    python bench/foreign_pools.py [mcp] [openapi] [database] [--tasks 80] [--seed 0] [--home FOLDER] [--out FILE]

`mcp` installs a server from PyPI (business-day-mcp) into an environment of its own and imports its tools as ones that
read only. `openapi` imports a part of REST Countries from its document; a stand-in server on loopback answers.
`database` registers look-ups and free SQL on the books of a harbour, its handbook as documents, and a calculator.

Each pool is registered with `podium pool`, its tasks are made with `podium tasks make`, and the job is that of
*Train on this pool* (trainer/pool_recipe.py), run in this terminal. The untrained reader and the trained checkpoint are
measured by the job itself, on the held-out tasks; after it random plans and ReAct there, and the reference plans on all
tasks, which must all be right. ReAct needs a language model, of which these pools have none: for its episodes the pool
has the small one that ships (SmolLM2-135M). --tasks is small, so that a pool takes about a quarter of an hour on two
cores; the page makes 100. Intervals are 95 %, bootstrapped over tasks. Results are added to those in the file, by pool
and seed.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import re
import sqlite3
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree
from typing import Any
from urllib.parse import unquote, urlsplit

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import choose_home
from trainer.jobs.outcome import describe_outcome
from trainer.jobs.queue import JobStore
from trainer.pool_recipe import build_pool_recipe
from trainer.recipe import dump_recipe
from trainer.results.rows import read_results
from trainer.results.statistics import bootstrap_mean
from trainer.tasks.practice.stored import SOURCE, find_practice_file, list_own_tasks

DATA = Path(__file__).parent / "data" / "foreign_pools"
MCP_PACKAGE = "business-day-mcp==0.1.0"
REFERENCE = "oracle"
AGENT, AGENT_MODEL = "assistant", "starter:smollm2"
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", nargs="*", metavar="POOL", help=f"{', '.join(POOLS)}; default: all")
    parser.add_argument("--tasks", type=int, default=80, help="of each pool, all splits together")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the lessons, and of the adapter")
    parser.add_argument("--home", type=Path, default=Path("foreign-pools"), help="the data folder")
    parser.add_argument("--out", type=Path, default=Path("bench/results/foreign_pools.json"))
    options = parser.parse_args()
    options.home.mkdir(parents=True, exist_ok=True)
    choose_home(str(options.home))  # where this process looks for tasks and results, too
    for name in options.pools or POOLS:
        row = measure_pool(name, options.tasks, options.seed, options.home.resolve())
        rows = write_row(options.out, row)
        print_table(rows)


def measure_pool(name: str, tasks: int, seed: int, home: Path) -> Row:
    """Register a pool, make its tasks, train on them and measure. A pool that is there already is trained on again."""
    began = time.monotonic()
    with POOLS[name](home):
        take_agent_back(home, name)  # a run that was killed may have left it
        if not find_practice_file(name).is_file():
            podium(home, "tasks", "make", "--pool", name, "--count", str(tasks))
        made = time.monotonic()
        own = list_own_tasks(name)
        counts = {split: sum(task.ref.split == split for task in own) for split in ("train", "validation", "test")}
        job = train(home, name, counts["train"], seed)
        trained = time.monotonic()
        scores = {**read_job_scores(home, job), **score_baselines(home, name, len(own))}
    with closing(open_store(choose_home(str(home)))) as store:
        jobs = JobStore(store.engine, store.home)
        outcome = describe_outcome(job, jobs.recipe(job), jobs.folder(job))
        workers = len(store.pools.latest(name).pool.workers)
    return {
        "pool": name,
        "seed": seed,
        "workers": workers,
        "tasks": counts,
        "outcome": outcome.sentence if outcome else "",
        "scores": scores,
        "seconds": {"register and make tasks": round(made - began), "train and evaluate": round(trained - made)},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def podium(home: Path, *arguments: str) -> str:
    """Run a command of ours on a data folder, as a person would, and return what it printed."""
    module = "studio" if arguments[0] == "pool" else "trainer"
    command = [sys.executable, "-m", module, *arguments, "--home", str(home)]
    ended = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=False)
    if ended.returncode:
        raise SystemExit(f"podium {' '.join(arguments)} failed:\n{ended.stdout}")
    print(ended.stdout, end="", flush=True)
    return ended.stdout


def has_pool(home: Path, name: str) -> bool:
    """Whether the data folder has the pool; it is made where it has not."""
    if f'"{name}"' in podium(home, "pool", "list", "--json"):
        return True
    podium(home, "pool", "new", name)
    return False


@contextmanager
def register_mcp(home: Path) -> Iterator[None]:
    """The tools of a server from PyPI, in an environment of its own."""
    environment = home / "mcp-environment"
    if not environment.is_dir():
        venv.create(environment, with_pip=True)
        subprocess.run([environment / "bin" / "pip", "install", "--quiet", MCP_PACKAGE], check=True)
    if not has_pool(home, "mcp"):
        podium(home, "pool", "add", "mcp", "--from", f"mcp:{environment}/bin/business-day-mcp", "--reads-only")
    yield


@contextmanager
def register_openapi(home: Path) -> Iterator[None]:
    """The operations of REST Countries, answered by a server of our own."""
    with serve_countries() as url:
        document = home / "rest_countries.yaml"
        text = (DATA / "rest_countries.yaml").read_text(encoding="utf-8")
        document.write_text(text.replace("https://restcountries.com/v3.1", url), encoding="utf-8")
        if not has_pool(home, "openapi"):
            podium(home, "pool", "add", "openapi", "--from", f"openapi:{document}")
        yield


@contextmanager
def serve_countries() -> Iterator[str]:
    """Serve the countries on loopback at a port that stays the same, and yield the address."""
    with (DATA / "countries.tsv").open(encoding="utf-8") as file:
        countries = [describe_country(row) for row in csv.DictReader(file, delimiter="\t")]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = find_countries(countries, unquote(urlsplit(self.path).path))
            body = json.dumps(found or {"message": "Not Found", "status": 404}).encode()
            self.send_response(200 if found else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{PORT}/v3.1"
    finally:
        server.shutdown()
        server.server_close()


def describe_country(row: dict[str, str]) -> Row:
    """A country as the service writes it."""
    return {
        "name": {"common": row["name"], "official": row["official"]},
        "cca2": row["code"],
        "cca3": row["code3"],
        "capital": [row["capital"]],
        "region": row["region"],
        "subregion": row["subregion"],
        "population": int(row["population"]),
        "area": float(row["area"]),
        "car": {"side": row["car"]},
        "startOfWeek": row["week"],
        "borders": row["borders"].split(",") if row["borders"] else [],
    }


def find_countries(countries: list[Row], path: str) -> list[Row]:
    """The countries that a path such as /v3.1/alpha/PE asks for."""
    *_, kind, value = ["", *path.casefold().strip("/").split("/")]
    keys: dict[str, Callable[[Row], list[str]]] = {
        "alpha": lambda country: [country["cca2"], country["cca3"]],
        "name": lambda country: list(country["name"].values()),
        "capital": lambda country: country["capital"],
    }
    return [country for country in countries if kind in keys and value in map(str.casefold, keys[kind](country))]


@contextmanager
def register_database(home: Path) -> Iterator[None]:
    """Look-ups and free SQL on a SQLite file, a folder of documents, and a calculator."""
    file = home / "harbour.db"
    if not file.is_file():
        with closing(sqlite3.connect(file)) as database:
            database.executescript((DATA / "harbour.sql").read_text(encoding="utf-8"))
    if not has_pool(home, "database"):
        for name, (description, query, parameter, hint) in LOOKUPS.items():
            fixed = ["--set", f"query={query}", "--set", f"parameters={json.dumps({parameter: hint})}"]
            add(home, name, "sql", description, "--set", f"database={file}", *fixed)
        add(home, "books", "sql", "Reads the harbour's books with one SQL query.", "--set", f"database={file}")
        handbook = copytree(DATA / "harbour_handbook", home / "harbour_handbook", dirs_exist_ok=True)
        add(home, "handbook", "documents", "Searches the handbook.", "--set", f"path={handbook}")
        add(home, "calculator", "calculator", "Evaluates an arithmetic expression.")
    yield


def add(home: Path, name: str, kind: str, description: str, *settings: str) -> None:
    podium(home, "pool", "add", "database", name, "--kind", kind, "--description", description, *settings)


BOAT, BERTH = ("boat", "the name of a boat"), ("berth", "a berth such as A1")
LOOKUPS = {
    "berth_of": ("Returns the berth of a boat.", "select berth from boats where name = :boat", *BOAT),
    "owner_of": ("Returns the owner of a boat.", "select owner from boats where name = :boat", *BOAT),
    "daily_fee": (
        "Returns the daily fee of a berth in euros.",
        "select daily_fee from berths where berth = :berth",
        *BERTH,
    ),
    "depth": (
        "Returns the depth of the water at a berth in metres.",
        "select depth_m from berths where berth = :berth",
        *BERTH,
    ),
}
PORT = 18_431
POOLS = {"mcp": register_mcp, "openapi": register_openapi, "database": register_database}


def train(home: Path, name: str, tasks: int, seed: int) -> str:
    """Run the job of *Train on this pool* in this terminal and return its id."""
    recipe = build_pool_recipe(name, tasks)
    assert recipe.sft is not None, "the recipe of the button trains on demonstrations"
    optimizer = recipe.sft.optimizer.model_copy(update={"seed": seed})
    recipe = recipe.model_copy(update={"sft": recipe.sft.model_copy(update={"optimizer": optimizer})})
    file = home / f"{name}.yaml"
    file.write_text(dump_recipe(recipe), encoding="utf-8")
    printed = podium(home, "train", str(file))
    ended = re.search(r"^(\S+): done$", printed, re.MULTILINE)
    if ended is None:
        raise SystemExit(f"the job of {name} did not end well:\n{printed}")
    return ended[1]


def read_job_scores(home: Path, job: str) -> dict[str, Row]:
    """What the job measured: the untrained reader and the trained checkpoint."""
    marks: dict[str, list[bool]] = {}
    for row in read_results(home / "jobs" / job / "results.jsonl"):
        marks.setdefault("trained" if row.orchestrator.startswith(job) else "untrained reader", []).append(row.correct)
    return {name: estimate(values) for name, values in marks.items()}


def score_baselines(home: Path, name: str, count: int) -> dict[str, Row]:
    """Random plans and ReAct on the held-out tasks, and the reference plans on all tasks."""
    marks = [mark for split in ("train", "validation", "test") for mark in score(home, name, REFERENCE, split, count)]
    scores = {
        "reference plans": estimate(marks),
        "random plans": estimate(score(home, name, "random_plan", "test", count)),
    }
    with lend_agent(home, name):
        scores["ReAct, SmolLM2-135M"] = estimate(score(home, name, f"react:{AGENT}", "test", count))
    return scores


def score(home: Path, name: str, orchestrator: str, split: str, count: int) -> list[bool]:
    """Which of a pool's tasks of a split an orchestrator solves."""
    options = ["--pool", name, "--source", f"{SOURCE}{name}", "--level", "0", "--split", split]
    options += ["--tasks", str(count), "--orchestrator", orchestrator, "--concurrency", "4", "--json"]
    return read_marks(podium(home, "evaluate", *options))


@contextmanager
def lend_agent(home: Path, name: str) -> Iterator[None]:
    """A language model in the pool, for as long as the body runs."""
    options = ["--kind", "local_model", "--set", f"model={AGENT_MODEL}"]
    podium(home, "pool", "add", name, AGENT, *options, "--description", "A small language model on this machine.")
    try:
        yield
    finally:
        take_agent_back(home, name)


def take_agent_back(home: Path, name: str) -> None:
    if f'"{AGENT}"' in podium(home, "pool", "show", name, "--json"):
        podium(home, "pool", "remove", name, AGENT)


def read_marks(printed: str) -> list[bool]:
    """How many tasks of an evaluation were right and how many wrong, as marks."""
    summary = json.loads(printed)
    right = round(summary["mean"] * summary["tasks"])
    return [True] * right + [False] * (summary["tasks"] - right)


def estimate(marks: list[bool]) -> Row:
    interval = bootstrap_mean([float(mark) for mark in marks])
    return {"tasks": len(marks), "right": interval.mean, "low": interval.low, "high": interval.high}


def write_row(file: Path, row: Row) -> list[Row]:
    """Put a row in the place of that of the same pool and seed, and return all."""
    rows = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    rows = [other for other in rows if (other["pool"], other["seed"]) != (row["pool"], row["seed"])] + [row]
    file.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return rows


def print_table(rows: list[Row]) -> None:
    print("pool, seed | workers | tasks learnt, held out | who | right on held-out tasks | seconds")
    for row in rows:
        for who, score in row["scores"].items():
            interval = f"{score['right']:.3f} [{score['low']:.2f}, {score['high']:.2f}] of {score['tasks']}"
            counts = f"{row['tasks']['train']}, {row['tasks']['test']}"
            cells = [f"{row['pool']}, {row['seed']}", row["workers"], counts, who, interval]
            print(" | ".join(map(str, [*cells, sum(row["seconds"].values())])))


if __name__ == "__main__":
    main()
