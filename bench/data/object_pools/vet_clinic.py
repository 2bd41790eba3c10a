"""A small-animal clinic: patients, shifts, medicine and fees."""

from datetime import date
from typing import Literal, TypedDict


class Owner(TypedDict):
    name: str
    town: str


class Patient(TypedDict):
    species: str
    weight_kg: float
    vet: str
    owner: Owner


class Shift(TypedDict):
    room: int
    starts_at: str
    nurse: str


class Dosage(TypedDict):
    mg_per_dose: float
    doses_per_day: int
    total_mg: float


class VisitFee(TypedDict):
    gross: float
    covered: float
    to_pay: float


class StaffContact(TypedDict):
    extension: int
    language: str
    office: str


PATIENTS: dict[str, tuple[str, float, str, str, str]] = {
    "biscuit": ("dog", 18.0, "Amari", "Noor Haddad", "Fenwick"),
    "juniper": ("cat", 4.5, "Castellan", "Peter Vance", "Ostrava"),
    "thumper": ("rabbit", 2.0, "Amari", "Lucia Moreno", "Halden"),
    "magnus": ("dog", 41.0, "Yilmaz", "Owen Price", "Brickham"),
    "tofu": ("cat", 6.0, "Yilmaz", "Hana Sato", "Fenwick"),
}
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday"]
ROOMS: dict[str, list[int]] = {"amari": [3, 3, 1, 2, 5], "castellan": [4, 1, 4, 6, 1], "yilmaz": [2, 5, 3, 4, 6]}
STARTS = {"amari": "08:30", "castellan": "11:00", "yilmaz": "13:15"}
NURSES: dict[str, list[str]] = {
    "amari": ["Bea", "Bea", "Stellan", "Priya", "Stellan"],
    "castellan": ["Priya", "Stellan", "Bea", "Bea", "Priya"],
    "yilmaz": ["Stellan", "Priya", "Priya", "Stellan", "Bea"],
}
CONTACTS: dict[str, tuple[int, str, str]] = {
    "amari": (201, "French", "attic"),
    "castellan": (204, "Catalan", "annex"),
    "yilmaz": (207, "Turkish", "basement"),
    "bea": (312, "Hungarian", "pharmacy"),
    "stellan": (318, "Swedish", "reception"),
    "priya": (325, "Tamil", "laboratory"),
}
MEDICINES: dict[str, tuple[dict[str, float], int]] = {
    "meloxin": ({"dog": 0.5, "cat": 0.2, "rabbit": 1.0}, 1),
    "cefavet": ({"dog": 15.0, "cat": 10.0, "rabbit": 12.5}, 2),
    "dermapril": ({"dog": 3.0, "cat": 2.5, "rabbit": 4.0}, 3),
}
FEES = {"checkup": 48.0, "dental": 130.0, "surgery": 420.0, "grooming": 35.0}
SPECIES_FACTOR = {"dog": 1.25, "cat": 1.0, "rabbit": 0.8}
PLANS = {"none": 0.0, "basic": 0.4, "full": 0.75}
VALID_DAYS = {"rabies": 1095, "distemper": 365, "leukemia": 730}


def _known(text: str, table: dict, what: str) -> str:
    key = text.strip().lower().removeprefix("dr. ").removeprefix("dr ")
    if key not in table:
        raise ValueError(f"Unknown {what} {text!r}. We have {', '.join(table)}.")
    return key


def get_patient(pet_name: str) -> Patient:
    """Returns the file of an animal: its species, its weight, the vet who treats it, and its owner."""
    species, weight, vet, owner, town = PATIENTS[_known(pet_name, PATIENTS, "patient")]
    return {"species": species, "weight_kg": weight, "vet": vet, "owner": {"name": owner, "town": town}}


def vet_shift(vet_name: str, weekday: str) -> Shift:
    """Where and when a vet works on a weekday, and with which nurse.

    Args:
        vet_name: Last name of the vet.
        weekday: Monday to Friday.
    """
    vet = _known(vet_name, ROOMS, "vet")
    day = weekday.strip().lower()
    if day not in WEEKDAYS:
        raise ValueError(f"No shifts on {weekday!r}; the days are {', '.join(WEEKDAYS)}.")
    at = WEEKDAYS.index(day)
    return {"room": ROOMS[vet][at], "starts_at": STARTS[vet], "nurse": NURSES[vet][at]}


def dosage(medicine: str, species: Literal["dog", "cat", "rabbit"], weight_kg: float, days: int = 5) -> Dosage:
    """Compute how much of a medicine an animal gets.

    Args:
        medicine: Name of the medicine.
        species: Kind of animal.
        weight_kg: Body weight in kilograms.
        days: Length of the course of treatment.
    """
    per_kilo, times = MEDICINES[_known(medicine, MEDICINES, "medicine")]
    dose = per_kilo[_known(species, per_kilo, "species")] * weight_kg
    return {"mg_per_dose": round(dose, 2), "doses_per_day": times, "total_mg": round(dose * times * days, 2)}


def visit_fee(
    visit_type: str,
    species: Literal["dog", "cat", "rabbit"],
    insurance_plan: Literal["none", "basic", "full"] = "none",
) -> VisitFee:
    """Fee of a visit (checkup, dental, surgery, grooming) and what the insurance covers of it."""
    base = FEES[_known(visit_type, FEES, "type of visit")]
    gross = base * SPECIES_FACTOR[_known(species, SPECIES_FACTOR, "species")]
    covered = gross * PLANS[_known(insurance_plan, PLANS, "insurance plan")]
    return {"gross": round(gross, 2), "covered": round(covered, 2), "to_pay": round(gross - covered, 2)}


def staff_contact(staff_name: str) -> StaffContact:
    """Phone extension, mother tongue and office of a vet or nurse."""
    extension, language, office = CONTACTS[_known(staff_name, CONTACTS, "member of staff")]
    return {"extension": extension, "language": language, "office": office}


def days_until_booster(vaccine: str, last_given: str, today: str) -> int:
    """Days left before a vaccination has to be repeated.

    Args:
        vaccine: Which vaccine (rabies, distemper, leukemia).
        last_given: Date of the last shot, YYYY-MM-DD.
        today: Date to count from, YYYY-MM-DD.
    """
    valid = VALID_DAYS[_known(vaccine, VALID_DAYS, "vaccine")]
    passed = date.fromisoformat(today.strip()) - date.fromisoformat(last_given.strip())
    return valid - passed.days
