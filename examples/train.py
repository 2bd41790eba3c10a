"""Train from Python: a few steps of SFT with the 2.4-million-parameter model, as a job that you could also resume.

`python -m trainer train RECIPE.yaml` does the same from a shell, and the Train page from the browser.
"""

import tempfile

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import choose_home
from trainer.job_process import run_job
from trainer.jobs.queue import JobStore
from trainer.recipe import parse_recipe

RECIPE = """
name: from-python
pool: starter
model: {base: starter:tiny, prompt: query}
tasks: {source: atlas, levels: [1], count: 16}
sft:
  steps: 2
  batch: 8
  saving: {every: 2, check_tasks: 0}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:  # your own data folder is choose_home(None)
        home = choose_home(folder)
        store = open_store(home)
        jobs = JobStore(store.engine, home)
        row = jobs.submit(parse_recipe(RECIPE), here=True)
        run_job(row.id, store, jobs)
        print(f"{row.id}: {jobs.get(row.id).state}")
        for checkpoint in sorted(jobs.folder(row.id).checkpoints.iterdir()):
            print("checkpoint at step", checkpoint.name)
        store.close()


if __name__ == "__main__":
    main()
