"""The Hub, as publishing needs it: one commit for each repository, and nothing is public before it is complete.

All requests go through the official client. A repository that Podium did not make is never changed; in one of ours
only files of an earlier publish are deleted.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pool_registry.network.hub_errors import LOGIN, describe_hub_error, list_hub_errors
from pool_registry.secrets import resolve
from studio.publish.bundle import LISTING, Bundle
from studio.publish.request import Publication, PublishError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

NOT_OURS = frozenset({".gitattributes", "README.md"})  # the files of a new repository


def find_token(publication: Publication) -> str:
    """Find the token that the publication names, or the Hub login's. Raises PublishError or SecretNotFound."""
    from huggingface_hub import get_token

    token = resolve(publication.token).get_secret_value() if publication.token else get_token()
    if not token:
        raise PublishError(f"you are not logged in to the Hub; {LOGIN}")
    return token


@dataclass(frozen=True, slots=True)
class Hub:
    """The Hub, used with one person's token."""

    api: HfApi
    user: str

    @property
    def endpoint(self) -> str:
        return str(self.api.endpoint)

    def repo_id(self, repo: str) -> str:
        """Return OWNER/NAME; a name without an owner is the person's own."""
        return repo if "/" in repo else f"{self.user}/{repo}"

    def ensure_repo(self, repo: str, kind: str, sdk: str | None = None) -> None:
        """Create a private repository unless it exists. Raises PublishError when it exists and is not ours."""
        with explain_errors(f"{kind} {repo}"):
            if self.api.repo_exists(repo, repo_type=kind):
                self._check_ours(repo, kind)
            else:
                self.api.create_repo(repo, repo_type=kind, private=True, exist_ok=True, space_sdk=sdk)

    def commit(self, repo: str, bundle: Bundle, message: str) -> str:
        """Make the repository hold exactly the bundle and return the revision. Unchanged files are not uploaded."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        with explain_errors(f"{bundle.kind} {repo}"):
            head = self.api.repo_info(repo, repo_type=bundle.kind).sha
            operations: list[Any] = [
                CommitOperationAdd(
                    path_in_repo=entry.path,
                    path_or_fileobj=io.BytesIO(entry.content)
                    if isinstance(entry.content, bytes)
                    else str(entry.content),
                )
                for entry in bundle.entries
            ]
            stale = self._files_of_publishes(repo, bundle.kind) - {entry.path for entry in bundle.entries}
            operations += [CommitOperationDelete(path_in_repo=path) for path in sorted(stale)]
            commit = self.api.create_commit(
                repo, operations, commit_message=message, repo_type=bundle.kind, parent_commit=head
            )
            return str(commit.oid)

    def hide_if_private(self, repo: str, kind: str, private: bool) -> None:
        """Make a public repository private when `private` asks for it; done before files are sent."""
        with explain_errors(f"{kind} {repo}"):
            if private and not self.api.repo_info(repo, repo_type=kind).private:
                self.api.update_repo_settings(repo, private=True, repo_type=kind)

    def make_public(self, repo: str, kind: str) -> None:
        """Make a repository public; the last step."""
        with explain_errors(f"{kind} {repo}"):
            if self.api.repo_info(repo, repo_type=kind).private:
                self.api.update_repo_settings(repo, private=False, repo_type=kind)

    def set_secret(self, repo: str, name: str, value: str) -> None:
        with explain_errors(f"secret {name} of {repo}"):
            self.api.add_space_secret(repo, name, value)

    def request_hardware(self, repo: str, hardware: str) -> None:
        """Request hardware unless the Space has it already."""
        from huggingface_hub import SpaceHardware

        with explain_errors(f"hardware of {repo}"):
            runtime = self.api.get_space_runtime(repo)
            now = runtime.requested_hardware or runtime.hardware or "cpu-basic"
            if str(getattr(now, "value", now)) != hardware:
                self.api.request_space_hardware(repo, SpaceHardware(hardware))

    def _check_ours(self, repo: str, kind: str) -> None:
        files = set(self.api.list_repo_files(repo, repo_type=kind))
        if LISTING not in files and files - NOT_OURS:
            raise PublishError(
                f"there is a {kind} {repo} already that Podium did not make; "
                "choose another name, or empty it at the Hub"
            )

    def _files_of_publishes(self, repo: str, kind: str) -> set[str]:
        """The files of an earlier publish that are still in the repository."""
        present = set(self.api.list_repo_files(repo, repo_type=kind))
        if LISTING not in present:
            return set()
        path = self.api.hf_hub_download(repo, LISTING, repo_type=kind)
        with open(path, "rb") as file:  # noqa: PTH123
            try:
                listed = json.load(file)["files"]
            except (ValueError, KeyError, TypeError):
                return set()
        return {str(path) for path in listed} & present


def open_hub(token: str) -> Hub:
    """Open the Hub as the owner of `token`. Raises PublishError saying how to log in."""
    from huggingface_hub import HfApi

    api = HfApi(token=token, library_name="podium")
    with explain_errors("your account"):
        return Hub(api, str(api.whoami()["name"]))


@contextmanager
def explain_errors(what: str) -> Iterator[None]:
    """Turn the client's errors into a PublishError of one sentence that says what to do."""
    try:
        yield
    except list_hub_errors() as error:
        pay = "choose cpu-basic, or add one at the Hub"
        raise PublishError(describe_hub_error(what, error, "publish again", pay)) from error
