"""Check the files of projects: their form, and that every question can be asked and its plan is right.

python -m podium_lessons.scripts.check_projects [NAME ...] [--show 0]
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from podium_lessons.projects.project_data import list_projects, load_project
from podium_lessons.projects.source import ProjectSource
from podium_lessons.scripts.check_worlds import describe_task, list_failures
from trainer.errors import UnknownTask, UnusableTasks

COUNT = 120  # tasks of each project


def main() -> None:
    """Check them one by one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], help="the projects; all of them by default")
    parser.add_argument("--show", type=int, default=0, help="how many tasks of each to print")
    options = parser.parse_args()
    problems = {name: check_project(name, options.show) for name in options.names or list_projects()}
    print("\n".join(f"{name}: {problem or 'right'}" for name, problem in problems.items()))
    if any(problems.values()):
        sys.exit(1)


def check_project(name: str, show: int) -> str:
    """What is wrong with a project; "" for nothing."""
    try:
        texts = sum(len(question.texts) for question in load_project(name).questions)
        tasks = [task for split in ("train", "test") for task in ProjectSource([name]).tasks(split, COUNT // 2)]
    except (UnusableTasks, UnknownTask) as error:
        return str(error)
    print("\n".join(describe_task(task) for task in tasks[:show]))
    print(f"{name}: {len(load_project(name).questions)} questions, {texts} texts")
    failures = asyncio.run(list_failures(tasks))
    return "; ".join(f"the plan gives {answer!r}:\n{describe_task(task)}" for task, answer in failures[:3])


if __name__ == "__main__":
    main()
