"""Runs jobs in processes that can be killed: what `python -m trainer run JOB` does, without its 10 s of imports.

    python -m tests.trainer.support.forked_jobs HOME JOB

Imports torch and TRL once (an evaluation needs neither), loads what JOB will load, and forks a process for every
line `JOB` that it reads. Writes its pid at once and `ended STATUS` when it has.
"""

from __future__ import annotations

import gc
import os
import sys

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import Home, choose_home
from trainer.cli.jobs import write_log_to
from trainer.jobs.queue import JobStore


def main() -> None:
    home = choose_home(sys.argv[1])
    warm_up(home, sys.argv[2])
    gc.collect()
    gc.freeze()  # or every child would look through a million imported objects
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                run(line.strip(), home)
            finally:
                os._exit(0)
        print(pid, flush=True)
        print("ended", os.waitpid(pid, 0)[1], flush=True)


def warm_up(home: Home, job: str) -> None:
    """Import everything, also what is imported late. Nothing of it trains."""
    store = open_store(home)
    jobs = JobStore(store.engine, home)
    recipe, job_folder = jobs.recipe(job), jobs.folder(job)
    store.engine.dispose()
    if recipe.stages == ("evaluate",):
        from trainer import (
            job_process,  # noqa: F401
            run_recipe,  # noqa: F401
        )

        return
    import torch

    from pool_registry.calls.live_pool import open_live_pool
    from pool_registry.starter import starter_pool
    from trainer.demonstrations.transcripts import Demonstration, DemonstrationMessage
    from trainer.learner.load_and_save import configure_libraries, load_learner
    from trainer.learner.token_transcript import ChatTokens
    from trainer.methods.grpo.stage import run_grpo  # noqa: F401
    from trainer.methods.sft.cpu_trainer import choose_sft_trainer
    from trainer.methods.sft.method import SFT
    from trainer.methods.sft.stage import _make_arguments, make_dataset

    configure_libraries(1)
    torch.set_num_threads(1)
    open_live_pool(starter_pool())
    learner = load_learner(recipe.model, 0)
    sft = SFT.read(recipe)
    if sft is None:
        return
    said = [
        DemonstrationMessage(role="user", content="q"),
        DemonstrationMessage(role="assistant", content="a", learn=True),
    ]
    rows = make_dataset([Demonstration(messages=said)], ChatTokens(learner.tokenizer), 99)
    arguments = _make_arguments(recipe, sft, job_folder, sft.steps)
    kind = choose_sft_trainer(learner.model)
    kind(model=learner.model, args=arguments, train_dataset=rows, processing_class=learner.tokenizer)


def run(job: str, home: Home) -> None:
    from trainer.job_process import run_job

    store = open_store(home)
    jobs = JobStore(store.engine, home)
    log = os.open(jobs.folder(job).log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    write_log_to(jobs.folder(job).log)
    run_job(job, store, jobs)
    store.close()


if __name__ == "__main__":
    main()
