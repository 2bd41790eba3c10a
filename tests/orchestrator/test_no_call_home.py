"""No room of Podium lets huggingface_hub report to its maker."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.medium

QUESTION = "import {room}; from huggingface_hub import constants as c; print(c.HF_HUB_DISABLE_TELEMETRY)"


@pytest.mark.parametrize(
    "room", ["orchestrator", pytest.param("trainer.run_recipe", marks=pytest.mark.slow), "studio.app"]
)
def test_telemetry_is_off_before_the_hub_client_is_imported(room: str) -> None:
    without = {name: value for name, value in os.environ.items() if not name.startswith("HF_HUB")}
    said = subprocess.run(
        [sys.executable, "-c", QUESTION.format(room=room)], env=without, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "True"
