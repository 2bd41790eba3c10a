"""Kind `elements`: the molar mass of a compound, through periodictable.

A formula's text comes from a model. Only element symbols, counts, ( ), + and dots get as far as the library,
and few of them.
"""

from __future__ import annotations

import re
from typing import Any

from pool_registry.errors import BadCall
from pool_registry.load_once import LoadOnce
from pool_registry.worker import Call, NoConfig, Reply, Worker, one_string

FORMS = ("molar mass of CuSO4+5H2O", "molar mass of Ca(OH)2")
MAX_CHARS = 120
MAX_DEPTH = 4  # of parentheses; each level doubles the library's work
DIGITS = 8  # takes the noise off a sum of floats and nothing else
_REQUEST = re.compile(
    r"(?:what is )?(?:the )?(?:(?:molar|molecular) (?:mass|weight) (?:of )?)?(?P<formula>\S{1,60})(?: in g/mol)?",
    re.IGNORECASE,
)
_WRITTEN = str.maketrans({"·": "+", "*": "+", "•": "+", "⋅": "+"})
# Counts of four digits at most, one after each symbol or group, or before a part: 5H2O.
_GROUP = r"(?:[A-Z][a-z]?|\(|\))[0-9]{0,4}(?:\.[0-9]{1,3})?"
_FORMULA = re.compile(rf"(?:[0-9]{{1,4}})?(?:{_GROUP})+(?:\+(?:[0-9]{{1,4}})?(?:{_GROUP})+)*")


class Elements(Worker[NoConfig]):
    label = "Elements"
    summary = "Molar mass of a compound."
    icon = "M9 4h6 M10 4v5l-5 9a1.5 1.5 0 0 0 1.3 2.2h11.4A1.5 1.5 0 0 0 19 18l-5-9V4 M8 14h8"
    described_by = "request"
    template = None  # its task family needs it; a person would not add it
    cacheable = True
    sample = {"request": FORMS[0]}
    parameters = one_string("request", f"As in: {'; '.join(FORMS)}. The answer is in grams per mole.")

    async def call(self, call: Call) -> Reply:
        await _parser.ready()
        return Reply(molar_mass(call.text("request")))

    async def check(self) -> str:
        await _parser.ready()
        molar_mass(FORMS[0])
        return "ready"


def molar_mass(request: str) -> float:
    """Return the grams per mole of the compound in a request. Raises BadCall when there is none."""
    text = " ".join(request[:MAX_CHARS].split()).rstrip("?. ").translate(_WRITTEN)
    match = _REQUEST.fullmatch(text)
    if match is None:
        raise BadCall("write the request in one of these forms: " + "; ".join(FORMS))
    return round(_mass(match["formula"]), DIGITS)


def _mass(formula: str) -> float:
    if len(formula) > 60 or not _FORMULA.fullmatch(formula) or formula.count("(") > MAX_DEPTH:
        raise BadCall(f"{formula!r} is not a formula; write element symbols and counts, such as CuSO4+5H2O")
    try:
        return float(_parser()(formula).mass)
    except Exception as error:
        raise BadCall(f"{formula!r} is not a formula that is known here: {error}") from error


@LoadOnce
def _parser() -> Any:
    from periodictable import formula

    formula("H2O")  # the library builds its tables and its grammar at the first formula: 0.1 s
    return formula
