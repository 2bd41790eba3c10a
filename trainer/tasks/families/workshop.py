"""Family `workshop`: how much of a compound a solution takes. Held out: no orchestrator learns from it.

L1: elements -> calculator (2 steps). L2: elements | units -> calculator -> units (4 steps, 3 deep).
L3: elements | elements | units -> calculator -> units -> calculator (6 steps, 4 deep, 3 wide).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from orchestrator.plan import Step, Turn
from trainer.tasks.suite import Suite, split_of
from trainer.tasks.verifier import Verifier, near_tie, to_digits
from trainer.tasks.wordings import matched, templates

_COMPOUNDS = """
    NaCl KCl NaOH KOH H3PO4 C6H12O6 C12H22O11 CaCO3 Ca(OH)2 CaCl2 CaSO4+2H2O MgSO4+7H2O MgCl2+6H2O Mg(OH)2 Na2CO3
    Na2CO3+10H2O NaHCO3 Na2SO4 Na2SO4+10H2O Na2S2O3+5H2O NaNO3 NaNO2 NaF NaBr NaI NaClO3 KNO3 KBr KI KMnO4 K2CO3
    K2SO4 K2Cr2O7 K2CrO4 K3Fe(CN)6 K4Fe(CN)6+3H2O KSCN KClO3 NH4Cl NH4NO3 (NH4)2SO4 (NH4)2CO3 (NH4)2HPO4
    NH4Fe(SO4)2+12H2O CuSO4 CuSO4+5H2O CuCl2+2H2O Cu(NO3)2+3H2O FeSO4+7H2O FeCl3 FeCl3+6H2O Fe2(SO4)3 Fe(NO3)3+9H2O
    ZnSO4+7H2O ZnCl2 Zn(NO3)2+6H2O AlCl3+6H2O Al2(SO4)3 Al2(SO4)3+18H2O KAl(SO4)2+12H2O Al(NO3)3+9H2O BaCl2+2H2O
    Ba(OH)2+8H2O Ba(NO3)2 SrCl2+6H2O Sr(NO3)2 LiCl LiOH Li2CO3 CoCl2+6H2O Co(NO3)2+6H2O NiSO4+6H2O NiCl2+6H2O
    Ni(NO3)2+6H2O MnSO4+H2O MnCl2+4H2O CrCl3+6H2O Cr(NO3)3+9H2O AgNO3 Pb(NO3)2 SnCl2+2H2O CdSO4 CdCl2 CeCl3+7H2O
    LaCl3+7H2O Na2B4O7+10H2O H3BO3 Na3PO4+12H2O Na2HPO4+12H2O NaH2PO4+2H2O K2HPO4 KH2PO4 Ca(NO3)2+4H2O Mg(NO3)2+6H2O
    H2C2O4+2H2O Na2C2O4 C6H8O7 C4H6O6 KHC8H4O4 NaC2H3O2+3H2O NH4VO3 (NH4)6Mo7O24+4H2O Na2MoO4+2H2O Na2WO4+2H2O
"""
COMPOUNDS = tuple(_COMPOUNDS.split())
LITERS = {"gallons": 3.785411784, "quarts": 0.946352946, "pints": 0.473176473, "cups": 0.2365882365}
GRAMS = {"ounce": 28.349523125, "pound": 453.59237, "grain": 0.06479891}
PLURALS = {f"{unit}s": unit for unit in GRAMS}
_FORMULA, _NUMBER = r"[A-Za-z0-9()+]{2,24}", r"\d{1,4}(?:\.\d{1,3})?"
GAPS = {
    **dict.fromkeys(("formula", "other"), _FORMULA),
    **dict.fromkeys(("amount", "second", "volume", "price"), _NUMBER),
    "volume_unit": "|".join(LITERS),
    "unit": "|".join((*PLURALS, *GRAMS)),
}
FORMULAS, AMOUNTS = ("formula", "other"), ("amount", "second")
TEMPLATES = {
    level: templates(texts, GAPS)
    for level, texts in {
        1: (
            "What is the mass of {amount} mol of {formula}, in grams to two decimals?",
            "How many grams are {amount} mol of {formula}? Give two decimals.",
            "Weigh out {amount} mol of {formula}: how much is that in grams, to two decimals?",
        ),
        2: (
            "How many {unit} of {formula} does it take to make {volume} {volume_unit} of a {amount} mol/L solution? "
            "Give two decimals.",
            "A {amount} mol/L solution of {formula} is to fill {volume} {volume_unit}. How much of the compound is in "
            "it, in {unit} to two decimals?",
            "For {volume} {volume_unit} of solution with {amount} mol/L of {formula}, find the mass of the compound in"
            " {unit}, to two decimals.",
        ),
        3: (
            "A bath of {volume} {volume_unit} holds {amount} mol/L of {formula} and {second} mol/L of {other}. What do"
            " both together cost at {price} dollars per {unit}, to two decimals?",
            "Make {volume} {volume_unit} of a bath with {amount} mol/L of {formula} and {second} mol/L of {other}. "
            "Both cost {price} dollars per {unit}. How many dollars is that, to two decimals?",
            "At {price} dollars per {unit} for either, what is to be paid for the {formula} and the {other} in "
            "{volume} {volume_unit} of a bath that holds {amount} mol/L of the one and {second} mol/L of the other? "
            "Give two decimals.",
        ),
    }.items()
}


@dataclass(frozen=True, slots=True)
class WorkshopQuery:
    """Everything a workshop query says; numbers are kept as they are written."""

    level: int
    template: int
    formulas: tuple[str, ...]
    amounts: tuple[str, ...]  # mol at level 1, else mol/L of each formula
    volume: str = ""
    volume_unit: str = ""
    unit: str = ""  # of the mass asked for, or that the price is for
    price: str = ""


class Workshop(Suite[WorkshopQuery]):
    name = "workshop"
    description = "Masses and prices of the compounds that a solution takes."
    workers = ("elements", "units", "calculator")
    held_out = True

    def draw(self, level: int, split: str, random: Random) -> WorkshopQuery:
        count = 2 if level == 3 else 1
        return WorkshopQuery(
            level=level,
            template=TEMPLATES[level].draw(split, random),
            formulas=tuple(random.sample([each for each in COMPOUNDS if split_of(each) == split], count)),
            amounts=tuple(_written(random.randint(1, 99) / 10) for _ in range(count)),
            volume=_written(random.randint(2, 400) / 10) if level > 1 else "",
            volume_unit=random.choice(list(LITERS)) if level > 1 else "",
            unit={1: "", 2: random.choice(list(PLURALS)), 3: random.choice(["ounce", "pound"])}[level],
            price=_written(random.randint(11, 999) / 100) if level == 3 else "",
        )

    def write(self, parameters: WorkshopQuery) -> str:
        p = parameters
        return TEMPLATES[p.level][p.template].fill(
            formula=p.formulas[0],
            other=p.formulas[-1],
            amount=p.amounts[0],
            second=p.amounts[-1],
            volume=p.volume,
            volume_unit=p.volume_unit,
            unit=p.unit,
            price=p.price,
        )

    def read(self, query: str) -> WorkshopQuery | None:
        found = matched(TEMPLATES, query)
        if found is None:
            return None
        level, number, said = found
        return WorkshopQuery(
            level=level,
            template=number,
            formulas=tuple(said[gap] for gap in FORMULAS if gap in said),
            amounts=tuple(said[gap] for gap in AMOUNTS if gap in said),
            volume=said.get("volume", ""),
            volume_unit=said.get("volume_unit", "").lower(),
            unit=said.get("unit", "").lower(),
            price=said.get("price", ""),
        )

    def level_of(self, parameters: WorkshopQuery) -> int:
        return parameters.level

    def new_words(self, parameters: WorkshopQuery) -> bool:
        return TEMPLATES[parameters.level].held_out(parameters.template)

    def solve(self, parameters: WorkshopQuery) -> tuple[Verifier, Turn] | None:
        p = parameters
        formulas = [_spelled().get(formula.lower(), "") for formula in p.formulas]
        if not all(formulas) or (p.unit and p.unit not in (PLURALS if p.level == 2 else GRAMS)):
            return None
        value = sum(molar_mass(formula) * float(amount) for formula, amount in zip(formulas, p.amounts, strict=True))
        if p.level > 1:
            value *= float(p.volume) * LITERS[p.volume_unit] / GRAMS[PLURALS.get(p.unit, p.unit)]
        if p.level == 3:
            value *= float(p.price)
        return None if near_tie(value, 2) else (to_digits(value, 2), _plan(p, formulas))


def _plan(p: WorkshopQuery, formulas: Sequence[str]) -> Turn:
    masses = [Step(k, "elements", {"request": f"molar mass of {each}"}) for k, each in enumerate(formulas, start=1)]
    if p.level == 1:
        return Turn((*masses, _calculate(2, f"round($1 * {p.amounts[0]}, 2)", [1])), "$2")
    volume = _convert(len(masses) + 1, _number(p.volume), p.volume_unit, "liter")
    if p.level == 2:
        mass = _calculate(3, f"$1 * {p.amounts[0]} * $2", [1, 2])
        return Turn((*masses, volume, mass, _convert(4, "$3", "gram", p.unit, [3])), "$4")
    mass = _calculate(4, f"($1 * {p.amounts[0]} + $2 * {p.amounts[1]}) * $3", [1, 2, 3])
    priced = _calculate(6, f"round($5 * {p.price}, 2)", [5])
    return Turn((*masses, volume, mass, _convert(5, "$4", "gram", p.unit, [4]), priced), "$6")


def _convert(step: int, value: str | float, from_unit: str, to_unit: str, access: Sequence[int] = ()) -> Step:
    return Step(step, "units", {"value": value, "from_unit": from_unit, "to_unit": to_unit}, tuple(access))


def _calculate(step: int, expression: str, access: Sequence[int]) -> Step:
    return Step(step, "calculator", {"expression": expression}, tuple(access))


def _written(number: float) -> str:
    return f"{number:g}"


def _number(text: str) -> float:
    """A number that JSON writes as the query does: 2 and not 2.0."""
    value = float(text)
    return int(value) if value.is_integer() else value


@cache
def molar_mass(formula: str) -> float:
    """Grams per mole by our own reading of a formula of COMPOUNDS; only the elements' masses are the library's."""
    total = 0.0
    for part in formula.split("+"):
        found = re.fullmatch(r"(\d*)(.+)", part)
        assert found is not None, "a part of a formula is never empty"
        total += int(found[1] or 1) * _part_mass(found[2])
    return total


def _part_mass(part: str) -> float:
    import periodictable

    total = 0.0
    for inner, count, symbol, times in re.findall(r"\(([A-Za-z0-9]+)\)(\d*)|([A-Z][a-z]?)(\d*)", part):
        if inner:
            total += int(count or 1) * _part_mass(inner)
        else:
            total += int(times or 1) * float(getattr(periodictable, symbol).mass)
    return total


@cache
def _spelled() -> dict[str, str]:
    """A formula in small letters -> as it is written; no two of COMPOUNDS differ in case alone."""
    return {formula.lower(): formula for formula in COMPOUNDS}
