"""The proving ground for agents: experts are simulated, so that the best that can be done is known.

    python bench/agents/run.py [--part redrawn | fixed | own | whole | lessons | button] [--seeds 3] [--pools 10]
                               [--outcomes 0 1 3 10 30] [--tasks 20] [--minutes 20] [--out bench/results/agents.json]

`--part` says what is measured; rows of the other parts stay in the file. Only `own` and `button` train anything.

redrawn   Who should do it, from outcomes alone, without any call. For every seed pools are drawn anew, on topics that
          the success predictor was trained on (`seen`) and on topics that it never met (`unseen`;
          lessons/podium_lessons/data/tasks/agent_topics.yaml). Rows: `part` who, `pools` redrawn.
fixed     The same question on one fixed pool whose outcomes come from episodes over HTTP, logged by the product's trace
          store and read by `router+who=`. Rows: `part` who, `pools` fixed.
own       The fixed pool again, with a training on its own log (`python -m trainer who`) after each number of outcomes,
          of at most `--minutes`. Rows: `part` who, `pools` own.
whole     Whole tasks (`task`; cases.py) on pools drawn anew. Rows: `part` whole.
lessons   `--tasks` test tasks of each level of the source `agents`, whose agents and topics no training had, for the
          orchestrators of `--learned`. Rows: `part` lessons; `answerable` tasks have an answer, `refused` of
          them were refused all the same, `right_refusals` of the others.

button    *Train on this pool* itself: a job of the preset `own-agents` on one pool whose topics no training had, with
          `--tasks` questions to learn from and `--steps` of GRPO. Rows: `part` button, `right` of `tasks` further
          questions on the same topics, `single` and `best` by the true skills.

`outcomes` is how many an expert has on each of its four topics. Policies of `who`:

    best      the best expert for each question, by its true skill: nobody who asks one can surpass that
    single    the one expert that is best over the questions, by its true skill
    random    an expert by lot
    votes     everybody answers, the most frequent answer counts
    cascade   from the cheapest to the dearest until two agree
    reader    the log, with the topic of every entry and question given: what reading a log can reach
    log       the log, by likeness of the questions (choice/scores.py: `log`)
    best_log  the expert whose whole log is best
    podium    the shipped success predictor (choice/scores.py: `predictor`)
    podium_cascade  the same, with as many experts as it takes (`cascade+who=predictor`; 300 draws of each question)
    podium_trained  in `own` alone: the success predictor after that training; the shipped one where it was not better
    log_cascade  in `fixed` alone: `cascade+who=log`; its `right` and `cost` are those of its episodes, which are few

Of `whole`:

    best      the plan of most worth for each task among all of plans.py, by the true skills
    single    the one expert whose answers to the whole queries are of most worth, by its true skill (`direct`)
    random    an expert by lot (`direct`)
    votes     everybody answers, the cheapest expert merges (`fan_out`)
    cascade   the product's own: the cheapest first, until one says that it is sure
    others    orchestrators by their names (`--learned smollm2-agents+who=predictor`); their scores read the last of
              `--outcomes` of each expert and topic, and the rows are theirs alone

`right` and `cost` (cents a question) are exact, from the skills. `closed` is the share of the gap between `single` and
`best`, over all pools of a row: of what is right in `who`, of the worth (plans.py) in `whole`; `low` and `high` are
its 95 % interval, bootstrapped over pools, in `fixed` over seeds. `observed` and `observed_cost` are what real episodes
came to; in 95 % the exact value lies between `observed_low` and `observed_high`. Of learned policies nothing is exact:
`right` and `cost` are those of their episodes. `minutes`: of training on that pool, reading
and measuring included; `used`: in how many seeds it was better on what it held out, and so chose.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.agents.button import measure_button
from bench.agents.fixed import measure_fixed
from bench.agents.lessons import measure_lessons
from bench.agents.own import measure_own
from bench.agents.rows import Row, replace_rows
from bench.agents.who import measure_redrawn
from bench.agents.whole import measure_whole

ROOT = Path(__file__).resolve().parents[2]
PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "redrawn": measure_redrawn,
    "fixed": measure_fixed,
    "own": measure_own,
    "whole": measure_whole,
    "lessons": measure_lessons,
    "button": measure_button,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, default="redrawn")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pools", type=int, default=10, help="of each seed; redrawn: on seen and on unseen topics")
    parser.add_argument("--outcomes", type=int, nargs="+", default=[0, 1, 3, 10, 30])
    parser.add_argument("--tasks", type=int, default=20, help="of each kind, on each pool")
    parser.add_argument("--learned", metavar="ORCHESTRATOR", nargs="*", default=[], help="whole: further policies")
    parser.add_argument("--steps", type=int, default=12, help="button: of GRPO")
    parser.add_argument(
        "--minutes", type=float, default=20, help="after which no further pool is begun; own: of a training"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/agents.json")
    options = parser.parse_args()
    rows = list(PARTS[options.part](options))
    replace_rows(options.out, rows)
    for row in rows:
        print(" ".join(f"{value}" for value in row.values()))


if __name__ == "__main__":
    main()
