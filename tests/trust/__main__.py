"""Try to break every promise, and print what came of it as one table.

    python -m tests.trust [PROMISE ...] [--quick | --share 0.1] [--json FILE] [--document]

PROMISE: names from tests/trust/promises.py; without one, all. `--quick` makes as few trials as CI does, `--share` a
share of the full counts. `--json` keeps the outcomes in a file, also those of promises that are tried another time, so
that a long run can be made in parts. `--document` puts the table into docs/reliability.md. Exits with 1 when a promise
was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scipy.stats import beta

from tests.trust import record_trials, trials
from tests.trust.promises import PROMISES, Promise

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "reliability.md"
MARKS = ("<!-- table: python -m tests.trust --document -->\n", "<!-- end of the table -->\n")
LEVEL = 0.95
LIMIT_S = 3600  # for the tests of one promise
ALL_MINUTES = 30  # in which all promises are to be tried on two quiet cores


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the trials of one promise came to, and the seconds by the clock and of processors. `problem` says why they
    could not be made."""

    promise: Promise
    trials: int
    failures: int
    seconds: float
    failed_tests: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    problem: str = ""
    processor_s: float = 0.0

    @property
    def upper_bound(self) -> float:
        """The share of failures that is not exceeded, with 95 % confidence, where trials are random."""
        return bound_failures(self.failures, self.trials)

    @property
    def is_broken(self) -> bool:
        return bool(self.failures or self.problem)


def bound_failures(failures: int, trials: int) -> float:
    """The one-sided upper Clopper-Pearson bound at 95 %; without failures about 3 / trials."""
    return 1.0 if failures >= trials else float(beta.ppf(LEVEL, failures + 1, trials - failures))


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_arguments(arguments)
    chosen = [promise for promise in PROMISES if not options.promises or promise.name in options.promises]
    started = time.monotonic()
    outcomes = try_promises(chosen, options.processes, options.quick, options.share)
    total = describe_total(outcomes, time.monotonic() - started)
    if options.json:
        outcomes = keep_outcomes(options.json, outcomes)
    table = format_table(outcomes)
    print(f"{table}\n\n{total}")
    if options.document:
        write_document(table)
    return int(any(outcome.is_broken for outcome in outcomes))


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.trust", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [promise.name for promise in PROMISES]
    parser.add_argument("promises", nargs="*", metavar="PROMISE", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="as few trials as CI makes")
    parser.add_argument("--share", type=float, default=1.0, help="of the full counts, never less than --quick makes")
    parser.add_argument(
        "--processes", type=int, default=3, help="promises that are tried at a time, beside one that waits"
    )
    parser.add_argument("--json", type=Path, help="a file that keeps the outcomes")
    parser.add_argument("--document", action="store_true", help="put the table into docs/reliability.md")
    options = parser.parse_args(arguments)
    if unknown := set(options.promises) - set(names):
        parser.error(f"there is no promise {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    return options


def try_promises(promises: Sequence[Promise], processes: int, quick: bool, share: float) -> list[Outcome]:
    """Try so many promises at a time, and beside them one that mostly waits. What is built of the files that ship, such
    as an index, is built once for all of them."""
    with (
        tempfile.TemporaryDirectory(prefix="podium-trust-") as built,
        ThreadPoolExecutor(processes) as busy,
        ThreadPoolExecutor(1) as idle,
    ):
        try_one = partial(report_promise, count=partial(choose_count, quick=quick, share=share), built=built)
        tries = [(idle if promise.waits else busy).submit(try_one, promise) for promise in promises]
        return [outcome.result() for outcome in tries]


def choose_count(promise: Promise, quick: bool, share: float) -> int:
    """How many trials its tests are asked for; 0 where they choose by themselves."""
    return promise.quick if quick else max(promise.quick, round(promise.full * share))


def report_promise(promise: Promise, count: Callable[[Promise], int], built: str) -> Outcome:
    """Try a promise, and say on standard error what came of it."""
    outcome = try_promise(promise, count(promise), built)
    said = outcome.problem or f"{outcome.trials:,} trials, {outcome.failures:,} failures"
    minutes = f"{format_minutes(outcome.seconds)}, {format_minutes(outcome.processor_s)} of processors"
    print(f"{promise.name}: {said}, {minutes}", file=sys.stderr, flush=True)
    return outcome


def try_promise(promise: Promise, count: int, built: str) -> Outcome:
    """Run the tests of a promise in a process of their own."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trials.json"
        variables = {
            trials.VARIABLE: str(count) if count else "",
            record_trials.VARIABLE: str(file),
            "PODIUM_BUILT": built,
        }
        plugin = ["-p", "no:cacheprovider", "-p", "tests.trust.record_trials"]
        command = [sys.executable, "-m", "pytest", *plugin, "-k", promise.only, *promise.tests]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            return Outcome(promise, 0, 0, LIMIT_S, problem=f"not done within {LIMIT_S} s")
        seconds = time.monotonic() - started
        if not file.exists() or done.returncode not in (0, 1):
            print(done.stdout[-3000:], done.stderr[-3000:], file=sys.stderr)
            return Outcome(promise, 0, 0, seconds, problem=f"pytest ended with {done.returncode}")
        record = json.loads(file.read_text(encoding="utf-8"))
    if record["failures"]:
        print(done.stdout[-3000:], file=sys.stderr)
    return read_outcome(promise, {**record, "seconds": seconds, "problem": ""})


def format_table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a Markdown table, with what was skipped below it."""
    lines = [
        "| promise | one trial | chosen | trials | failures | upper bound at 95 % | time |",
        "|---|---|---|---|---|---|---|",
    ]
    for outcome in outcomes:
        promise = outcome.promise
        bound = format_bound(outcome) if promise.choice == "random" and outcome.trials else "–"
        tried = f"{outcome.trials:,}" if outcome.trials else "not run"
        failures = outcome.problem or (f"{outcome.failures:,}" if outcome.trials else "–")
        minutes = format_minutes(outcome.seconds) if outcome.trials else "–"
        cells = (promise.says, promise.trial, promise.choice, tried, failures, bound, minutes)
        lines.append(f"| {' | '.join(cells)} |")
    notes = [note for outcome in outcomes for note in describe_skipped(outcome)]
    notes += [f"- {outcome.promise.name}: failed: {test}" for outcome in outcomes for test in outcome.failed_tests]
    return "\n".join([*lines, *(["", *notes] if notes else [])])


def describe_skipped(outcome: Outcome) -> list[str]:
    """What was left out here, and why, in a line for each reason."""
    reasons = Counter(line.rpartition(": ")[2] for line in outcome.skipped)
    return [f"- {outcome.promise.name}: {count} not run here: {reason}" for reason, count in reasons.items()]


def describe_total(outcomes: Sequence[Outcome], seconds: float) -> str:
    """How many promises hold, which were not tried, and how long all of them took."""
    held = [outcome for outcome in outcomes if outcome.trials and not outcome.is_broken]
    untried = [outcome.promise.name for outcome in outcomes if not outcome.trials and not outcome.problem]
    apart = format_minutes(sum(outcome.seconds for outcome in outcomes))
    left_out = f" Not tried here, so not held: {', '.join(untried)}." if untried else ""
    limit = f" All are to be tried within {ALL_MINUTES} min." if len(outcomes) == len(PROMISES) else ""
    return (
        f"{len(held)} of {len(outcomes)} promises hold. {format_minutes(seconds)}, {apart} one by one.{limit}{left_out}"
    )


def format_minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"


def format_bound(outcome: Outcome) -> str:
    """The bound in hundredths of a percent."""
    return f"{outcome.upper_bound:.2%}" if outcome.upper_bound >= 1e-4 else "< 0.01%"


def keep_outcomes(file: Path, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Write the outcomes to a file, beside those in it of other promises. Returns all, in the order of the table."""
    rows = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    kept = {row["promise"]["name"]: row for row in rows}
    kept |= {each.promise.name: {**asdict(each), "upper_bound": each.upper_bound} for each in outcomes}
    present = [promise for promise in PROMISES if promise.name in kept]
    file.write_text(json.dumps([kept[promise.name] for promise in present], indent=1), encoding="utf-8")
    return [read_outcome(promise, kept[promise.name]) for promise in present]


def read_outcome(promise: Promise, row: Mapping[str, Any]) -> Outcome:
    failed, skipped = tuple(row["failed_tests"]), tuple(row["skipped"])
    seconds, processor_s = row["seconds"], row.get("processor_s", 0.0)
    return Outcome(promise, row["trials"], row["failures"], seconds, failed, skipped, row["problem"], processor_s)


def write_document(table: str) -> None:
    """Replace the table of docs/reliability.md."""
    before, rest = DOCUMENT.read_text(encoding="utf-8").split(MARKS[0])
    _, after = rest.split(MARKS[1])
    DOCUMENT.write_text(f"{before}{MARKS[0]}\n{table}\n\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
