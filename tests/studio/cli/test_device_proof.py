"""What the doctor tries on this machine, and how it explains what went wrong."""

from __future__ import annotations

import re

import pytest

from studio.cli import device_proof
from studio.cli.device_proof import prove_device
from studio.cli.doctor import examine_machine
from tests.trainer.support.nvidia import install_driver
from trainer.errors import TrainerError


@pytest.fixture
def working(monkeypatch):
    """Proofs that succeed at once, without a model."""
    for name in ("_generate_token", "_take_training_step", "_generate_vllm_token"):
        monkeypatch.setattr(device_proof, name, lambda: "it worked")
    monkeypatch.setattr(device_proof, "is_installed", lambda: True)
    monkeypatch.setattr(device_proof, "pick_device", lambda _: "cuda")


def fail_with(monkeypatch, error: BaseException) -> device_proof.Proof:
    def raise_it() -> str:
        raise error

    monkeypatch.setattr(device_proof, "_take_training_step", raise_it)
    _, step, vllm = prove_device()
    assert vllm.mark == "ok"  # one that fails leaves the others alone
    return step


def test_each_proof_has_its_time(working):
    proofs = list(prove_device())
    assert [proof.subject for proof in proofs] == ["one token", "one training step", "one vLLM token"]
    assert all(re.fullmatch(r"it worked on cuda \(\d+\.\d s\)", proof.result) for proof in proofs)


def test_vllm_is_tried_on_a_gpu_or_on_request(working, monkeypatch):
    assert list(prove_device(False))[2].result.startswith("not tried")
    monkeypatch.setattr(device_proof, "pick_device", lambda _: "cpu")
    assert "doctor --vllm" in list(prove_device())[2].advice
    assert list(prove_device(True))[2].mark == "ok"
    monkeypatch.setattr(device_proof, "is_installed", lambda: False)
    assert "make vllm" in list(prove_device(True))[2].advice


def test_no_memory_names_who_has_it(working, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/nonexistent")
    step = fail_with(monkeypatch, RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert (step.mark, step.result) == ("problem", "not enough memory") and "close other programs" in step.advice
    install_driver(tmp_path, monkeypatch, "4242, /usr/bin/python3, 61440")
    full = TrainerError("vLLM ended with status 1; its last lines:\nFree memory on device (1/79 GiB) is less than")
    assert "PID 4242 (python3, 60.0 GiB)" in fail_with(monkeypatch, full).advice


def test_any_other_failure_is_told_in_its_own_words(working, monkeypatch):
    step = fail_with(monkeypatch, TrainerError("vLLM ended with status 1; its last lines:\nfirst\nsecond"))
    assert step.result.startswith("vLLM ended") and "second" in step.advice
    assert fail_with(monkeypatch, ValueError("odd")).result == "odd"


@pytest.mark.medium
def test_a_wrong_driver_is_a_line_with_what_to_do(working, monkeypatch, tmp_path):
    install_driver(tmp_path, monkeypatch, "Failed to initialize NVML: Driver/library version mismatch", 18)
    report = "\n".join(examine_machine(str(tmp_path), quick=True))
    assert "! gpu" in report and "version mismatch" in report and "Restart the machine" in report


@pytest.mark.slow
def test_this_machine_generates_and_learns():
    token, step, _ = prove_device(False)
    assert token.mark == "ok" and "continued 'The capital of France is' with ' Paris'" in token.result
    assert step.mark == "ok" and re.search(r"loss \d\.\d\d, on \w+ \(\d+\.\d s\)", step.result)
