"""Who may use the studio and its served models: people with passwords, clients with tokens.

Passwords are stored as argon2id hashes. Tokens and session keys are 256 random bits, so their plain SHA-256 is as hard
to invert as they are to guess. The originals are shown or set once and stored nowhere.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from sqlalchemy import Engine, delete
from sqlmodel import Field, Session, SQLModel, col, select

from pool_registry.errors import PoolError
from pool_registry.storage.database import writing
from studio.access.roles import Rights, UserRole

if TYPE_CHECKING:
    from argon2 import PasswordHasher

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
MIN_PASSWORD_CHARS = 10
MAX_PASSWORD_CHARS = 1024
SESSION_LASTS = timedelta(days=14)
SESSION_ID_CHARS = 12  # of the key's hash: enough to name a session, too few to open one
MAX_BROWSER_CHARS = 200
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
    role: str = UserRole.OWNER.value


class SessionRow(SQLModel, table=True):
    """An open login. `key_hash` is that of the cookie's value."""

    __tablename__ = "login_session"

    key_hash: str = Field(primary_key=True)
    user_name: str = Field(foreign_key="account.name", ondelete="CASCADE")
    expires_at: datetime
    opened_at: datetime | None = None
    address: str = ""
    browser: str = ""


class TokenRow(SQLModel, table=True):
    """A client of the served models. `user_name` is whose it is; "" for one that was made on the command line, or
    where nobody logs in."""

    __tablename__ = "api_token"

    name: str = Field(primary_key=True)
    token_hash: str = Field(unique=True)
    created_at: datetime
    user_name: str = ""


@dataclass(frozen=True, slots=True)
class ListedAccount:
    """An account in a list."""

    name: str
    created_at: str
    role: UserRole


@dataclass(frozen=True, slots=True)
class ListedToken:
    """A token in a list, without the token itself."""

    name: str
    created_at: str
    user: str


@dataclass(frozen=True, slots=True)
class ListedSession:
    """An open login in a list. `opened_at` is "" for one of an older version."""

    id: str
    user: str
    opened_at: str
    expires_at: str
    address: str
    browser: str


class Accounts:
    """People who may log in to the studio, what each may do, and their sessions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, name: str, password: str, role: UserRole | None = None, *, is_new: bool = False) -> None:
        """Add a person, or change the password of an existing one, which ends their sessions. Raises AccountError,
        with `is_new` also for an existing one.

        Without a role the first person is an owner, further ones are editors, and an existing one keeps theirs.
        """
        _check_name(name)
        if not MIN_PASSWORD_CHARS <= len(password) <= MAX_PASSWORD_CHARS:
            raise AccountError(f"a password needs {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS:,} characters")
        password_hash = _password_hasher().hash(password)
        with writing(self._engine, "account") as session:
            before = session.get(AccountRow, name)
            if is_new and before is not None:
                raise AccountError(f"there is a user {name!r} already; `podium users add {name}` sets a new password")
            session.exec(delete(SessionRow).where(col(SessionRow.user_name) == name))
            first = session.exec(select(AccountRow.name)).first() is None
            kept = UserRole(before.role) if before else UserRole.OWNER if first else UserRole.EDITOR
            session.merge(
                AccountRow(name=name, password_hash=password_hash, created_at=_now(), role=(role or kept).value)
            )
            session.flush()
            _check_owner_left(session)

    def set_role(self, name: str, role: UserRole, based_on: UserRole | None = None) -> None:
        """Change what a person may do, from their next request on. Raises AccountError, also when they are not in the
        role `based_on` any more that the page showed."""
        with writing(self._engine, "account") as session:
            row = _find_account(session, name)
            if based_on is not None and row.role not in (based_on, role):
                raise AccountError(
                    f"not changed to {role}, because somebody else has made {name} {row.role} meanwhile; choose again"
                )
            row.role = role.value
            session.add(row)
            session.flush()
            _check_owner_left(session)

    def remove(self, name: str) -> None:
        """Remove a person; their open sessions and their tokens end at once. Raises AccountError."""
        with writing(self._engine, "account") as session:
            row = _find_account(session, name)
            session.exec(delete(SessionRow).where(col(SessionRow.user_name) == name))
            session.exec(delete(TokenRow).where(col(TokenRow.user_name) == name))
            session.delete(row)
            session.flush()
            _check_owner_left(session)

    def list(self) -> list[ListedAccount]:
        with Session(self._engine) as session:
            rows = session.exec(select(AccountRow).order_by(AccountRow.name))
            return [ListedAccount(row.name, _iso(row.created_at), UserRole(row.role)) for row in rows]

    def find_rights(self, name: str) -> Rights:
        """What a person may do, and who the owners are. Raises AccountError."""
        with Session(self._engine) as session:
            role = UserRole(_find_account(session, name).role)
            return Rights(role, () if role is UserRole.OWNER else _list_owners(session))

    def check(self, name: str, password: str) -> bool:
        """Whether this is the person's password. Takes equally long for unknown names."""
        with Session(self._engine) as session:
            row = session.get(AccountRow, name)
        return _verify_password(row.password_hash if row else _unmatchable_hash(), password) and row is not None

    def open_session(self, name: str, address: str = "", browser: str = "") -> str:
        """Open a session of a person and return the cookie's value. Expired sessions are deleted."""
        key, now = secrets.token_urlsafe(32), _now()
        row = SessionRow(
            key_hash=_hash_secret(key),
            user_name=name,
            expires_at=now + SESSION_LASTS,
            opened_at=now,
            address=address,
            browser=browser[:MAX_BROWSER_CHARS],
        )
        with writing(self._engine) as session:
            session.exec(delete(SessionRow).where(col(SessionRow.expires_at) < now))
            session.add(row)
        return key

    def session_user(self, key: str) -> str | None:
        """The user of an open session; None when it is unknown or has expired."""
        with Session(self._engine) as session:
            row = session.get(SessionRow, _hash_secret(key))
        return row.user_name if row is not None and row.expires_at.replace(tzinfo=UTC) > _now() else None

    def close_session(self, key: str) -> None:
        with writing(self._engine) as session:
            session.exec(delete(SessionRow).where(col(SessionRow.key_hash) == _hash_secret(key)))

    def list_sessions(self, name: str = "") -> Sequence[ListedSession]:
        """The open sessions of a person, or of everybody, newest first."""
        query = (
            select(SessionRow).where(col(SessionRow.expires_at) > _now()).order_by(col(SessionRow.expires_at).desc())
        )
        with Session(self._engine) as session:
            rows = session.exec(query.where(SessionRow.user_name == name) if name else query)
            return [_to_listed_session(row) for row in rows]

    def end_session(self, session_id: str, name: str = "") -> None:
        """End a session by its id, of this person only where a name is given. Raises AccountError."""
        condition = col(SessionRow.key_hash).startswith(session_id, autoescape=True)
        of_person = (condition, col(SessionRow.user_name) == name) if name else (condition,)
        with writing(self._engine) as session:
            gone = len(session_id) == SESSION_ID_CHARS and session.exec(delete(SessionRow).where(*of_person)).rowcount
        if not gone:
            raise AccountError(f"there is no open session {session_id!r}; it may have ended already")


def make_session_id(key: str) -> str:
    """The id under which the session of a cookie is listed."""
    return _hash_secret(key)[:SESSION_ID_CHARS]


class Tokens:
    """Clients of the served models."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, name: str, user: str = "") -> str:
        """Create a token and return it; only its hash is stored. Raises AccountError for a taken or unusable name."""
        _check_name(name)
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        with writing(self._engine, "api_token") as session:
            if session.get(TokenRow, name) is not None:
                raise AccountError(f"a token {name!r} exists already; remove it first, or choose another name")
            if user:
                _find_account(session, user)
            session.add(TokenRow(name=name, token_hash=_hash_secret(token), created_at=_now(), user_name=user))
        return token

    def remove(self, name: str, user: str | None = None) -> None:
        """Revoke a token at once, one of this person only where `user` is given. Raises AccountError."""
        with writing(self._engine) as session:
            row = session.get(TokenRow, name)
            if row is None or user not in (None, row.user_name):
                raise AccountError(f"there is no token {name!r}; `podium tokens list` shows the tokens")
            session.delete(row)

    def list(self, user: str | None = None) -> list[ListedToken]:
        """Every token, or those of a person."""
        query = select(TokenRow).order_by(TokenRow.name)
        with Session(self._engine) as session:
            rows = session.exec(query if user is None else query.where(TokenRow.user_name == user))
            return [ListedToken(row.name, _iso(row.created_at), row.user_name) for row in rows]

    def owner(self, token: str) -> str | None:
        """The name of the client with this token; None when it is unknown."""
        with Session(self._engine) as session:
            return session.exec(select(TokenRow.name).where(TokenRow.token_hash == _hash_secret(token))).first()

    def find_rights(self, name: str) -> Rights:
        """What a client may do: what the person may whose token it is."""
        with Session(self._engine) as session:
            row = session.get(TokenRow, name)
            person = session.get(AccountRow, row.user_name) if row is not None and row.user_name else None
            if row is None or (row.user_name and person is None):
                raise AccountError(f"there is no token {name!r}")
            role = UserRole(person.role) if person else UserRole.OWNER
            return Rights(role, () if role is UserRole.OWNER else _list_owners(session))


def _find_account(session: Session, name: str) -> AccountRow:
    row = session.get(AccountRow, name)
    if row is None:
        raise AccountError(f"there is no user {name!r}; `podium users list` shows the users")
    return row


def _list_owners(session: Session) -> tuple[str, ...]:
    query = select(AccountRow.name).where(AccountRow.role == UserRole.OWNER.value).order_by(AccountRow.name)
    return tuple(session.exec(query))


def _check_owner_left(session: Session) -> None:
    """Raise AccountError where people are left, but none who could make somebody an owner again."""
    if not _list_owners(session) and session.exec(select(AccountRow.name)).first() is not None:
        raise AccountError("somebody must stay an owner; make another person one first: `podium users role NAME owner`")


def _to_listed_session(row: SessionRow) -> ListedSession:
    return ListedSession(
        id=row.key_hash[:SESSION_ID_CHARS],
        user=row.user_name,
        opened_at=_iso(row.opened_at) if row.opened_at else "",
        expires_at=_iso(row.expires_at),
        address=row.address,
        browser=row.browser,
    )


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
