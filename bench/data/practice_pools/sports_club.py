"""Teams, players and bookings of a sports club."""

TEAMS = {
    "Falcons": {"coach": "Ines Prado", "ground": "North Field", "points": 31},
    "Otters": {"coach": "Tom Bakke", "ground": "Lake Court", "points": 27},
    "Badgers": {"coach": "Yuki Mori", "ground": "Old Mill", "points": 19},
    "Herons": {"coach": "Lars Holm", "ground": "Lake Court", "points": 22},
}
PLAYERS = {
    "Nadia": ("Falcons", 9, 14),
    "Piet": ("Otters", 4, 6),
    "Carlos": ("Badgers", 11, 9),
    "Mei": ("Herons", 7, 12),
}
CAPACITY = {"North Field": 800, "Lake Court": 350, "Old Mill": 500}
FEES = {"junior": 60, "adult": 145, "senior": 90, "family": 280}


def coach(team: str) -> str:
    """The coach of a team."""
    return TEAMS[team]["coach"]


def home_ground(team: str) -> str:
    """Which ground a team plays its home games on."""
    return TEAMS[team]["ground"]


def league_points(team: str) -> int:
    """Points that a team has in the league"""
    return TEAMS[team]["points"]


def team_of(player: str) -> str:
    """Finds out which team a player is in."""
    return PLAYERS[player][0]


def shirt_number(player: str) -> int:
    """Returns the shirt number of the given player."""
    return PLAYERS[player][1]


def goals(player: str) -> int:
    """How many goals a player has scored this season."""
    return PLAYERS[player][2]


def seats(ground: str) -> int:
    """Number of spectators that fit into a ground."""
    return CAPACITY[ground]


def membership_fee(category: str) -> int:
    """Yearly membership fee in euros for a category like junior or senior."""
    return FEES[category]
