"""The arithmetic of salience, without a store."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.memory.salience import FLOOR, deemphasized, present

shares = st.floats(0, 0.99)


@given(shares, st.integers(0, 10_000), st.floats(0.01, 1))
def test_what_is_shown_falls_by_the_amount_but_not_below_the_floor(
    salience: float, accesses: int, amount: float
) -> None:
    shown = present(salience, accesses)
    after = present(deemphasized(salience, accesses, amount), accesses)
    # Use lifts even a stored 0 above the floor.
    assert after == pytest.approx(max(FLOOR, shown - amount, present(0, accesses)))


@given(shares, st.integers(0, 10_000), st.floats(0.01, 1))
def test_what_is_stored_stays_between_0_and_1(salience: float, accesses: int, amount: float) -> None:
    assert 0 <= deemphasized(salience, accesses, amount) <= 1
