"""Several processes that train together, one for each GPU: torch's elastic agent starts them, accelerate joins them.

The job's own process collects demonstrations, starts the ranks, follows them and evaluates; it trains nothing itself.
The first rank alone writes: checkpoints, figures, episodes, the log. What it decides or samples it sends to the others.
A rank that dies takes the others along: the job fails, and a resume goes on from its last complete checkpoint.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from trainer.errors import SpendCapReached, TrainingFailed

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

log = logging.getLogger(__name__)
T = TypeVar("T")
PATIENCE = timedelta(days=2)  # the other ranks wait while the first one samples episodes or measures a checkpoint
WATCH_S = 0.5
LOOPBACK = "127.0.0.1"
SPENT = "max_cost"  # the code of a rank that has spent what the recipe allows


class RankEnd(BaseModel):
    """How a rank ended. `code` and `message` say why it failed; both are empty where it did not."""

    finished: bool = False
    code: str = ""
    message: str = ""


def run_ranks(job: str, home: Path, stage: str, part: int, count: int) -> bool:
    """Train a part of a stage in `count` processes. Returns False when they were stopped on request.

    Raises TrainingFailed or SpendCapReached with what ended them.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    # Its warning that no signal is handled in a thread: the ranks see for themselves when this process ends.
    logging.getLogger("torch.distributed.elastic.multiprocessing.api").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="podium-ranks-") as folder:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=count,
            run_id=job,
            rdzv_backend="c10d",
            rdzv_endpoint=f"{LOOPBACK}:0",
            local_addr=LOOPBACK,
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(log_dir=folder),
        )
        parent = ("--home", str(home), "--parent", str(os.getpid()))
        command = ("-m", "trainer", "rank", job, stage, "--round", str(part), "--ends", folder, *parent)
        log.info("%s in %d processes", stage, count)
        try:
            # In a thread, or the agent would take SIGTERM, which asks this job for a checkpoint, as its own end.
            with ThreadPoolExecutor(1) as agent:
                agent.submit(elastic_launch(config, sys.executable), *command).result()
        except ChildFailedError as failure:
            raise explain_failure(failure, _read_ends(Path(folder), count), count) from failure
        return all(end.finished for end in _read_ends(Path(folder), count))


def _read_ends(folder: Path, count: int) -> list[RankEnd]:
    """How the ranks ended, as far as they could tell."""
    files = [_end_file(folder, rank) for rank in range(count)]
    return [RankEnd.model_validate_json(file.read_text(encoding="utf-8")) for file in files if file.exists()]


def explain_failure(failure: ChildFailedError, ends: Sequence[RankEnd], count: int) -> Exception:
    """The first cause: a rank that was killed, before what the others then miss."""
    for rank, one in sorted(failure.failures.items()):
        if one.exitcode < 0 and -one.exitcode != signal.SIGTERM:  # with SIGTERM the agent ends the others
            return TrainingFailed(
                "rank_killed",
                f"process {rank + 1} of {count} was killed by signal {-one.exitcode} (the system does so, too, when "
                "memory runs out), and the others were ended. Resume goes on from the last complete checkpoint",
            )
    for end in sorted(ends, key=lambda end: end.code == "unexpected"):
        if end.code == SPENT:
            return SpendCapReached(end.message)
        if end.code:
            return TrainingFailed(end.code, end.message)
    return TrainingFailed(
        "ranks", f"the {count} processes ended without a word; the log holds the details. Resume tries again"
    )


def write_end(folder: Path, end: RankEnd) -> None:
    """Tell the job's process how this rank ended."""
    _end_file(folder, int(os.environ["RANK"])).write_text(end.model_dump_json(), encoding="utf-8")


def _end_file(folder: Path, rank: int) -> Path:
    return folder / f"end-{rank}.json"


def join_ranks(parent: int) -> None:
    """Make this process one of the ranks: with the GPU of its number where there are GPUs, else on the CPU.

    It ends with its parent, the job's process, also when that is killed.
    """
    import torch
    from torch import distributed

    threading.Thread(target=_end_with_parent, args=(parent,), name="parent watch", daemon=True).start()
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if gpu else "gloo", timeout=PATIENCE)


def leave_ranks() -> None:
    """End what joins this process to the others, once all of them have finished."""
    from torch import distributed

    distributed.destroy_process_group()


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_S)
    os._exit(1)


def count_ranks() -> int:
    """How many processes train together; 1 for a process that trains alone."""
    from torch import distributed

    return distributed.get_world_size() if distributed.is_initialized() else 1


def is_first_rank() -> bool:
    """Whether this process writes; one that trains alone does."""
    from torch import distributed

    return not distributed.is_initialized() or distributed.get_rank() == 0


def wait_for_ranks() -> None:
    """Wait until every rank is here."""
    from torch import distributed

    if distributed.is_initialized():
        distributed.barrier()


def share_first(value: T) -> T:
    """The first rank's value, on every rank. Every rank has to call it; what the others give is not looked at."""
    from torch import distributed

    if not distributed.is_initialized():
        return value
    box = [value]
    distributed.broadcast_object_list(box, src=0)
    return box[0]


def count_threads(threads: int, processes: int) -> int:
    """The CPU threads of each process: the recipe's number, else an equal share of the machine's; 0 for all."""
    return threads or (max(1, (os.cpu_count() or 1) // processes) if processes > 1 else 0)
