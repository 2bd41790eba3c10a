"""Services, incidents and who is on call for them."""

from datetime import date
from typing import Literal, TypedDict


class Service(TypedDict):
    team: str
    region: str
    version: str
    replicas: int


class Incident(TypedDict):
    incident_id: str
    service: str
    severity: int
    commander: str
    minutes_open: int


class Rota(TypedDict):
    primary: str
    secondary: str
    handover_hour: int


class Escalation(TypedDict):
    ack_minutes: int
    channel: str
    notify: str


class Engineer(TypedDict):
    timezone: str
    phone: str
    manager: str


SERVICES: dict[str, tuple[str, dict[str, tuple[str, str, int]]]] = {
    "checkout": ("Payments", {"production": ("Frankfurt", "4.11.2", 12), "staging": ("Dublin", "4.12.0", 2)}),
    "ledger": ("Payments", {"production": ("Zurich", "2.0.9", 6), "staging": ("Dublin", "2.1.0", 1)}),
    "search": ("Discovery", {"production": ("Oregon", "7.3.1", 20), "staging": ("Ohio", "7.4.0", 3)}),
    "login": ("Identity", {"production": ("Singapore", "1.18.5", 9), "staging": ("Mumbai", "1.19.0", 2)}),
    "thumbnails": ("Media", {"production": ("Montreal", "3.6.0", 15), "staging": ("Ohio", "3.6.4", 4)}),
}
INCIDENTS: dict[str, tuple[str, int, str, int]] = {
    "inc-881": ("checkout", 1, "Farida", 47),
    "inc-884": ("search", 3, "Joaquin", 190),
    "inc-890": ("login", 2, "Wendell", 25),
    "inc-893": ("thumbnails", 4, "Sunniva", 610),
    "inc-897": ("ledger", 2, "Joaquin", 88),
}
MEMBERS: dict[str, list[str]] = {
    "payments": ["Farida", "Oskar", "Leilani"],
    "discovery": ["Joaquin", "Petra", "Bram"],
    "identity": ["Wendell", "Chidi", "Aiko"],
    "media": ["Sunniva", "Marek", "Dolores"],
}
HANDOVER = {"payments": 9, "discovery": 17, "identity": 6, "media": 12}
ENGINEERS: dict[str, tuple[str, str, str]] = {
    "farida": ("Africa/Cairo", "x4410", "Gwen"),
    "oskar": ("Europe/Warsaw", "x4422", "Gwen"),
    "leilani": ("Pacific/Honolulu", "x4437", "Tobin"),
    "joaquin": ("America/Lima", "x5108", "Ravi"),
    "petra": ("Europe/Prague", "x5119", "Ravi"),
    "bram": ("Europe/Amsterdam", "x5126", "Ulrike"),
    "wendell": ("America/Denver", "x6003", "Mireille"),
    "chidi": ("Africa/Lagos", "x6014", "Mireille"),
    "aiko": ("Asia/Tokyo", "x6021", "Hector"),
    "sunniva": ("Europe/Oslo", "x7302", "Ottilie"),
    "marek": ("Europe/Bratislava", "x7315", "Ottilie"),
    "dolores": ("Europe/Madrid", "x7320", "Hector"),
}
ACK_MINUTES = {1: 5, 2: 15, 3: 60, 4: 480}
CHANNELS = {1: "warroom", 2: "firefight", 3: "triage", 4: "backlog"}
NOTIFY = {"internal": "helpdesk", "partner": "liaison", "public": "press"}


def _lookup(value: str, table: dict, what: str) -> str:
    key = value.strip().lower()
    if key not in table:
        raise ValueError(f"No such {what}: {value!r}. Known: {', '.join(table)}.")
    return key


def get_service(service: str, environment: Literal["production", "staging"] = "production") -> Service:
    """Owning team, region, version and replicas of a deployed service.

    Args:
        service: Name of the service.
        environment: Which deployment to look at.
    """
    team, deployments = SERVICES[_lookup(service, SERVICES, "service")]
    region, version, replicas = deployments[_lookup(environment, deployments, "environment")]
    return {"team": team, "region": region, "version": version, "replicas": replicas}


def get_incident(incident_id: str) -> Incident:
    """Details of one incident."""
    key = _lookup(incident_id, INCIDENTS, "incident")
    service, severity, commander, minutes = INCIDENTS[key]
    return {
        "incident_id": key.upper(),
        "service": service,
        "severity": severity,
        "commander": commander,
        "minutes_open": minutes,
    }


def open_incidents(services: list[str], worst_severity: int = 1, mildest_severity: int = 4) -> list[Incident]:
    """List the open incidents of some services, most severe first (1 is the worst, 4 the mildest).

    Args:
        services: Names of the services to look at.
        worst_severity: Leave out anything more severe than this.
        mildest_severity: Leave out anything less severe than this.
    """
    wanted = [_lookup(service, SERVICES, "service") for service in services]
    found = [get_incident(key) for key, row in INCIDENTS.items() if row[0] in wanted]
    found = [one for one in found if worst_severity <= one["severity"] <= mildest_severity]
    return sorted(found, key=lambda one: one["severity"])


def on_call(team: str, day: str) -> Rota:
    """Tells you which engineers of a team carry the pager on a day (YYYY-MM-DD), and when they hand over."""
    key = _lookup(team, MEMBERS, "team")
    people = MEMBERS[key]
    turn = date.fromisoformat(day.strip()).day % len(people)
    return {
        "primary": people[turn],
        "secondary": people[(turn + 1) % len(people)],
        "handover_hour": HANDOVER[key],
    }


def engineer(name: str) -> Engineer:
    """Contact sheet of an engineer."""
    timezone, phone, manager = ENGINEERS[_lookup(name, ENGINEERS, "engineer")]
    return {"timezone": timezone, "phone": phone, "manager": manager}


def escalation_policy(
    severity: int, audience: Literal["internal", "partner", "public"] = "internal", attempt: int = 1
) -> Escalation:
    """How fast an incident has to be acknowledged, in which channel, and who is told about it.

    Args:
        severity: 1 (worst) to 4.
        audience: Who is affected by the incident.
        attempt: Each further attempt halves the time.
    """
    if severity not in ACK_MINUTES:
        raise ValueError(f"No severity {severity!r}; the severities are 1, 2, 3 and 4.")
    return {
        "ack_minutes": ACK_MINUTES[severity] // 2 ** (attempt - 1),
        "channel": CHANNELS[severity],
        "notify": NOTIFY[_lookup(audience, NOTIFY, "audience")],
    }


def downtime_budget(slo_percent: float, window_days: int = 30, used_minutes: float = 0) -> float:
    """Minutes of downtime that an availability target still allows within a window of days."""
    return round(window_days * 1440 * (100 - slo_percent) / 100 - used_minutes, 2)
