"""Where a job runs: on this machine, on one that Hugging Face Jobs rents out by the minute, or on a Ray cluster; and
where its traces and curves go as well."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator

from orchestrator.errors import TrackerRefused
from orchestrator.tracking.table import parse_place as parse_tracker

_PLACE = re.compile(
    r"here|hf:(?P<flavor>[a-z0-9][a-z0-9-]{0,63})"
    r"|ray://(?P<host>\[[0-9a-fA-F:]+\]|[A-Za-z0-9][A-Za-z0-9.-]{0,252}):(?P<port>[0-9]{1,5})"
)


@dataclass(frozen=True, slots=True)
class JobPlace:
    """`flavor` is the kind of a rented machine, as the service names it; `host` and `port` are a cluster's. Its text is
    what recipes, the command line and the page say: `here`, `hf:l4x1`, `ray://10.0.0.5:10001`."""

    service: Literal["here", "hf", "ray"]
    flavor: str = ""
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        return {"here": "here", "hf": f"hf:{self.flavor}", "ray": f"ray://{self.host}:{self.port}"}[self.service]

    @property
    def is_here(self) -> bool:
        return self.service == "here"

    @property
    def is_rented(self) -> bool:
        return self.service == "hf"

    @property
    def is_cluster(self) -> bool:
        return self.service == "ray"


HERE = JobPlace("here")


def parse_place(text: str) -> JobPlace:
    """Parse the text of a place. Raises ValueError saying how one is written."""
    match = _PLACE.fullmatch(text.strip())
    if match is None or (match["port"] and not 0 < int(match["port"]) < 65536):
        raise ValueError(
            "write here, or hf: and a flavor of Hugging Face Jobs, such as hf:l4x1, or the address of a Ray cluster, "
            "such as ray://10.0.0.5:10001"
        )
    if match["host"]:
        return JobPlace("ray", host=match["host"], port=int(match["port"]))
    return JobPlace("hf", flavor=match["flavor"]) if match["flavor"] else HERE


def parse_unpaid_place(text: str) -> JobPlace:
    """Parse the text of this machine or a cluster. Raises ValueError."""
    place = parse_place(text)
    if place.is_rented:
        raise ValueError("write here, or the address of a Ray cluster, such as ray://10.0.0.5:10001")
    return place


PlaceText = Annotated[str, AfterValidator(lambda text: str(parse_place(text)))]
UnpaidPlaceText = Annotated[str, AfterValidator(lambda text: str(parse_unpaid_place(text)))]


def _check_tracker(text: str) -> str:
    try:
        parse_tracker(text)
    except TrackerRefused as refusal:
        raise ValueError(str(refusal)) from refusal
    return text


TrackerPlace = Annotated[str, AfterValidator(_check_tracker)]
