"""Which addresses a request may connect to, decided on the address itself and not on how it is spelled.

The rule:
- A URL that a person typed for a worker may name this machine outright (127.0.0.1, [::1], localhost):
  that is where model servers run, and it is not typed by accident.
- Everything else that is not public (the local network, carrier-grade NAT, a *name* that leads to this
  machine) needs `allow_private` on that worker.
- A URL that a model chose, or that a redirect leads to, reaches public addresses only, unless the worker
  has `allow_private`.
- Link-local, multicast and reserved addresses and the clouds' metadata services are refused always.

http_client.py connects to the address that was checked here, so a name cannot change its mind in between.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterator
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Metadata and host services that answer every client that can connect: AWS, GCP (IPv6), Alibaba, Oracle, Azure.
_METADATA = frozenset(
    ipaddress.ip_address(address)
    for address in ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192", "168.63.129.16")
)
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_THIS_NETWORK = ipaddress.IPv4Network("0.0.0.0/8")
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
_ALLOCATED = ipaddress.IPv6Network("2000::/3")  # all of IPv6 that is routed

ALLOW_PRIVATE = (
    "May reach private addresses: the local network, and names that lead to this machine. "
    "Link-local and metadata addresses stay out of reach."
)  # the description of every worker's setting `allow_private`


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """The reach of one worker's requests. `typed`: a person wrote the URL, and may have meant this machine."""

    private: bool = False
    typed: bool = False


OPEN_WEB = AddressPolicy()  # for URLs that a model chose
CONFIGURED = AddressPolicy(typed=True)  # for URLs that a person typed


class AddressRefused(ValueError):
    """The address is not allowed; the message names the setting that would allow it, if there is one."""


def literal_address(host: str) -> Address | None:
    """Parse the address that `host` spells, also as one number, in hex or octal or with a last dot; None for a name."""
    host = host.strip("[]").rstrip(".")
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None


def check(host: str, address: Address, reach: AddressPolicy) -> None:
    """Raise AddressRefused when a request for `host` must not connect to `address`."""
    for face in _faces(address):
        if _is_forbidden(face):
            raise AddressRefused(f"{_spell(host, address)} is a link-local, metadata, multicast or reserved address")
    if reach.private or all(map(_is_public, _faces(address))):
        return
    if reach.typed and _names_this_machine(host) and all(face.is_loopback for face in _faces(address)):
        return
    raise AddressRefused(
        f"{_spell(host, address)} is a private address; if this worker should reach it, "
        'switch on "allow private" (allow_private) in its settings'
    )


def is_own_host(host: str) -> bool:
    """Whether a host is spelled as this machine or as an address of a private network; a name may be anybody's."""
    address = literal_address(host)
    if address is None:
        return _names_this_machine(host)
    return not any(map(_is_public, _faces(address)))


async def addresses(host: str, port: int, reach: AddressPolicy) -> list[str]:
    """The addresses of `host`, every one of them checked. Raises AddressRefused, or OSError when there are none."""
    literal = literal_address(host)
    if literal is not None:
        check(host, literal, reach)
        return [str(literal)]
    loop = asyncio.get_running_loop()
    records = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    texts = list(dict.fromkeys(str(entry[4][0]) for entry in records))
    if not texts:
        raise OSError(f"no address is known for {host}")
    for text in texts:
        check(host, ipaddress.ip_address(text), reach)
    return texts


def _faces(address: Address) -> Iterator[Address]:
    """Yield the address, and every IPv4 address embedded in it: a gateway would unwrap it."""
    if isinstance(address, ipaddress.IPv4Address):
        yield address
        return
    inside = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    low = int(address) & 0xFFFFFFFF
    if any(address in network for network in _NAT64) or (address in _COMPATIBLE and low > 0xFFFF):
        inside.append(ipaddress.IPv4Address(low))
    if address.ipv4_mapped is None:
        yield address
    yield from (address for address in inside if address is not None)


def _is_forbidden(address: Address) -> bool:
    if address.is_loopback:  # ::1 counts as reserved, too
        return False
    if address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA:
        return True
    return isinstance(address, ipaddress.IPv4Address) and (address.is_reserved or address in _THIS_NETWORK)


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and address not in _PROTOCOLS
    return address.is_global and (address in _ALLOCATED or address in _NAT64[0])


def _names_this_machine(host: str) -> bool:
    plain = host.lower().rstrip(".")
    return literal_address(host) is not None or plain == "localhost" or plain.endswith(".localhost")


def _spell(host: str, address: Address) -> str:
    return host if literal_address(host) is not None else f"{host} leads to {address}, which"
