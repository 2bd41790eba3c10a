"""The catalogue of a small town library."""

BOOKS = {
    "Emma": {"author": "Jane Austen", "shelf": "F12", "copies": 3, "year": 1815},
    "Dracula": {"author": "Bram Stoker", "shelf": "H03", "copies": 2, "year": 1897},
    "Middlemarch": {"author": "George Eliot", "shelf": "F20", "copies": 1, "year": 1871},
    "Jane Eyre": {"author": "Charlotte Bronte", "shelf": "F15", "copies": 4, "year": 1847},
    "Persuasion": {"author": "Jane Austen", "shelf": "F13", "copies": 2, "year": 1817},
    "Villette": {"author": "Charlotte Bronte", "shelf": "F16", "copies": 1, "year": 1853},
    "Silas Marner": {"author": "George Eliot", "shelf": "F21", "copies": 5, "year": 1861},
}
BIRTHPLACES = {
    "Jane Austen": "Steventon",
    "Bram Stoker": "Clontarf",
    "George Eliot": "Nuneaton",
    "Charlotte Bronte": "Thornton",
}
MEMBERS = {"Hilda": "2025-03-14", "Marcus": "2024-11-02", "Priya": "2026-01-20", "Owen": "2025-08-09"}
LOANS = {"Hilda": 2, "Marcus": 5, "Priya": 0, "Owen": 1}


def author_of(title: str) -> str:
    """Returns the author of a book."""
    return BOOKS[title]["author"]


def shelf(title: str) -> str:
    """Where a book stands (shelf mark), e.g. 'F12'."""
    return BOOKS[title]["shelf"]


def copies_available(title: str) -> int:
    """Number of copies of a book that we own

    Args:
        title: title of the book, e.g. "Emma"
    """
    return BOOKS[title]["copies"]


def publication_year(title: str) -> int:
    """Get the year in which a book was first published."""
    return BOOKS[title]["year"]


def birthplace(author: str) -> str:
    """Look up the place where an author was born."""
    return BIRTHPLACES[author]


def member_since(member: str) -> str:
    """The date on which a member joined."""
    return MEMBERS[member]


def books_out(member: str) -> int:
    """How many books a member has borrowed."""
    return LOANS[member]


def fine(days: int) -> float:
    """Calculates the fine in pounds for a book that is a number of days late."""
    return round(0.25 * days, 2)
