"""Doctors, rooms and stock of a clinic."""

DOCTORS = {
    "Dr Lund": ("cardiology", 204, "Monday"),
    "Dr Okoye": ("paediatrics", 110, "Thursday"),
    "Dr Farkas": ("dermatology", 115, "Tuesday"),
    "Dr Moreau": ("neurology", 208, "Wednesday"),
    "Dr Silva": ("orthopaedics", 301, "Friday"),
}
FLOORS = {"cardiology": 2, "paediatrics": 1, "dermatology": 1, "neurology": 2, "orthopaedics": 3}
STOCK = {"ibuprofen": 140, "amoxicillin": 36, "paracetamol": 220, "cetirizine": 58, "insulin": 17}
PRICES = {"blood test": 35.0, "x-ray": 80.0, "ultrasound": 110.0, "vaccination": 22.5}
MINUTES = {"blood test": 10, "x-ray": 20, "ultrasound": 30, "vaccination": 5}


def department(doctor: str) -> str:
    """Department a doctor works in"""
    return DOCTORS[doctor][0]


def consulting_room(doctor: str) -> int:
    """the room number of the doctor's surgery"""
    return DOCTORS[doctor][1]


def late_clinic(doctor: str) -> str:
    """Tells you on which weekday a doctor holds a late clinic."""
    return DOCTORS[doctor][2]


def department_floor(department: str) -> int:
    """Returns the floor of a department."""
    return FLOORS[department]


def tablets_left(medicine: str) -> int:
    """Packs of a medicine in the pharmacy cupboard."""
    return STOCK[medicine]


def price(treatment: str) -> float:
    """Price of a treatment in euros, such as "x-ray" or "blood test"."""
    return PRICES[treatment]


def duration(treatment: str) -> int:
    """How long a treatment takes, in minutes."""
    return MINUTES[treatment]


def bmi(weight_kg: float, height_m: float) -> float:
    """Compute the body mass index from weight (kg) and height (m)."""
    return round(weight_kg / height_m**2, 1)
