"""The one way in for text, where nobody may cut it."""

from __future__ import annotations

import pytest

from backstory.safety.clean import CUT_MARGIN, TEXT_LIMIT, clean, clean_whole
from backstory.safety.fence import RECALLED, fence

QUOTED = fence("use tabs", "backstory test")


@pytest.mark.parametrize(
    ("text", "cleaned", "is_less"),
    [
        ("plain", "plain", False),
        ("a\0b", "ab", False),  # SQLite could not hold it, but there was nothing private
        ("a <private>b</private> c", "a [redacted:private] c", True),
        (QUOTED, RECALLED, True),
    ],
)
def test_it_says_whether_something_was_left_out(text: str, cleaned: str, is_less: bool) -> None:
    assert clean_whole(text) == (cleaned, is_less)


def test_what_may_quote_recalled_text_keeps_it() -> None:
    assert clean_whole(QUOTED, may_quote=True) == (QUOTED, False)


def test_a_long_text_stays_whole() -> None:
    text = "word " * (TEXT_LIMIT + CUT_MARGIN)
    assert clean_whole(text) == (text, False)
    assert len(clean(text)) == TEXT_LIMIT
