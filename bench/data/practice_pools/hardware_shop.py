"""What a hardware shop has and takes for it."""

ITEMS = {
    "claw hammer": {"price": 18.5, "stock": 24, "aisle": 3, "supplier": "Brandvold"},
    "wood screws": {"price": 4.2, "stock": 310, "aisle": 7, "supplier": "Fixwell"},
    "spirit level": {"price": 22.0, "stock": 9, "aisle": 3, "supplier": "Brandvold"},
    "paint roller": {"price": 6.9, "stock": 41, "aisle": 11, "supplier": "Colora"},
    "masking tape": {"price": 3.1, "stock": 87, "aisle": 11, "supplier": "Colora"},
    "hinges": {"price": 7.75, "stock": 60, "aisle": 8, "supplier": "Fixwell"},
}
SUPPLIERS = {
    "Brandvold": {"phone": "555-0134", "delivery_days": 6},
    "Fixwell": {"phone": "555-0177", "delivery_days": 2},
    "Colora": {"phone": "555-0102", "delivery_days": 4},
}
HOURS = {"Monday": "08:00", "Wednesday": "07:30", "Saturday": "09:00"}


def item_price(item: str) -> float:
    """Price of an item in euros."""
    return ITEMS[item]["price"]


def in_stock(item: str) -> int:
    """How many pieces of an item we have in stock (e.g. 'hinges', 'wood screws')"""
    return ITEMS[item]["stock"]


def aisle(item: str) -> int:
    """aisle where the customer finds an item"""
    return ITEMS[item]["aisle"]


def supplier_of(item: str) -> str:
    """Who supplies an item."""
    return ITEMS[item]["supplier"]


def supplier_info(supplier: str) -> dict:
    """Gets the phone number and the delivery days of a supplier."""
    return SUPPLIERS[supplier]


def opening_time(weekday: str) -> str:
    """When the shop opens on a weekday."""
    return HOURS[weekday]


def multiply(a: float, b: float) -> float:
    """Product of two numbers"""
    return a * b


def add_vat(amount: float) -> float:
    """Adds 20 % VAT to an amount in euros."""
    return round(amount * 1.2, 2)
