"""The part of a pool that can leave this machine: which workers travel, and the secrets they need where they go.

A worker stays when it needs a file, a program or an address of this machine. The files of some go along where a person
lets them (`Worker.pack`). References become `env:` names of secrets of the place where it goes (a Space, a rented
machine); no worker may reach private addresses there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from pool_registry.errors import InvalidPool, WorkerFault
from pool_registry.extensions.installed_packages import is_from_folder, pin_imports
from pool_registry.kinds import Kind, kind_of, load_config
from pool_registry.network.address_policy import OPEN_WEB, AddressRefused, check, literal_address
from pool_registry.pool import Pool, mend_finalizer
from pool_registry.pools.luggage import place_of
from pool_registry.secrets import REFERENCE
from pool_registry.worker import WorkerSpec

MAX_LUGGAGE_BYTES = 50_000_000
PRIVATE_NAMES = re.compile(r"(^|\.)(localhost|local|lan|home|internal|intranet|corp)$")


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that the other place needs: its name there, the reference here, and who uses it."""

    name: str
    reference: str
    workers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Luggage:
    """The files with which a worker could go, by their paths there, and the packages that its code imports."""

    worker: str
    files: tuple[tuple[str, Path], ...]
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Travellers:
    """What goes and what stays; `stays` is (worker, reason). `luggage` goes along, `offered` could."""

    pool: Pool
    stays: tuple[tuple[str, str], ...]
    secrets: tuple[Secret, ...]
    luggage: tuple[Luggage, ...] = ()
    offered: tuple[Luggage, ...] = ()

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of Podium that hold the classes of the workers that go."""
        return tuple(sorted(kind.module for kind in self._kinds() if not kind.distribution))

    @property
    def distributions(self) -> tuple[str, ...]:
        """The installed packages that add the other kinds of the workers that go."""
        return tuple(sorted(list_distributions(self.pool.workers)))

    def _kinds(self) -> set[Kind]:
        return _list_kinds(self.pool.workers)


def list_distributions(workers: Iterable[WorkerSpec]) -> set[str]:
    """The installed packages that add the kinds of workers, and of those that they call. Raises InvalidPool."""
    return {kind.distribution for kind in _list_kinds(workers) if kind.distribution}


def _list_kinds(workers: Iterable[WorkerSpec]) -> set[Kind]:
    return {kind_of(spec) for worker in workers for spec in (worker, *_inner_workers(worker))}


def travellers(
    pool: Pool, take: Collection[str] = (), with_packages: bool = False, with_judges: bool = False
) -> Travellers:
    """Split a pool's workers into those that can go and those that stay. `take` names workers whose files go along;
    `with_packages`: packages that were installed from a folder go along, too; `with_judges`: answers are graded there.
    """
    stays = [(spec.name, "it is switched off") for spec in pool.workers if not spec.enabled]
    stays += [(spec.name, "it only judges") for spec in pool.switched_on if spec.judge_only and not with_judges]
    going: list[WorkerSpec] = []
    luggage: list[Luggage] = []
    offered: list[Luggage] = []
    secrets: dict[str, Secret] = {}
    for spec in pool.switched_on if with_judges else pool.enabled:
        reason = stays_because(spec, with_packages)
        if reason:
            packed, problem = pack_worker(spec)
            if packed is not None and spec.name in take:
                luggage.append(packed[1])
                going.append(_prepare_worker(packed[0], secrets))
                continue
            if packed is not None:
                offered.append(packed[1])
            stays.append((spec.name, f"{reason}; {problem}" if problem else reason))
        else:
            going.append(_prepare_worker(spec, secrets))
    names = {spec.name for spec in going}
    whole = [spec if spec.fallback in names else spec.model_copy(update={"fallback": ""}) for spec in going]
    return Travellers(
        mend_finalizer(pool.model_copy(update={"workers": tuple(whole)})),
        tuple(stays),
        tuple(secrets.values()),
        tuple(luggage),
        tuple(offered),
    )


def pack_worker(spec: WorkerSpec) -> tuple[tuple[WorkerSpec, Luggage] | None, str]:
    """A worker that stays as it would go with its files, and these; or None, and why its files cannot help where it
    has some."""
    try:
        kind, config = kind_of(spec), load_config(spec)
        packed = kind.load().pack(config, place_of(spec.name))
    except (InvalidPool, WorkerFault, OSError, UnicodeDecodeError) as error:
        return None, f"its files cannot be read: {error}"
    if packed is None or _not_installable(kind):
        return None, ""
    pins, unknown = pin_imports(packed.imports)
    if unknown:
        listed = ", ".join("a neighbouring file" if name == "." else name for name in unknown)
        return None, f"its file imports {listed}, which no package provides"
    if sum(file.stat().st_size for file in packed.files.values()) > MAX_LUGGAGE_BYTES:
        return None, f"its files have more than {MAX_LUGGAGE_BYTES:,} bytes"
    moved = spec.model_copy(update={"config": {**spec.config, **packed.config}})
    return (moved, Luggage(spec.name, tuple(packed.files.items()), tuple(pins))), ""


def stays_because(spec: WorkerSpec, with_packages: bool = False) -> str:
    """Why a worker cannot leave this machine; "" when it can. Its kind says so itself (see `Worker.stays_because`);
    besides, the other place has to reach every address in its configuration and to be able to install its kind."""
    try:
        kind, config = kind_of(spec), load_config(spec)
    except InvalidPool as error:
        return f"its configuration is not valid: {error}"
    reasons = (
        _not_installable(kind, with_packages),
        kind.load().stays_because(config),
        *(_unreachable(url) for url in _addresses(config)),
        *(stays_because(inner, with_packages) for inner in _inner_workers(spec)),
    )
    return next(filter(None, reasons), "")


def find_loopback_host(spec: WorkerSpec) -> str:
    """The host of an address in a worker's configuration that means the machine which calls it; "" for none."""
    specs = (spec, *_inner_workers(spec))
    hosts = (urlsplit(url).hostname or "" for one in specs for url in _addresses(load_config(one)))
    return next((host for host in hosts if _is_loopback(host)), "")


def _is_loopback(host: str) -> bool:
    address = literal_address(host)
    if address is not None:
        return address.is_loopback or address.is_unspecified
    return host.rstrip(".").rpartition(".")[2] == "localhost"


def _inner_workers(spec: WorkerSpec) -> tuple[WorkerSpec, ...]:
    return kind_of(spec).load().inner_workers(load_config(spec))


def _addresses(config: BaseModel) -> Iterator[str]:
    """The URLs in the fields of a configuration. Free tables, such as JSON Schemas and headers, are not searched."""
    for _, value in config:
        if isinstance(value, BaseModel):
            yield from _addresses(value)
        elif isinstance(value, str) and value.lower().startswith(("http://", "https://")):
            yield value


def _not_installable(kind: Kind, with_packages: bool = False) -> str:
    """Why another machine cannot install the package that adds a kind: it was installed from a folder of this one."""
    if not kind.distribution:
        return "" if kind.module.startswith("pool_registry.") else "its kind is no part of an installed package"
    if not with_packages and is_from_folder(kind.distribution):
        return f"its kind comes from {kind.distribution}, which was installed from a folder; publish that package first"
    return ""


def _unreachable(url: str) -> str:
    """Why another machine cannot reach this URL; "" when it can."""
    host = urlsplit(url).hostname
    if not host:
        return "its address cannot be read"
    address = literal_address(host)
    if address is not None:
        try:
            check(host, address, OPEN_WEB)
        except AddressRefused:
            return f"its endpoint {host} is on this machine or its network"
        return ""
    name = host.lower().rstrip(".")
    if "." not in name or PRIVATE_NAMES.search(name):
        return f"its endpoint {host} is on this machine or its network"
    return ""


def _prepare_worker(spec: WorkerSpec, secrets: dict[str, Secret]) -> WorkerSpec:
    """A worker as the other place holds it: references to its secrets, no private addresses."""
    config = _rewrite_references(spec.config, spec.name, secrets)
    assert isinstance(config, dict)
    return spec.model_copy(update={"config": config})


def _rewrite_references(value: Any, worker: str, secrets: dict[str, Secret]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: False if key == "allow_private" else _rewrite_references(item, worker, secrets)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_rewrite_references(item, worker, secrets) for item in value]
    if isinstance(value, str):
        head, _, reference = value.rpartition(" ")
        if REFERENCE.match(reference):
            name = _name_secret(reference, worker, secrets)
            return f"{head} env:{name}" if head else f"env:{name}"
    return value


def _name_secret(reference: str, worker: str, secrets: dict[str, Secret]) -> str:
    secret = next((secret for secret in secrets.values() if secret.reference == reference), None)
    if secret is None:
        base = re.sub(r"[^A-Za-z0-9_]", "_", reference.partition(":")[2])
        name, count = base, 2
        while name in secrets:  # env:KEY and keyring:KEY are two secrets
            name, count = f"{base}_{count}", count + 1
        secret = Secret(name, reference, ())
    if worker not in secret.workers:
        secret = replace(secret, workers=(*secret.workers, worker))
    secrets[secret.name] = secret
    return secret.name
