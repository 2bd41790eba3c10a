"""Addresses that the studio and its model servers listen on."""

from __future__ import annotations

import socket

from pool_registry.errors import StorageError

HOST = "127.0.0.1"


def check_port(port: int, host: str = HOST) -> None:
    """Raise StorageError when another program listens on this port."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise StorageError(
                f"port {port} of {host} cannot be used ({error.strerror}); "
                "is a studio already running there? Choose another with --port (make studio PORT=7861)"
            ) from error
