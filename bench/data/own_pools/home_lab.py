"""Machines in a cupboard and what runs on them."""

ADDRESS = {"atlas": "10.0.0.4", "bruno": "10.0.0.9", "cleo": "10.0.0.17"}
MEMORY = {"atlas": 64, "bruno": 16, "cleo": 128}
DISK = {"atlas": 71, "bruno": 38, "cleo": 93}
RUNS_ON = {"jellyfin": "atlas", "gitea": "bruno", "grafana": "cleo", "pihole": "bruno"}
PORT = {"jellyfin": 8096, "gitea": 3000, "grafana": 3001, "pihole": 53}


def host_ip(host: str) -> str:
    """IP address of a machine."""
    return ADDRESS[host.lower()]


def host_memory(host: str) -> int:
    """RAM that is installed in a machine, in gigabytes."""
    return MEMORY[host.lower()]


def disk_usage(host: str) -> int:
    """Percentage of a machine's disk that is full."""
    return DISK[host.lower()]


def find_service(service: str) -> str:
    """Tells on which machine a service is running."""
    return RUNS_ON[service.lower()]


def service_port(service: str) -> int:
    """The network port a service listens on."""
    return PORT[service.lower()]


def gb_to_mb(gigabytes: float) -> float:
    """Converts gigabytes into megabytes (1 GB = 1024 MB)."""
    return gigabytes * 1024


def larger(a: float, b: float) -> float:
    """Returns the larger one of two numbers."""
    return max(a, b)
