"""Who may use the studio and its served models: people with passwords, clients with tokens.

Passwords are stored as argon2id hashes. Tokens and session keys are 256 random bits, so their plain SHA-256 is as hard
to invert as they are to guess. The originals are shown or set once and stored nowhere.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from sqlalchemy import Engine, delete
from sqlmodel import Field, Session, SQLModel, col, select

from pool_registry.errors import PoolError
from pool_registry.storage.pool_store import writing

if TYPE_CHECKING:
    from argon2 import PasswordHasher

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
MIN_PASSWORD_CHARS = 10
MAX_PASSWORD_CHARS = 1024
SESSION_LASTS = timedelta(days=14)
TOKEN_PREFIX = "podium_"  # noqa: S105  secret scanners recognize tokens by it
# Who sent the current request; "" without login. In Gradio's queued events it is `request.username`.
current_user: ContextVar[str] = ContextVar("current_user", default="")


class AccountError(PoolError):
    """Raised for an unusable name or password, and for unknown users and tokens."""


class AccountRow(SQLModel, table=True):
    """A person who may log in."""

    __tablename__ = "account"

    name: str = Field(primary_key=True)
    password_hash: str
    created_at: datetime


class SessionRow(SQLModel, table=True):
    """An open login. `key_hash` is that of the cookie's value."""

    __tablename__ = "login_session"

    key_hash: str = Field(primary_key=True)
    user_name: str = Field(foreign_key="account.name", ondelete="CASCADE")
    expires_at: datetime


class TokenRow(SQLModel, table=True):
    """A client of the served models."""

    __tablename__ = "api_token"

    name: str = Field(primary_key=True)
    token_hash: str = Field(unique=True)
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ListedName:
    """An account or a token in a list."""

    name: str
    created_at: str


class Accounts:
    """People who may log in to the studio, and their sessions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, name: str, password: str) -> None:
        """Add a person, or change the password of an existing one, which ends their sessions. Raises AccountError."""
        _check_name(name)
        if not MIN_PASSWORD_CHARS <= len(password) <= MAX_PASSWORD_CHARS:
            raise AccountError(f"a password needs {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS:,} characters")
        password_hash = _password_hasher().hash(password)
        with writing(self._engine) as session:
            session.exec(delete(SessionRow).where(col(SessionRow.user_name) == name))
            session.merge(AccountRow(name=name, password_hash=password_hash, created_at=_now()))

    def remove(self, name: str) -> None:
        """Remove a person; their open sessions end at once. Raises AccountError."""
        with writing(self._engine) as session:
            row = session.get(AccountRow, name)
            if row is None:
                raise AccountError(f"there is no user {name!r}; `podium users list` shows the users")
            session.exec(delete(SessionRow).where(col(SessionRow.user_name) == name))
            session.delete(row)

    def list(self) -> list[ListedName]:
        with Session(self._engine) as session:
            rows = session.exec(select(AccountRow).order_by(AccountRow.name))
            return [ListedName(row.name, _iso(row.created_at)) for row in rows]

    def check(self, name: str, password: str) -> bool:
        """Whether this is the person's password. Takes equally long for unknown names."""
        with Session(self._engine) as session:
            row = session.get(AccountRow, name)
        return _verify_password(row.password_hash if row else _unmatchable_hash(), password) and row is not None

    def open_session(self, name: str) -> str:
        """Open a session of a person and return the cookie's value. Expired sessions are deleted."""
        key, now = secrets.token_urlsafe(32), _now()
        with writing(self._engine) as session:
            session.exec(delete(SessionRow).where(col(SessionRow.expires_at) < now))
            session.add(SessionRow(key_hash=_hash_secret(key), user_name=name, expires_at=now + SESSION_LASTS))
        return key

    def session_user(self, key: str) -> str | None:
        """The user of an open session; None when it is unknown or has expired."""
        with Session(self._engine) as session:
            row = session.get(SessionRow, _hash_secret(key))
        return row.user_name if row is not None and row.expires_at.replace(tzinfo=UTC) > _now() else None

    def close_session(self, key: str) -> None:
        with writing(self._engine) as session:
            session.exec(delete(SessionRow).where(col(SessionRow.key_hash) == _hash_secret(key)))


class Tokens:
    """Clients of the served models."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, name: str) -> str:
        """Create a token and return it; only its hash is stored. Raises AccountError for a taken or unusable name."""
        _check_name(name)
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        with writing(self._engine) as session:
            if session.get(TokenRow, name) is not None:
                raise AccountError(f"a token {name!r} exists already; remove it first, or choose another name")
            session.add(TokenRow(name=name, token_hash=_hash_secret(token), created_at=_now()))
        return token

    def remove(self, name: str) -> None:
        """Revoke a token at once. Raises AccountError."""
        with writing(self._engine) as session:
            row = session.get(TokenRow, name)
            if row is None:
                raise AccountError(f"there is no token {name!r}; `podium tokens list` shows the tokens")
            session.delete(row)

    def list(self) -> list[ListedName]:
        with Session(self._engine) as session:
            rows = session.exec(select(TokenRow).order_by(TokenRow.name))
            return [ListedName(row.name, _iso(row.created_at)) for row in rows]

    def owner(self, token: str) -> str | None:
        """The name of the client with this token; None when it is unknown."""
        with Session(self._engine) as session:
            return session.exec(select(TokenRow.name).where(TokenRow.token_hash == _hash_secret(token))).first()


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise AccountError("a name has letters, digits and . _ @ + -, starts with a letter or digit, 64 at most")


def _hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@cache
def _password_hasher() -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _unmatchable_hash() -> str:
    """A hash that no password matches."""
    return _password_hasher().hash(secrets.token_urlsafe(32))


def _verify_password(password_hash: str, password: str) -> bool:
    from argon2.exceptions import VerificationError

    if len(password) > MAX_PASSWORD_CHARS:
        return False
    try:
        return _password_hasher().verify(password_hash, password)
    except VerificationError:
        return False


def _now() -> datetime:
    return datetime.now(UTC)


def _iso(moment: datetime) -> str:
    return moment.replace(tzinfo=UTC).isoformat(timespec="seconds")
