"""Which tests an output names as failed."""

from __future__ import annotations

import pytest

from backstory.memory import failing_tests
from backstory.memory.failing_tests import names


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("FAILED tests/test_pay.py::test_refund - assert 1 == 2", "tests/test_pay.py::test_refund"),
        (
            "FAILED tests/test_pay.py::TestPay::test_refund[0-x]",
            "tests/test_pay.py::TestPay::test_refund[0-x]",
        ),
        ("ERROR tests/test_pay.py::test_refund", "tests/test_pay.py::test_refund"),
        ("tests/test_pay.py::test_refund FAILED          [ 50%]", None),
        ("tests/test_pay.py::test_refund FAILED", "tests/test_pay.py::test_refund"),
        ("FAIL: test_refund (tests.test_pay.Pay)", "test_refund (tests.test_pay.Pay)"),
        ("--- FAIL: TestRefund (0.01s)", "TestRefund"),
        ("    --- FAIL: TestRefund/twice (0.00s)", "TestRefund/twice"),
        ("--- FAIL: TestRefund", "TestRefund"),
        ("test pay::tests::refund ... FAILED", "pay::tests::refund"),
        ("  ● Pay › refunds once", "Pay › refunds once"),
        ("    ✕ refunds once (12 ms)", "refunds once"),
        (" × refunds once 12ms", "refunds once"),
        (" FAIL  src/pay.test.ts > Pay > refunds once", "src/pay.test.ts > Pay > refunds once"),
        ("FAIL src/pay.test.ts", "src/pay.test.ts"),
        ("FAIL src/pay.test.ts (5.2 s)", "src/pay.test.ts"),
        ("rspec ./spec/pay_spec.rb:12 # Pay refunds once", "Pay refunds once"),
    ],
)
def test_each_runner_names_its_tests(line: str, name: str | None) -> None:
    assert names(f"running\n{line}\ndone") == ([name] if name else [])


@pytest.mark.parametrize(
    "line",
    [
        "src/pay.py:12:3: F401 'os' imported but unused",
        "error[E0308]: mismatched types",
        "src/pay.ts(3,1): error TS2322: Type 'x'",
        "FAIL\tgithub.com/me/pay [build failed]",
        "ok  \tgithub.com/me/pay 0.01s",
        "test pay::tests::refund ... ok",
        "  ● Test suite failed to run",
        "FAILED",
        "3 failed, 2 passed",
    ],
)
def test_lint_and_compile_errors_name_no_test(line: str) -> None:
    assert names(line) == []


def test_the_lines_of_an_error_that_is_kept_are_read_one_by_one() -> None:
    assert names("--- FAIL: TestA (0s) / pay_test.go:3: wrong / --- FAIL: TestB (0s)") == ["TestA", "TestB"]


def test_a_test_is_named_once_and_not_all_of_thousands_are() -> None:
    assert names("--- FAIL: TestA\n--- FAIL: TestA") == ["TestA"]
    assert len(names("\n".join(f"--- FAIL: Test{n}" for n in range(1_000)))) == failing_tests.MOST
