"""Where a job runs: on this machine, or on one that Hugging Face Jobs rents out by the minute."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator

_PLACE = re.compile(r"(?P<service>here)|(?P<rented>hf):(?P<flavor>[a-z0-9][a-z0-9-]{0,63})")


@dataclass(frozen=True, slots=True)
class JobPlace:
    """`flavor` is the kind of machine, as the service names it; empty for this machine. Its text is what recipes, the
    command line and the page say: `here`, `hf:l4x1`."""

    service: Literal["here", "hf"]
    flavor: str = ""

    def __str__(self) -> str:
        return f"{self.service}:{self.flavor}" if self.flavor else self.service

    @property
    def is_rented(self) -> bool:
        return self.service != "here"


HERE = JobPlace("here")


def parse_place(text: str) -> JobPlace:
    """Parse the text of a place. Raises ValueError saying how one is written."""
    match = _PLACE.fullmatch(text.strip())
    if match is None:
        raise ValueError("write here, or hf: and a flavor of Hugging Face Jobs, such as hf:l4x1")
    return JobPlace("hf", match["flavor"]) if match["rented"] else HERE


PlaceText = Annotated[str, AfterValidator(lambda text: str(parse_place(text)))]
