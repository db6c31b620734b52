"""What the example pages say, block by block, in reading order."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Title:
    """The document's title."""

    text: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A section's heading."""

    text: str


@dataclass(frozen=True, slots=True)
class Prose:
    """One paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A ruled table: rows of cells."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """Two columns of lines; the left one is read to its end first."""

    left: tuple[str, ...]
    right: tuple[str, ...]


Block: TypeAlias = Title | Heading | Prose | Grid | Columns


@dataclass(frozen=True, slots=True)
class Page:
    """One page between its running header and its page number."""

    header: str
    blocks: tuple[Block, ...]
    number: str


def lines_of(block: Block) -> Iterator[str]:
    """The block's text, a line for each paragraph, row or printed line."""
    match block:
        case Title(text) | Heading(text) | Prose(text):
            yield text
        case Grid(rows):
            yield from (" ".join(row) for row in rows)
        case Columns(left, right):
            yield from (*left, *right)


def page_text(page: Page) -> str:
    """Everything on the page, in reading order, one line each."""
    return "\n".join((page.header, *(line for block in page.blocks for line in lines_of(block)), page.number)) + "\n"


_ITEMS = (
    "the supplier keeps a record",
    "each visit is noted by date",
    "parts are listed by number",
    "old parts are handed back",
    "the customer signs the sheet",
    "a copy stays at the site",
    "costs are shown before work",
    "no work begins without consent",
    "the price list holds one year",
    "travel is charged by distance",
    "night work costs half as much again",
    "public holidays count as nights",
    "urgent calls come first",
    "a call is urgent if water flows",
    "or if the power has failed",
    "the answer comes within an hour",
    "the visit within four hours",
    "delay is told by telephone",
    "each delay is given a reason",
    "the reason goes in the record",
    "tools remain with the supplier",
    "keys remain with the customer",
    "doors are locked after work",
    "waste is taken away the same day",
)


def _numbered(first: int, count: int) -> tuple[str, ...]:
    return tuple(f"{n}. {_ITEMS[n - 1]}" for n in range(first, first + count))


_HEADER = "Service agreement between Northfield Works and Harbour Hall"

PAGES = (
    Page(
        header=_HEADER,
        blocks=(
            Title("Service Agreement"),
            Prose(
                "This agreement is made on 14 March 2025 between Northfield Works Limited, called the supplier, and "
                "the trustees of Harbour Hall, called the customer. It sets out what the supplier does, when it is "
                "done, what it costs, and what happens when something goes wrong."
            ),
            Heading("1 Purpose"),
            Prose(
                "The customer runs a public hall with a heating plant, a ventilation system and two passenger lifts. "
                "All of them need regular care so that the hall can open every day of the year. The supplier has "
                "looked at the plant, has read its papers, and is willing to look after it for the term of this "
                "agreement."
            ),
            Prose(
                "Both parties want the work to be planned ahead. A visit that is planned costs less than one that is "
                "not, and a part that is replaced in time does not fail on a winter evening with four hundred guests "
                "in the building."
            ),
            Heading("2 Term"),
            Prose(
                "The agreement begins on 1 April 2025 and runs for thirty-six months. It continues from year to year "
                "unless one party ends it in writing at least ninety days before the end of a year. Letters are sent "
                "to the addresses on the last page; a letter counts as received on the third working day after "
                "posting."
            ),
            Heading("3 Duties of the supplier"),
            Prose(
                "The supplier inspects the plant twelve times a year, cleans the filters in March and September, "
                "tests the safety valves in May, and sends a written report within ten working days after each visit. "
                "The report names what was found, what was done, what remains to be done, and by when."
            ),
            Prose(
                "If the supplier finds a fault that puts people at risk, the plant is switched off at once and the "
                "customer is told by telephone. The plant stays off until both parties agree that it is safe."
            ),
            Heading("4 Duties of the customer"),
            Prose(
                "The customer gives access to all rooms with plant in them, keeps the stairs clear and lit, and names "
                "two persons who may decide about costs. The customer does not alter the plant without telling the "
                "supplier beforehand."
            ),
        ),
        number="1",
    ),
    Page(
        header=_HEADER,
        blocks=(
            Heading("5 Prices"),
            Prose(
                "The prices below are in euro without value added tax. They hold for the first twelve months and then "
                "follow the index of wages in the building trade, but never by more than three percent in one year."
            ),
            Grid(
                (
                    ("Service", "Visits per year", "Price per visit", "Price per year"),
                    ("Heating plant", "12", "185.00", "2220.00"),
                    ("Ventilation", "4", "240.00", "960.00"),
                    ("Passenger lifts", "6", "310.50", "1863.00"),
                    ("Safety valves", "1", "420.00", "420.00"),
                    ("Water hygiene", "2", "95.75", "191.50"),
                    ("Total", "25", "", "5654.50"),
                )
            ),
            Heading("6 Payment"),
            Prose(
                "The supplier sends an invoice after each quarter. The customer pays within thirty days. If a payment "
                "is late, interest is due at five percent above the base rate of the central bank. The supplier may "
                "stop work when an invoice is more than sixty days late, but not before a written warning of fourteen "
                "days."
            ),
            Heading("7 Parts"),
            Prose(
                "Small parts up to 40 euro are included in the price of a visit. Larger parts are charged at the "
                "purchase price plus eight percent. The supplier keeps the most common parts in stock so that a "
                "repair does not wait for a delivery. Parts that were replaced belong to the customer until the "
                "customer gives them up."
            ),
            Heading("8 Liability"),
            Prose(
                "The supplier is insured for damage up to 2 million euro for each event. Neither party answers for "
                "events outside its control, such as storm, flood, strike or war, as long as the event lasts and for "
                "a reasonable time afterwards. Claims end two years after the party that has them came to know of "
                "them."
            ),
            Heading("9 Secrecy"),
            Prose(
                "Plans, keys and codes are given to the supplier for the work only. They are not copied, and they are "
                "handed back on the day this agreement ends. Staff of the supplier sign a promise of secrecy before "
                "the first visit."
            ),
        ),
        number="2",
    ),
    Page(
        header=_HEADER,
        blocks=(
            Heading("10 Rules of work"),
            Columns(left=_numbered(1, 12), right=_numbered(13, 12)),
            Heading("11 Closing"),
            Prose(
                "Changes to this agreement are made in writing and signed by both parties. If one clause is void, the "
                "others stay in force, and the parties agree on a clause that comes closest to what was meant. The "
                "law of the place where the hall stands applies."
            ),
            Grid(
                (
                    ("Party", "Address", "Signed by"),
                    ("Northfield Works Limited", "12 Mill Lane, Northfield", "A. Brandt"),
                    ("Trustees of Harbour Hall", "3 Quay Street, Harbour", "M. Okafor"),
                )
            ),
        ),
        number="3",
    ),
)

GOLDEN = Page(
    header="Golden page",
    blocks=(
        Title("Reading Test"),
        Prose(
            "This page is read once before the worker takes its first job. Every word of it is known, so an engine "
            "that answers quickly and wrongly is found out here and not in the documents of other people."
        ),
        Heading("Figures"),
        Grid(
            (
                ("Material", "Weight", "Length"),
                ("Copper", "8960", "125"),
                ("Timber", "540", "3200"),
                ("Granite", "2750", "600"),
            )
        ),
        Prose("The quick brown fox jumps over the lazy dog while seven wizards quietly mix blue paint for the boxes."),
    ),
    number="1",
)
