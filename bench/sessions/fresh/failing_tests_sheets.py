"""Two red tests of a spreadsheet importer: one is a mistake in the importer, the other in the test."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, turn

ROOT = "/home/dev/sheetload"

READER = '''
"""Rows of an exported sheet as dicts."""

import csv
from pathlib import Path

REQUIRED = ("Customer", "Amount", "Due date")


class SheetError(ValueError):
    pass


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, delimiter=";")
        names = [name.strip() for name in reader.fieldnames or []]
        missing = [name for name in REQUIRED if name not in names]
        if missing:
            raise SheetError(f"{path.name} lacks the columns: {', '.join(missing)}")
        reader.fieldnames = names
        return list(reader)
'''
DUE = """
from datetime import date


def overdue(row: dict[str, str], today: date | None = None) -> bool:
    today = today or date.today()
    return date.fromisoformat(row["Due date"]) < today
"""
AMOUNTS = '''
from decimal import Decimal


def amount(text: str) -> Decimal:
    """1.234,50 as people here write it."""
    return Decimal(text.replace(".", "").replace(",", "."))
'''
TEST_READER = """
from pathlib import Path

import pytest

from sheetload.amounts import amount
from sheetload.reader import SheetError, rows

SHEETS = Path(__file__).parent / "sheets"


def test_plain():
    assert [row["Customer"] for row in rows(SHEETS / "plain.csv")] == ["Alder", "Birch"]


def test_exported_by_the_new_office_version():
    assert rows(SHEETS / "new_office.csv")[0]["Customer"] == "Cedar"


def test_missing_column(tmp_path):
    (tmp_path / "x.csv").write_text("Customer;Amount\\n")
    with pytest.raises(SheetError, match="Due date"):
        rows(tmp_path / "x.csv")


def test_amount():
    assert str(amount("1.234,50")) == "1234.50"
"""
TEST_DUE = """
from sheetload.due import overdue


def test_not_yet_overdue():
    assert not overdue({"Due date": "2026-03-31"})


def test_overdue():
    assert overdue({"Due date": "2020-01-01"})
"""

SCENARIO = Scenario(
    project="sheetload",
    began="2026-05-20T10:02:00",
    first_commit="Read sheets",
    files={
        "sheetload/__init__.py": "",
        "sheetload/reader.py": READER,
        "sheetload/due.py": DUE,
        "sheetload/amounts.py": AMOUNTS,
        "tests/test_reader.py": TEST_READER,
        "tests/test_due.py": TEST_DUE,
        "tests/sheets/plain.csv": "Customer;Amount;Due date\nAlder;10,00;2026-04-01\nBirch;1.200,00;2026-04-15\n",
        "tests/sheets/new_office.csv": "\ufeffCustomer;Amount;Due date\nCedar;99,90;2026-05-01\n",
        "conftest.py": "",
        ".gitignore": "__pycache__/\n.pytest_cache/\n.hypothesis/\n",
    },
    turns=(
        turn(
            "two tests are failing since I came back from holiday, can you get them green again? I added the new_office one right before I left but I'm pretty sure the other one used to pass",
            bash("python -m pytest -q --no-header 2>&1 | tail -40", "Run the tests"),
            read(f"{ROOT}/sheetload/reader.py"),
            bash(
                "head -c 32 tests/sheets/new_office.csv | od -c | head -3",
                "Look at the first bytes of the sheet",
            ),
            edit(f"{ROOT}/sheetload/reader.py", 'encoding="utf-8"', 'encoding="utf-8-sig"'),
            bash("python -m pytest -q --no-header tests/test_reader.py", "Run the reader's tests"),
            bash("git commit -qam 'Skip the byte order mark of exported sheets'", "Commit"),
            bash("python -m pytest -q --no-header tests/test_due.py", "Now the other one"),
            bash("cat sheetload/due.py tests/test_due.py", "Look at both sides"),
            edit(
                f"{ROOT}/tests/test_due.py",
                'assert not overdue({"Due date": "2026-03-31"})',
                'assert not overdue({"Due date": "2026-03-31"}, today=date(2026, 3, 31))',
            ),
            edit(
                f"{ROOT}/tests/test_due.py",
                "from sheetload.due",
                "from datetime import date\n\nfrom sheetload.due",
            ),
            bash("python -m pytest -q --no-header", "Run everything"),
            bash("git commit -qam 'Give test_due a date of its own' && git log --oneline", "Commit"),
            say(
                """Both are green again, and they had nothing to do with each other:

- **new_office**: the new Office version writes a byte order mark at the start of the file, so the first column was called `\\ufeffCustomer` and reported as missing. The reader opens sheets as `utf-8-sig` now, which skips the mark if there is one.
- **test_not_yet_overdue**: the test compared 2026-03-31 with the real current date, so it broke by itself on April 1st. It passes a fixed `today` now. The code was fine."""
            ),
        ),
        turn(
            "ha, ok. can you check whether any other test depends on today's date",
            bash("grep -rn 'today\\|now()' tests sheetload", "Look for the clock"),
            say(
                "No others. `test_overdue` uses the real date too, but with a due date in 2020 that can't go wrong."
            ),
        ),
    ),
)
