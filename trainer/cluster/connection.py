"""A connection to a Ray cluster, and the machines that it has."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from trainer.errors import TrainingFailed
from trainer.job_place import JobPlace

log = logging.getLogger(__name__)
CONNECT_S = 5.0
TRIALS = 3
NOT_STARTED = "Initialization failure from server"
CODE = "cluster"
INSTALL = "pip install -e '.[cluster]' in Podium's folder"
START = "`ray start --head --ray-client-server-port 10001` starts one"


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A machine of the cluster that takes work."""

    id: str
    name: str
    cpus: float
    gpus: float


@contextmanager
def connect(place: JobPlace) -> Iterator[list[ClusterNode]]:
    """Connect this process to a cluster for the body of the `with`, and yield its nodes.

    Raises TrainingFailed when Ray is not installed, when nothing answers at the address, when the cluster has another
    version of Ray or Python, and when none of its nodes takes work.
    """
    check_address(place)
    ray = import_ray()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    logging.getLogger("ray").setLevel(logging.ERROR)
    with _keep_stop_signal():
        _open_connection(ray, place)
    try:
        nodes = list_nodes(ray)
        if not nodes:
            raise TrainingFailed(CODE, f"no node of {place} takes work: start some with `ray start --address=...`")
        yield nodes
    finally:
        ray.shutdown()


@contextmanager
def _keep_stop_signal() -> Iterator[None]:
    """Let SIGTERM mean after the block what it meant before: Ray would end the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def _open_connection(ray: Any, place: JobPlace) -> None:
    for trial in range(TRIALS):
        try:
            ray.init(str(place), logging_level=logging.ERROR, log_to_driver=False)
            return
        except (ConnectionError, RuntimeError, ValueError, ImportError) as error:
            # The head forks a process for each connection, and Ray's fork fails now and then (ray-project/ray#63202).
            if str(error).startswith(NOT_STARTED) and trial < TRIALS - 1:
                log.warning("%s did not start a process for this job; trying again", place)
                continue
            raise TrainingFailed(CODE, f"{place} does not take this job: {_explain_refusal(error)}") from error


def check_address(place: JobPlace, timeout_s: float = CONNECT_S) -> None:
    """Raise TrainingFailed when nothing listens at a cluster's address."""
    try:
        socket.create_connection((place.host.strip("[]"), place.port), timeout_s).close()
    except OSError as error:
        raise TrainingFailed(
            CODE, f"nothing answers at {place} ({error.strerror or 'no answer'}): start the cluster, or correct the "
            f"address. {START}"
        ) from error  # fmt: skip


def import_ray() -> Any:
    """The module ray. Raises TrainingFailed saying how it is installed."""
    try:
        import grpc  # noqa: F401  what a connection from outside the cluster needs
        import ray
    except ImportError as error:
        raise TrainingFailed(CODE, f"Ray is not installed here. Run {INSTALL}") from error
    return ray


def list_nodes(ray: Any) -> list[ClusterNode]:
    """The nodes that are alive and take work: those with a CPU for it. Raises ConnectionError."""
    try:
        listed = ray.nodes()
    except ValueError as error:  # gRPC's word for a channel that is closed
        raise ConnectionError(str(error)) from error
    nodes = [
        ClusterNode(
            node["NodeID"],
            f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}, node {node['NodeID'][:6]})",
            node["Resources"].get("CPU", 0.0),
            node["Resources"].get("GPU", 0.0),
        )
        for node in listed
        if node["Alive"]
    ]
    return sorted((node for node in nodes if node.cpus), key=lambda node: node.id)


def _explain_refusal(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if "version" in lines[0].lower():
        return f"{lines[0]}. Install the same Ray and Python on every machine of the cluster and on this one"
    if lines[0].startswith(NOT_STARTED):  # the last line of a traceback
        return (
            f"it could not start a process for it ({lines[-1]}). `ray status` there says how it is; resume tries again"
        )
    return f"{lines[0]}. Its port must be that of the Ray client server: {START}"
