"""Many simulated episodes from the command line: what holds of each, and that a seed gives one trace.

    python -m tests.orchestrator.simulate --seeds 100000 [--first 0] [--processes 2]

Prints every seed of which something does not hold, and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.orchestrator.support.simulated_episode import check_seed

SHARE = 500  # seeds that a process takes at a time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    started = time.monotonic()
    shares = [
        range(at, min(at + SHARE, options.first + options.seeds))
        for at in range(options.first, options.first + options.seeds, SHARE)
    ]
    failures = 0
    with ProcessPoolExecutor(options.processes) as processes:
        for problems in processes.map(check_seeds, shares):
            failures += len(problems)
            for seed, problem in problems:
                print(f"seed {seed}: {problem}", flush=True)
    print(f"{options.seeds} seeds, {failures} failures, {time.monotonic() - started:.0f} s")
    sys.exit(1 if failures else 0)


def check_seeds(seeds: range) -> list[tuple[int, str]]:
    """The seeds of which something does not hold, with what."""
    logging.disable(logging.CRITICAL)  # retries are logged
    return [(seed, problem) for seed in seeds for problem in check_seed(seed)]


if __name__ == "__main__":
    main()
