"""A training that really runs out of memory: the job says so and goes on from its last checkpoint, and the process that
watches it, as a studio does, notices nothing else."""

from __future__ import annotations

import os
import resource
import signal
from collections import Counter
from pathlib import Path
from random import Random

import psutil
import pytest

from studio.pages.train.advice import next_action
from tests.machine import needs
from tests.memory_group import can_limit_memory, limit_memory, memory_group
from tests.trainer.jobs.test_durability import EVERY, Forked, forked, learnt, write_recipe
from tests.trainer.support.waiting import until
from tests.trust.trials import choose_trials, count_trials
from trainer.jobs.queue import JobRow, JobStore
from trainer.recipe import Recipe, parse_recipe

TRIALS = choose_trials(3)
SFT, GRPO = 10, 4  # GRPO needs memory that SFT did not
STEPS = SFT + GRPO
RECIPE = write_recipe("hungry", SFT, GRPO)


@pytest.fixture
def recipe(tiny_base) -> Recipe:
    return parse_recipe(RECIPE.replace("BASE", str(tiny_base)))


def start_and_wait(processes: Forked, jobs: JobStore, key: str, steps: int) -> int:
    """Start a job, and wait until it has made so many steps. Returns its process."""
    pid = processes.start(key)
    until(lambda: len(learnt(jobs.folder(key))) >= steps or not psutil.pid_exists(pid))
    assert psutil.pid_exists(pid), jobs.folder(key).log.read_text()[-3000:]
    return pid


def check_ended_job(jobs: JobStore, key: str, status: int) -> JobRow:
    """What has to hold of a job whose process had no more memory. Returns its row as the studio shows it."""
    row = next(each for each in jobs.all() if each.id == key)
    code = "killed" if os.WIFSIGNALED(status) else "out_of_memory"
    assert (row.state, row.code) == ("failed", code), (row, jobs.folder(key).log.read_text()[-3000:])
    assert "memory" in row.message
    if code == "killed":
        assert "Resume goes on from the last complete checkpoint" in row.message
    else:
        assert "Change one of these and start again" in row.message and "checkpoints are kept" in row.message
    assert next_action(row.code) != next_action("")
    newest, _ = jobs.folder(key).find_intact_checkpoint() or (0, None)
    assert max(learnt(jobs.folder(key)), default=0) - newest <= EVERY
    return row


def finish(processes: Forked, jobs: JobStore, key: str) -> None:
    """Resume a job with all the memory that there is: it makes the steps that are missing, each once."""
    jobs.resume(key)
    processes.start(key)
    assert processes.ended() == 0
    assert jobs.get(key).state == "done"
    assert learnt(jobs.folder(key)) == list(range(1, STEPS + 1))


@pytest.mark.slow
def test_a_training_that_gets_no_more_memory_says_so_and_goes_on_from_its_last_checkpoint(store, jobs, recipe):
    random, ends = Random(0), Counter[str]()
    key = jobs.submit(recipe).id
    with forked(store.home.root, key) as processes:
        while ends.total() - ends["needed no more"] < TRIALS:
            ends[starve(processes, jobs, key, random)] += 1
            assert ends["needed no more"] <= 2 * TRIALS, ends
            key = jobs.submit(recipe).id
    assert ends["out_of_memory"], ends


def starve(processes: Forked, jobs: JobStore, key: str, random: Random) -> str:
    """Refuse a job more memory at a random moment, and let it go on afterwards. Returns what it said of its end."""
    pid = start_and_wait(processes, jobs, key, random.randint(1, 6))
    limit = read_data_bytes(pid) + random.randrange(2**20)
    resource.prlimit(pid, resource.RLIMIT_DATA, (limit, limit))
    status = processes.ended()
    if jobs.get(key).state == "done":
        return "needed no more"
    count_trials()
    code = check_ended_job(jobs, key, status).code
    finish(processes, jobs, key)
    return code


def read_data_bytes(pid: int) -> int:
    """What counts against RLIMIT_DATA of a process."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData")) * 1024


@pytest.mark.slow
@needs(can_limit_memory(), "cgroup of memory that this account may write")
def test_a_training_that_the_kernel_kills_for_its_memory_goes_on_from_its_last_checkpoint(store, jobs, recipe):
    random = Random(0)
    key = jobs.submit(recipe).id
    with memory_group() as group, forked(store.home.root, key) as processes:
        for _ in range(TRIALS):
            pid = start_and_wait(processes, jobs, key, random.randint(1, 6))
            limit_memory(group, pid, random.randrange(2**18, 2**21))
            status = processes.ended()
            count_trials()
            assert status == signal.SIGKILL, status
            assert check_ended_job(jobs, key, status).code == "killed"
            finish(processes, jobs, key)
            key = jobs.submit(recipe).id
