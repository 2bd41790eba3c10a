"""The ways in which an NVIDIA GPU cannot be used, told by a driver's program and a torch that stand at the edge."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from tests.trainer.support.nvidia import install_driver
from trainer.job_process import explain_job_failure
from trainer.memory_fit import gpu_state
from trainer.memory_fit.estimate import estimate_fit
from trainer.memory_fit.gpu_state import describe_other_programs, find_gpu_problem, list_other_programs
from trainer.memory_fit.stages import Machine
from trainer.recipe import Recipe

pytestmark = pytest.mark.medium

GPU = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)"


@pytest.fixture
def bus(tmp_path, monkeypatch):
    """An empty PCI bus; `add` puts a card in."""
    monkeypatch.setattr(gpu_state, "PCI_DEVICES", tmp_path / "pci")

    def add(vendor: str, kind: str) -> None:
        slot = tmp_path / "pci" / "0000:01:00.0"
        slot.mkdir(parents=True)
        (slot / "vendor").write_text(f"{vendor}\n")
        (slot / "class").write_text(f"{kind}\n")

    return add


@pytest.fixture
def cuda(monkeypatch):
    """torch as it is built for CUDA; `says` is what it raises, empty where it finds the GPU."""
    import torch

    def build(says: str = "") -> None:
        def init() -> None:
            if says:
                raise RuntimeError(says)

        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.setattr(torch.version, "cuda", "13.0")
        monkeypatch.setattr(torch.cuda, "init", init)

    return build


def test_no_card_is_no_problem_and_a_card_without_a_driver_is(bus, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert find_gpu_problem() is None and list_other_programs() == []
    bus("0x10de", "0x030200")
    problem = find_gpu_problem()
    assert "no driver" in problem.cause and "Install NVIDIA's driver" in problem.action


def test_other_makers_and_other_cards_are_not_taken_for_one(bus, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    bus("0x10de", "0x040300")  # the sound of a card
    assert find_gpu_problem() is None


@pytest.mark.parametrize(
    ("said", "status", "action"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", 18, "old version was running"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9, "install the driver anew"),
        ("No devices were found", 6, "--gpus all"),
        ("", 1, "install the driver anew"),
    ],
)
def test_a_driver_that_does_not_answer_is_told_in_its_own_words(tmp_path, monkeypatch, said, status, action):
    install_driver(tmp_path, monkeypatch, said, status)
    problem = find_gpu_problem()
    assert (said or "it says nothing") in problem.cause and action in problem.action


def test_a_driver_that_hangs_is_not_waited_for(tmp_path, monkeypatch):
    install_driver(tmp_path, monkeypatch, GPU, seconds=30)
    monkeypatch.setattr(gpu_state, "DRIVER_S", 0.3)
    assert "timed out" in find_gpu_problem().cause


def test_torch_for_cpus_beside_a_gpu(tmp_path, monkeypatch):
    import torch

    install_driver(tmp_path, monkeypatch, GPU)
    monkeypatch.setattr(torch.version, "cuda", None)
    problem = find_gpu_problem()
    assert "build for CPUs" in problem.cause and "make clean setup" in problem.action


@pytest.mark.parametrize(
    ("says", "action"),
    [
        ("The NVIDIA driver on your system is too old (found version 11040). Please update it", "for CUDA 13.0"),
        ("CUDA unknown error - this may be due to an incorrectly set up environment", "nvidia-smi"),
    ],
)
def test_a_driver_that_torch_cannot_use(tmp_path, monkeypatch, cuda, says, action):
    install_driver(tmp_path, monkeypatch, GPU)
    cuda(says)
    problem = find_gpu_problem()
    assert says in problem.cause and action in problem.action
    cuda()
    assert find_gpu_problem() is None


def test_a_gpu_that_the_environment_hides(tmp_path, monkeypatch, cuda):
    install_driver(tmp_path, monkeypatch, GPU)
    cuda()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES" in find_gpu_problem().cause


def test_the_programs_of_others_are_named_where_memory_lacks(tmp_path, monkeypatch, cuda):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        others = ["4242, /usr/bin/python3, 61440", "77, [Not Found], [N/A]", "odd line"]
        install_driver(tmp_path, monkeypatch, "\n".join([f"{os.getpid()}, me, 9", f"{child.pid}, mine, 9", *others]))
        assert psutil.pid_exists(child.pid)
        assert describe_other_programs() == "PID 4242 (python3, 60.0 GiB), PID 77 ([Not Found])"
    finally:
        child.communicate(b"\n")
    code, message = explain_job_failure(RuntimeError("CUDA out of memory. Tried to allocate 20 MiB."), None)
    assert code == "out_of_memory" and "PID 4242 (python3, 60.0 GiB)" in message
    small = Machine("cuda: small", True, 80 * 2**30, 2**20)
    advice = estimate_fit(Recipe.model_validate({"sft": {}}), machine=small).advice
    assert advice[0].startswith("end what else uses the GPU: PID 4242")
