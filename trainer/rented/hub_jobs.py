"""Hugging Face Jobs, as renting a machine needs it: prices, files there and back, one job, its log and its end.

All requests go through the official client. Files go in a private data set, which the machine sees read-only at one
revision; what it writes comes back through a private bucket.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pool_registry.atomic_write import draft_file
from pool_registry.network.hub_errors import describe_hub_error, is_network_error, list_hub_errors, read_status
from trainer.errors import TrainingFailed

if TYPE_CHECKING:
    from huggingface_hub import HfApi, JobInfo

REPOSITORY = "podium-jobs"  # the data set and the bucket, beside each other in the person's account
IMAGE = "ghcr.io/astral-sh/uv:python3.12-bookworm"
SENT, WRITTEN, WORK = "/podium/sent", "/podium/written", "/podium/work"  # folders of the machine
LABEL = "podium"
PAY = "add credit at https://huggingface.co/settings/billing"
CODES = {401: "login", 402: "credit", 403: "login"}
BUSY = (408, 429, 500, 502, 503, 504)  # passes by itself
OWN_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)  # errors of this machine's files


@dataclass(frozen=True, slots=True)
class RentedMachine:
    """One kind of machine and its price, in US dollars an hour."""

    flavor: str
    title: str
    memory: str
    hourly: float
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file in the bucket. Its `mark` is another one when its content has changed."""

    path: str
    size: int
    mark: str


@dataclass(frozen=True, slots=True)
class HubJobs:
    """Hugging Face Jobs, used with one person's login."""

    api: HfApi
    user: str

    @property
    def repository(self) -> str:
        return f"{self.user}/{REPOSITORY}"

    def list_machines(self) -> list[RentedMachine]:
        """The machines that can be rented now, the cheapest first."""
        with explain_errors("the price list"):
            hardware = self.api.list_jobs_hardware()
        machines = [
            RentedMachine(
                row.name,
                row.pretty_name,
                row.accelerator.vram if row.accelerator else row.ram,
                hourly,
                int(row.accelerator.quantity) if row.accelerator else 0,
            )
            for row in hardware
            if (hourly := hourly_price(row.unit_cost_usd, row.unit_label)) is not None
        ]
        return sorted(machines, key=lambda machine: machine.hourly)

    def is_restricted(self, model: str) -> bool:
        """Whether a model of the Hub is for those who log in: gated or private. Raises TrainingFailed."""
        with explain_errors(f"model {model}"):
            info = self.api.model_info(model)
        return bool(info.gated or info.private)

    def send_files(self, files: Mapping[str, bytes], message: str) -> str:
        """Put files into the data set, all or none. Returns the revision that holds them."""
        from huggingface_hub import CommitOperationAdd

        with explain_errors(f"data set {self.repository}"):
            self.api.create_repo(self.repository, repo_type="dataset", private=True, exist_ok=True)
            if not self.api.repo_info(self.repository, repo_type="dataset").private:
                raise TrainingFailed(
                    "public", f"the data set {self.repository} is public, and pools and recipes would be seen by "
                    "everybody; make it private at the Hub, then start again"
                )  # fmt: skip
            operations = [CommitOperationAdd(path, content) for path, content in sorted(files.items())]
            commit = self.api.create_commit(self.repository, operations, commit_message=message, repo_type="dataset")
            return str(commit.oid)

    def ensure_bucket(self) -> None:
        """Create the private bucket unless it exists. Raises TrainingFailed where it is public."""
        with explain_errors(f"bucket {self.repository}"):
            self.api.create_bucket(self.repository, private=True, exist_ok=True)
            if not self.api.bucket_info(self.repository).private:
                raise TrainingFailed(
                    "public", f"the bucket {self.repository} is public, and what the job writes would be seen by "
                    "everybody; make it private at the Hub, then start again"
                )  # fmt: skip

    def rent(
        self, job: str, attempt: int, flavor: str, command: Sequence[str], revision: str, secrets: Mapping[str, str],
        timeout_s: int,
    ) -> JobInfo:  # fmt: skip
        """Start a machine for one attempt of a job. It ends after `timeout_s` seconds at the latest."""
        from huggingface_hub import Volume

        with explain_errors(f"hf:{flavor}"):
            return self.api.run_job(
                image=IMAGE,
                command=list(command),
                secrets=dict(secrets),
                flavor=flavor,
                timeout=timeout_s,
                labels={LABEL: job, "attempt": str(attempt), "name": job},
                volumes=[
                    Volume(type="dataset", source=self.repository, mount_path=SENT, revision=revision, read_only=True),
                    Volume(type="bucket", source=self.repository, mount_path=WRITTEN, read_only=False),
                ],
                namespace=self.user,
            )

    def find(self, job: str) -> list[JobInfo]:
        """Every machine that a job has had, found by its label."""
        with explain_errors(f"job {job}"):
            return list(self.api.list_jobs(labels={LABEL: job}, namespace=self.user))

    def inspect(self, rented: JobInfo) -> JobInfo:
        with explain_errors(f"job {rented.id}"):
            return self.api.inspect_job(job_id=rented.id, namespace=self.user)

    def cancel(self, rented: JobInfo) -> None:
        with explain_errors(f"job {rented.id}"):
            self.api.cancel_job(job_id=rented.id, namespace=self.user)

    def follow_log(self, rented: JobInfo) -> Iterator[str]:
        """The lines of the machine's log from its first on, until it ends."""
        with explain_errors(f"log of {rented.id}"):
            yield from self.api.fetch_job_logs(job_id=rented.id, namespace=self.user, follow=True)

    def read_log(self, rented: JobInfo) -> list[str]:
        """All lines of the machine's log so far."""
        with explain_errors(f"log of {rented.id}"):
            return list(self.api.fetch_job_logs(job_id=rented.id, namespace=self.user))

    def list_written(self, job: str) -> list[WrittenFile]:
        """What a job has written, by paths below its folder. Raises TrainingFailed `bucket` when the bucket is gone."""
        with explain_errors(f"bucket {self.repository}", {404: "bucket"}):
            self.api.bucket_info(self.repository)
            rows = self.api.list_bucket_tree(self.repository, prefix=job, recursive=True)
            return [
                WrittenFile(row.path.removeprefix(f"{job}/"), row.size, row.xet_hash)
                for row in rows
                if row.type == "file" and row.path.startswith(f"{job}/")
            ]

    def fetch(self, job: str, path: str, target: Path) -> bool:
        """Copy a file that the job has written to `target`, as a whole or not at all; False where it is gone."""
        from huggingface_hub import HfFileSystem

        system = HfFileSystem(token=self.api.token, endpoint=self.api.endpoint, skip_instance_cache=True)
        source = f"hf://buckets/{self.repository}/{job}/{path}"
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with explain_errors(f"{path} in the bucket"), draft_file(target) as draft, draft.open("wb") as file:
                system.get_file(source, outfile=file)
        except FileNotFoundError:
            return False
        return True


def hourly_price(dollars: float, unit: str) -> float | None:
    """US dollars an hour, of a price in a unit of the Hub's list; None for a unit that is not known."""
    factor = {"second": 3600, "minute": 60, "hour": 1}.get(unit)
    return None if factor is None else dollars * factor


def open_hub_jobs() -> HubJobs:
    """Open Hugging Face Jobs with the login of this machine. Raises TrainingFailed `login` when there is none."""
    from huggingface_hub import HfApi, get_token

    token = get_token()
    if not token:
        raise TrainingFailed(
            "login", "you are not logged in to the Hub: run `hf auth login` with a token that may write and run jobs, "
            "or set HF_TOKEN"
        )  # fmt: skip
    api = HfApi(token=token, library_name="podium")
    with explain_errors("your account"):
        return HubJobs(api, str(api.whoami()["name"]))


@contextmanager
def explain_errors(what: str, codes: Mapping[int, str] = {}) -> Iterator[None]:
    """Turn the client's errors into TrainingFailed, whose code says of which sort they are; `codes` of HTTP statuses
    go before the usual ones."""
    try:
        yield
    except list_hub_errors() as error:
        if isinstance(error, FileNotFoundError) or (isinstance(error, OSError) and error.errno in OWN_DISK):
            raise
        status = read_status(error)
        code = "network" if status in BUSY or is_network_error(error) else {**CODES, **codes}.get(status or 0, "hub")
        raise TrainingFailed(code, describe_hub_error(what, error, "resume the job", PAY)) from error
