"""A town library's books and readers."""

AUTHOR = {"dune": "Frank Herbert", "emma": "Jane Austen", "momo": "Michael Ende", "ulysses": "James Joyce"}
PAGES = {"dune": 604, "emma": 474, "momo": 304, "ulysses": 730}
SHELF = {"Frank Herbert": "C4", "Jane Austen": "A2", "Michael Ende": "K1", "James Joyce": "B7"}
BORROWED = {"dune": "Petra", "momo": "Samir"}
FINES = {"Petra": 3.2, "Samir": 0.8, "Lotte": 12.5}


def who_wrote(title: str) -> str:
    """The author of a book."""
    return AUTHOR[title.lower()]


def page_count(title: str) -> int:
    """How many pages a book has."""
    return PAGES[title.lower()]


def find_shelf(author: str) -> str:
    """The shelf where an author's books stand."""
    return next(shelf for name, shelf in SHELF.items() if name.lower() == author.lower())


def borrower(title: str) -> str:
    """The reader who has a book at home."""
    return BORROWED[title.lower()]


def open_fines(reader: str) -> float:
    """What a reader has to pay for late returns, in euros."""
    return FINES[reader.capitalize()]


def reading_hours(pages: float) -> float:
    """Hours that it takes to read so many pages, at 40 pages an hour."""
    return pages / 40


def difference(a: float, b: float) -> float:
    """The first number less the second one."""
    return a - b
