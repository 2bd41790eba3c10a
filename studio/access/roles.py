"""Roles: viewers look, editors run and change, owners decide what may touch this machine and who may log in."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum

from pool_registry.errors import PoolError


class UserRole(StrEnum):
    """What an account may do; each role may do what those before it may."""

    VIEWER = "viewer"
    EDITOR = "editor"
    OWNER = "owner"

    def covers(self, needed: UserRole) -> bool:
        """Whether this role may do what `needed` may."""
        order = list(UserRole)
        return order.index(self) >= order.index(needed)


class RoleRefused(PoolError):
    """Raised for what a person's role does not allow; says who may do it."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What the sender of a request may do. `owners` are whom to ask for more; () where nobody logs in."""

    role: UserRole = UserRole.OWNER
    owners: tuple[str, ...] = ()

    @property
    def is_owner(self) -> bool:
        return self.role is UserRole.OWNER

    def require(self, needed: UserRole, deed: str) -> None:
        """Raise RoleRefused, unless the role covers the needed one. `deed` follows "may": "change this pool"."""
        if self.role.covers(needed):
            return
        may = "only owners may" if needed is UserRole.OWNER else "only editors and owners may"
        ask = f"; ask {' or '.join(self.owners)}" if self.owners else ""
        raise RoleRefused(f"{may} {deed}, and you are a{'n' if self.role is UserRole.EDITOR else ''} {self.role}{ask}")


# The rights of whoever sent the current request: all of them without login, and on the command line.
current_rights: ContextVar[Rights] = ContextVar("current_rights", default=Rights())  # noqa: B039  frozen
