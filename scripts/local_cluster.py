"""A Ray cluster of several nodes on this machine, as tests and bench/speed/scale.py need one.

The head takes no work. Everything that is started ends with the block.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil

ROOT = Path(__file__).resolve().parents[1]
STORE_BYTES = 80_000_000  # the least that Ray takes is 75 MB
# Milliseconds: a node that is killed is noticed within two seconds, and not within half a minute.
NOTICE = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 2,
}


class LocalCluster:
    """A cluster that runs on this machine. `place` is what a recipe's `where` says."""

    def __init__(self, cluster: Any, port: int) -> None:
        self._cluster = cluster
        self.place = f"ray://127.0.0.1:{port}"

    def add_node(self, cpus: int = 1, gpus: int = 0, environment: Mapping[str, str] | None = None) -> Any:
        """Start a node and return it; `environment` is added to that of its processes. Ray gives its `gpus` out without
        looking whether there are any."""
        with patch.dict(os.environ, environment or {}):
            return self._cluster.add_node(
                num_cpus=cpus, num_gpus=gpus, object_store_memory=STORE_BYTES, include_dashboard=False
            )

    def kill_node(self, node: Any) -> None:
        """Kill the processes of a node."""
        self._cluster.remove_node(node, allow_graceful=False)

    def kill_all(self) -> None:
        """Kill every process of every node, and what those have started."""
        started = [info.process.pid for node in self._cluster.list_all_nodes()
                   for infos in node.all_processes.values() for info in infos]  # fmt: skip
        processes = [psutil.Process(pid) for pid in started if psutil.pid_exists(pid)]
        for process in [one for parent in processes for one in (*parent.children(recursive=True), parent)]:
            with suppress(psutil.NoSuchProcess):
                process.kill()


@contextmanager
def start_cluster(nodes: int = 2) -> Iterator[LocalCluster]:
    """Start a cluster with so many nodes of one CPU each, which run this checkout's code."""
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    environment = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "60",  # where other work holds the machine
        "GRPC_ENABLE_FORK_SUPPORT": "0",  # else a process that the head forks may die (ray-project/ray#63202)
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
    }
    with patch.dict(os.environ, environment):
        port = _find_port()
        head = {
            "num_cpus": 0,
            "num_gpus": 0,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
            "ray_client_server_port": port,
            "_system_config": NOTICE,
        }
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            local = LocalCluster(cluster, port)
            for _ in range(nodes):
                local.add_node()
            yield local
        finally:
            cluster.shutdown()


def _find_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
