"""A pool and tasks of Podium as a server of OpenEnv, made by `podium export openenv`.

`reset` asks for the first turn of a task, in messages as a chat model reads them; each `step` is a turn that the model
wrote. The observation of the last one is done and has the reward: 1 where Podium's grader finds the answer right.
"""

import contextlib
import json
import os
import random
import shlex
import subprocess
import tempfile
import threading
import uuid
from pathlib import Path
from typing import Any

from openenv.core.env_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

HERE = Path(__file__).resolve().parent
SETTINGS = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))
LINES = (HERE / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
SESSIONS = int(os.environ.get("PODIUM_SESSIONS", "16"))
TURN_S = float(os.environ.get("PODIUM_TURN_S", "600"))
"""How long Podium may take for a turn and the calls in it."""


class TurnAction(Action):
    text: str
    """A turn of the orchestrator, as its model wrote it."""


class TurnObservation(Observation):
    messages: list[dict[str, Any]] = []
    """What the model is asked: the whole conversation."""
    rollout: dict[str, Any] = {}
    """How the episode went, once it is over."""


class PodiumEnvironment(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State()
        self._process: subprocess.Popen[str] | None = None

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, split: str = "train", **_: Any
    ) -> TurnObservation:
        """Begin a task: the one of this seed, or any."""
        self.close()
        tasks = [line for line in LINES if json.loads(line)["split"] == split]
        if not tasks:
            raise ValueError(f"there is no task of the split {split!r}")
        task = random.choice(tasks) if seed is None else tasks[seed % len(tasks)]
        self._state = State(episode_id=episode_id or uuid.uuid4().hex, step_count=0)
        self._folder = tempfile.TemporaryDirectory()
        task_file, self._errors = Path(self._folder.name, "task.json"), Path(self._folder.name, "errors.txt")
        task_file.write_text(task, encoding="utf-8")
        command = [*shlex.split(os.environ.get("PODIUM", "podium")), "rollout", "--pool", str(HERE / "pool.json")]
        command += ["--task", str(task_file), "--dialect", SETTINGS["dialect"]]
        try:
            with self._errors.open("w") as errors:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8"
                )
        except OSError as error:
            self._folder.cleanup()
            raise RuntimeError(f"{error}; PODIUM is the command of Podium: PODIUM=/path/to/podium") from error
        return self._observe(TURN_S)

    def step(self, action: TurnAction, timeout_s: float | None = None, **_: Any) -> TurnObservation:
        """Take a turn: its calls are made, and the next turn is asked for."""
        if self._process is None or self._process.stdin is None:
            raise RuntimeError("reset begins an episode; this one is over")
        self._state.step_count += 1
        with contextlib.suppress(BrokenPipeError):  # it has ended; what is read says why
            self._process.stdin.write(json.dumps({"text": action.text}) + "\n")
            self._process.stdin.flush()
        return self._observe(timeout_s or TURN_S)

    @property
    def state(self) -> State:
        return self._state

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
            self._folder.cleanup()

    def _observe(self, limit_s: float) -> TurnObservation:
        killer = threading.Timer(limit_s, self._process.kill)
        killer.start()
        line = self._process.stdout.readline()
        is_late = not killer.is_alive()
        killer.cancel()
        if not line.endswith("\n"):
            self._process.wait()
            words = self._errors.read_text(encoding="utf-8", errors="replace").strip()[-500:]
            self.close()
            raise RuntimeError(f"a turn took more than {limit_s:g} s" if is_late else f"podium rollout ended: {words}")
        document = json.loads(line)
        if "messages" in document:
            return TurnObservation(messages=document["messages"])
        self.close()
        return TurnObservation(rollout=document, done=True, reward=float(document["correct"]))


app = create_fastapi_app(PodiumEnvironment, TurnAction, TurnObservation, max_concurrent_envs=SESSIONS)
