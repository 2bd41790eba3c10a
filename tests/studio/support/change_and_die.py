"""A program that changes a deployment again and again, in a process of its own for each line on stdin, and kills that
with -9 as many seconds after its first change as the line says. Prints the number of the last change that was
acknowledged."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from pool_registry.storage.data_folder import find_home
from pool_registry.storage.upgrade import open_engine
from studio.deployments.states import Candidate
from studio.deployments.store import Deployments

SIDES = {"direct:agent": "direct:other", "direct:other": "direct:agent"}


def change(home: str, name: str, acknowledged: Path) -> None:
    """Try the other side, promote it, and roll back every third time, until killed."""
    deployments = Deployments(open_engine(find_home(home)))
    with acknowledged.open("w") as file:
        while True:
            now = deployments.latest(name)
            other = SIDES[now.state.serving.orchestrator]
            if now.state.candidate is None:
                made = deployments.set_candidate(name, Candidate(orchestrator=other), "ada")
            elif now.number % 3 == 0 and now.back_to is not None:
                made = deployments.roll_back(name, "ada")
            else:
                made = deployments.promote(name, None, "ada", "a trial")
            file.write(f"{made.number}\n")
            file.flush()


def main() -> None:
    home, name = sys.argv[1:]
    acknowledged = Path(home) / f"{name}.acknowledged"
    for line in sys.stdin:
        acknowledged.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            change(home, name, acknowledged)
        while not (acknowledged.exists() and acknowledged.stat().st_size):
            time.sleep(0.005)
        time.sleep(float(line))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print(acknowledged.read_text().splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
