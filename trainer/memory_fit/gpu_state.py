"""Examines the NVIDIA GPU of this machine: whether jobs can use it, why not, and which programs hold its memory."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

DRIVER_S = 20.0
PCI_DEVICES = Path("/sys/bus/pci/devices")
NVIDIA, DISPLAY = "0x10de", "0x03"  # a PCI vendor, and how the class of a graphics card begins
MIB = 1024**2
INSTALL_DRIVER = (
    "Install NVIDIA's driver (Ubuntu: `ubuntu-drivers install`), restart the machine, then run `make setup`"
)
NEW_ENVIRONMENT = "Run `make clean setup`: it installs the torch that goes with the GPU"


@dataclass(frozen=True, slots=True)
class GpuProblem:
    """Why no job can use the NVIDIA GPU of this machine, and what to do."""

    cause: str
    action: str


@dataclass(frozen=True, slots=True)
class GpuProgram:
    """A program that holds memory of a GPU. `bytes` is 0 where the driver does not tell."""

    pid: int
    name: str
    bytes: int

    def __str__(self) -> str:
        size = f", {self.bytes / 2**30:.1f} GiB" if self.bytes else ""
        return f"PID {self.pid} ({self.name}{size})"


def find_gpu_problem() -> GpuProblem | None:
    """Find what keeps jobs from the NVIDIA GPU. None where it can be used, and where the machine has none."""
    answer = _ask_driver("-L")
    if answer is None:
        return GpuProblem("it has an NVIDIA GPU, but no driver for it", INSTALL_DRIVER) if _has_card() else None
    if answer.returncode:
        return _explain_driver(f"{answer.stdout}\n{answer.stderr}")
    return _find_torch_problem()


def list_other_programs() -> list[GpuProgram]:
    """List the programs that hold memory of an NVIDIA GPU, without this process and its children."""
    import psutil

    answer = _ask_driver("--query-compute-apps=pid,process_name,used_gpu_memory", "--format=csv,noheader,nounits")
    if answer is None or answer.returncode:
        return []
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    programs = (_parse_program(line) for line in answer.stdout.splitlines())
    return [program for program in programs if program is not None and program.pid not in own]


def describe_other_programs() -> str:
    """Name the programs beside this one that hold GPU memory, the largest first; empty where there are none."""
    programs = sorted(list_other_programs(), key=lambda program: -program.bytes)
    return ", ".join(map(str, programs))


def _ask_driver(*arguments: str) -> subprocess.CompletedProcess[str] | None:
    """Run `nvidia-smi`, which comes with the driver. None where it is not installed."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=DRIVER_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess([program], 1, "", f"nvidia-smi: {error}")


def _has_card() -> bool:
    """Whether the PCI bus has a graphics card of NVIDIA's."""
    for device in PCI_DEVICES.glob("*"):
        try:
            vendor = (device / "vendor").read_text(encoding="ascii").strip()
            kind = (device / "class").read_text(encoding="ascii").strip()
        except OSError:
            continue
        if vendor == NVIDIA and kind.startswith(DISPLAY):
            return True
    return False


def _explain_driver(message: str) -> GpuProblem:
    line = next((line.strip() for line in message.splitlines() if line.strip()), "it says nothing")
    if "mismatch" in message:
        action = "Restart the machine: NVIDIA's driver was updated while its old version was running"
    elif "No devices were found" in message:
        action = "In a container, start it with `--gpus all`; otherwise look at the card's seat and power"
    else:
        action = "Restart the machine. If it stays so, install the driver anew: it does not go with the present kernel"
    return GpuProblem(f"NVIDIA's driver does not answer: {line}", action)


def _find_torch_problem() -> GpuProblem | None:
    """Find why torch cannot use a GPU whose driver answers."""
    import torch

    if torch.version.cuda is None:
        return GpuProblem(f"torch {torch.__version__} is a build for CPUs", NEW_ENVIRONMENT)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1"):
        return GpuProblem(f"CUDA_VISIBLE_DEVICES={visible!r} hides it", "Unset CUDA_VISIBLE_DEVICES, or set it to 0")
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0]
        action = "Restart the machine; `nvidia-smi` must list the GPU"
        if "driver" in reason and "too old" in reason:
            action = f"Update NVIDIA's driver: torch {torch.__version__} needs one for CUDA {torch.version.cuda}"
        return GpuProblem(f"torch cannot use it: {reason}", action)
    return None


def _parse_program(line: str) -> GpuProgram | None:
    """Parse `PID, NAME, MIB`; a container may be told neither the name nor the memory."""
    parts = [part.strip() for part in line.split(",")]
    if len(parts) < 3 or not parts[0].isdigit():
        return None
    size = int(parts[-1]) * MIB if parts[-1].isdigit() else 0
    return GpuProgram(int(parts[0]), Path(", ".join(parts[1:-1])).name, size)
