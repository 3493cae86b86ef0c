"""Write two days of raw orders as CSV, the same bytes every time.

Day one brings 80,000 orders. Day two changes a quarter of them, adds 20,000, and brings what real
feeds bring: late news that is already out of date, rows sent twice, refunds with the wrong sign,
cells that are no numbers. `DAYS` says how many of each, so that a run can be checked by hand.
"""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

COLUMNS = ("order_id", "customer_id", "country", "amount", "updated_at")
COUNTRIES = ("NL", "DE", "FR", "BE", "ES")
UNREADABLE = ("n/a", "12,50", "?", "EUR 7")
ORDERS = 80_000
CHANGED_EVERY = 4
FIRST_NEW = 100_001

Row = tuple[str, str, str, str, str]


@dataclass(frozen=True, kw_only=True)
class Day:
    """How many rows of each kind a day's file holds."""

    day: str
    inserted: int
    updated: int = 0
    unchanged: int = 0
    duplicates: int
    negative: int
    unreadable: int

    @property
    def quarantined(self) -> int:
        """Rows that cannot be read or break the rule on amounts."""
        return self.negative + self.unreadable

    @property
    def rows(self) -> int:
        """Lines of the file without its header."""
        kept = self.inserted + self.updated + self.unchanged
        return kept + self.duplicates + self.quarantined


DAYS = (
    Day(day="2026-01-01", inserted=ORDERS, duplicates=200, negative=60, unreadable=40),
    Day(
        day="2026-01-02",
        inserted=20_060,
        updated=ORDERS // CHANGED_EVERY,
        unchanged=1_000,
        duplicates=150,
        negative=30,
        unreadable=20,
    ),
)


def order(
    number: int,
    day: str,
    *,
    version: int = 1,
    amount: str | None = None,
    later_s: int = 0,
) -> Row:
    """One order as text; the number and version alone decide every cell."""
    cents = 500 + (number * 7_919 + version * 104_729) % 50_000
    moved = version > 1 and number % 20 == 0
    at = datetime.fromisoformat(day) + timedelta(seconds=number * 13 % 80_000 + later_s)
    return (
        str(number),
        str(1 + number * 31 % 9_973),
        COUNTRIES[(number + moved) % len(COUNTRIES)],
        f"{cents // 100}.{cents % 100:02d}" if amount is None else amount,
        at.isoformat(sep=" "),
    )


def refused(first: int, day: Day) -> Iterator[Row]:
    """Orders with a negative amount, then orders whose amount is no number."""
    for number in range(first, first + day.negative):
        yield order(number, day.day, amount=f"-{number % 90 + 1}.00")
    for number in range(first + day.negative, first + day.quarantined):
        yield order(number, day.day, amount=UNREADABLE[number % len(UNREADABLE)])


def first_day(day: Day) -> Iterator[Row]:
    """New orders only, some of them sent twice: the later line is the right one."""
    for number in range(1, day.inserted + 1):
        yield order(number, day.day)
        if number <= day.duplicates:
            yield order(number, day.day, amount="1.00", later_s=-60)
    yield from refused(ORDERS + 1, day)


def second_day(day: Day) -> Iterator[Row]:
    """Changes to every fourth order, old news about others, and new orders."""
    for number in range(CHANGED_EVERY, ORDERS + 1, CHANGED_EVERY):
        yield order(number, day.day, version=2)
        if number <= day.duplicates * CHANGED_EVERY:
            yield order(number, day.day, amount="1.00", later_s=-60)
    untouched = range(1, ORDERS + 1, CHANGED_EVERY)[: day.unchanged]
    for number in untouched[:100]:
        yield order(number, DAYS[0].day, amount="2.00", later_s=-3_600)
    for number in untouched[100:]:
        yield order(number, DAYS[0].day)
    corrected = DAYS[0].negative
    for number in range(ORDERS + 1, ORDERS + 1 + corrected):
        yield order(number, day.day)
    last_new = FIRST_NEW + day.inserted - corrected
    for number in range(FIRST_NEW, last_new):
        yield order(number, day.day)
    yield from refused(last_new, day)


def write_day(folder: Path, day: Day) -> Path:
    """Write one day's file, its lines in a fixed shuffled order."""
    rows = list(first_day(day) if day is DAYS[0] else second_day(day))
    random.Random(day.day).shuffle(rows)  # noqa: S311 - a fixed order, no secret
    path = folder / f"orders_{day.day}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    return path


def main() -> None:
    """Write both days into the folder named, by default `data` beside this file."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data"
    folder.mkdir(parents=True, exist_ok=True)
    for day in DAYS:
        write_day(folder, day)
        print(f"  orders_{day.day}.csv: {day.rows:,} rows")


if __name__ == "__main__":
    main()
