"""A total that is a cent off: a first idea that does not help, a fix, and a wish about money."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, turn, write

ROOT = "/home/dev/ledgerly"

INVOICE = '''
"""What a customer owes."""

from dataclasses import dataclass, field
from decimal import Decimal

from ledgerly.tax import rate_for

CENT = Decimal("0.01")


@dataclass
class Line:
    sku: str
    quantity: int
    price: Decimal
    category: str = "standard"

    def net(self):
        return self.price * self.quantity

    def tax(self):
        return (self.net() * rate_for(self.category)).quantize(CENT)


@dataclass
class Invoice:
    number: str
    lines: list[Line] = field(default_factory=list)

    def net(self):
        return sum((line.net() for line in self.lines), Decimal(0))

    def tax(self):
        return sum((line.tax() for line in self.lines), Decimal(0))

    def total(self):
        return (self.net() + self.tax()).quantize(CENT)
'''
TAX = """
from decimal import Decimal

RATES = {"standard": Decimal("0.19"), "books": Decimal("0.07"), "none": Decimal(0)}


def rate_for(category):
    return RATES[category]
"""
CREDIT = """
from ledgerly.invoice import Invoice


class CreditNote:
    def __init__(self, invoice: Invoice, reason: str):
        self.invoice = invoice
        self.reason = reason

    def amount(self):
        return -self.invoice.total()
"""
REPORTS = """
def turnover(invoices):
    return round(sum(float(invoice.total()) for invoice in invoices), 2)


def by_category(invoices):
    found = {}
    for invoice in invoices:
        for line in invoice.lines:
            found[line.category] = found.get(line.category, 0) + line.net()
    return found
"""
TESTS = """
from decimal import Decimal

from ledgerly.credit import CreditNote
from ledgerly.invoice import Invoice, Line
from ledgerly.reports import turnover


def test_one_line():
    invoice = Invoice("1", [Line("mug", 2, Decimal("10.00"))])
    assert invoice.total() == Decimal("23.80")


def test_books_are_taxed_less():
    invoice = Invoice("2", [Line("atlas", 1, Decimal("100.00"), "books")])
    assert invoice.tax() == Decimal("7.00")


def test_credit_note():
    invoice = Invoice("3", [Line("mug", 1, Decimal("10.00"))])
    assert CreditNote(invoice, "broken").amount() == Decimal("-11.90")


def test_turnover():
    invoices = [Invoice("4", [Line("mug", 1, Decimal("10.00"))]) for _ in range(3)]
    assert turnover(invoices) == Decimal("35.70") or turnover(invoices) == 35.7
"""
NEW_TEST = """

def test_order_10442_agrees_with_the_payment_provider():
    lines = [Line(sku, 1, Decimal("0.65")) for sku in ("pen", "pencil", "eraser")]
    invoice = Invoice("10442", lines)
    assert invoice.tax() == Decimal("0.37")
    assert invoice.total() == Decimal("2.32")
"""

SCENARIO = Scenario(
    project="ledgerly",
    began="2026-03-03T09:12:00",
    first_commit="Invoices, credit notes, reports",
    files={
        "ledgerly/__init__.py": "",
        "ledgerly/invoice.py": INVOICE,
        "ledgerly/tax.py": TAX,
        "ledgerly/credit.py": CREDIT,
        "ledgerly/reports.py": REPORTS,
        "tests/test_invoice.py": TESTS,
        ".gitignore": "__pycache__/\n.pytest_cache/\n.hypothesis/\n",
    },
    turns=(
        turn(
            """
support says the total on the invoice is sometimes a cent less than what the payment provider charges,
e.g. order 10442 (3 items at 0.65). they show 2.32, we show 2.31. can you find out where the cent goes?
""",
            bash("ls -R ledgerly tests", "List the project"),
            read(f"{ROOT}/ledgerly/invoice.py"),
            read(f"{ROOT}/ledgerly/tax.py"),
            bash("ls fixtures/orders | grep 10442", "Look for the order's fixture"),
            bash(
                "python - <<'X'\nfrom decimal import Decimal\nfrom ledgerly.invoice import *\n"
                "i = Invoice('10442', [Line(s, 1, Decimal('0.65')) for s in 'abc'])\n"
                "print(i.net(), i.tax(), i.total(), [l.tax() for l in i.lines])\nX",
                "Reproduce the total of order 10442",
            ),
            read(f"{ROOT}/tests/test_invoice.py"),
            bash(f"cat >> tests/test_invoice.py <<'X'\n{NEW_TEST}X", "Add a test for order 10442"),
            bash("python -m pytest -q", "Run the tests"),
            edit(
                f"{ROOT}/ledgerly/invoice.py",
                "* rate_for(self.category)).quantize(CENT)",
                "* rate_for(self.category)).quantize(CENT, ROUND_HALF_UP)",
            ),
            edit(
                f"{ROOT}/ledgerly/invoice.py",
                "from decimal import Decimal\n",
                "from decimal import ROUND_HALF_UP, Decimal\n",
            ),
            bash("python -m pytest -q", "Run the tests again"),
            edit(
                f"{ROOT}/ledgerly/invoice.py",
                "* rate_for(self.category)).quantize(CENT, ROUND_HALF_UP)",
                "* rate_for(self.category)",
            ),
            edit(
                f"{ROOT}/ledgerly/invoice.py", "return (self.net() * rate_for", "return self.net() * rate_for"
            ),
            edit(
                f"{ROOT}/ledgerly/invoice.py",
                "        return sum((line.tax() for line in self.lines), Decimal(0))\n",
                "        exact = sum((line.tax() for line in self.lines), Decimal(0))\n"
                "        return exact.quantize(CENT, ROUND_HALF_UP)\n",
            ),
            bash("python -m pytest -q", "Run the tests"),
            bash(
                "git add -A && git commit -q -m 'Round tax once per invoice instead of per line' && git log --oneline -2",
                "Commit",
            ),
            say(
                """Found it. `Line.tax()` rounded the tax of every line to a cent, and `Invoice.tax()` added up the
rounded values. For order 10442 each line has 0.1235 tax, which became 0.12 three times: 0.36 instead of
0.3705, so 0.37. The provider taxes the sum.

My first idea was the rounding mode (Python rounds half to even by default), but that alone changes nothing
here. Tax is now kept exact per line and rounded once, half up, on the invoice. There is a test with the
numbers of order 10442, all five tests pass, and it is committed."""
            ),
        ),
        turn(
            "nice, thx! are credit notes affected too?",
            bash("grep -rn 'total()\\|\\.tax()' ledgerly", "Find who uses the totals"),
            read(f"{ROOT}/ledgerly/credit.py"),
            say(
                "No, they are fine: `CreditNote.amount()` is just the invoice's total with the sign turned around, "
                "so it got the fix for free. The grep shows no other place that adds up tax on its own."
            ),
        ),
        turn(
            "ok. I saw in that grep that reports.py does float(...). Never use floats for money in this codebase "
            "please, it bit us before. can you change that one as well",
            read(f"{ROOT}/ledgerly/reports.py"),
            write(
                f"{ROOT}/ledgerly/reports.py",
                REPORTS.lstrip()
                .replace(
                    "    return round(sum(float(invoice.total()) for invoice in invoices), 2)\n",
                    "    return sum((invoice.total() for invoice in invoices), Decimal(0))\n",
                )
                .replace("def turnover", "from decimal import Decimal\n\n\ndef turnover", 1),
            ),
            bash("python -m pytest -q 2>&1 | tail -3", "Run the tests"),
            bash("git commit -qam 'Turnover in Decimal, no more floats' && git status --short", "Commit"),
            say(
                "Done: `turnover()` adds up Decimals now and the last float is gone from the package. Tests pass, "
                "committed. The test for it still accepts 35.7 as a float; I can make it strict if you like."
            ),
        ),
    ),
)
