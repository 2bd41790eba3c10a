"""A help desk's tickets and the people who work on them."""

from datetime import date

OWNER = {"T-101": "Mira", "T-102": "Jonas", "T-103": "Mira", "T-104": "Aiko"}
OPENED = {"T-101": "2025-03-04", "T-102": "2025-02-11", "T-103": "2025-03-20", "T-104": "2025-01-30"}
PRIORITY = {"T-101": "high", "T-102": "low", "T-103": "urgent", "T-104": "normal"}
EMAIL = {"Mira": "mira@desk.example", "Jonas": "jonas@desk.example", "Aiko": "aiko@desk.example"}
OPEN = {"Mira": 7, "Jonas": 3, "Aiko": 12}


def ticket_owner(ticket_id: str) -> str:
    """Name of the person a ticket is assigned to. Ticket ids look like T-101."""
    return OWNER[ticket_id.upper()]


def ticket_date(ticket_id: str) -> str:
    """The day on which a ticket was opened."""
    return OPENED[ticket_id.upper()]


def ticket_priority(ticket_id: str) -> str:
    """How urgent a ticket is: low, normal, high or urgent."""
    return PRIORITY[ticket_id.upper()]


def email_of(person: str) -> str:
    """E-mail address of somebody on the team."""
    return EMAIL[person.capitalize()]


def workload(person: str) -> int:
    """Number of tickets that are open with a member of the team."""
    return OPEN[person.capitalize()]


def elapsed_days(start: str, end: str) -> int:
    """Days from one date to another, both as YYYY-MM-DD."""
    return (date.fromisoformat(end) - date.fromisoformat(start)).days
