"""The one way in for text, where nobody may cut it."""

from __future__ import annotations

import time

import pytest

from backstory.safety.clean import CUT_MARGIN, LONG, TEXT_LIMIT, clean, clean_whole, excerpt
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


# --- a long text, of which the beginning and the end are kept -----------------------------------------------

WORDS = "the heron stands on one leg\n"
KEY = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n" * 60


@pytest.mark.parametrize("length", [LONG // 2, LONG * 2])
@pytest.mark.parametrize(
    "opening",
    ["<private>", "<PRIVATE >", "<pri\u200bvate>", "<pr\x1b[31mivate>"],
    ids=ascii,
)
def test_what_is_private_up_to_the_end_is_in_no_excerpt(opening: str, length: int) -> None:
    text = f"begin {opening} walrus " + "walrus " * (length // 7) + " the end is a walrus"
    assert excerpt(text, 4_000).count("walrus") == 0


@pytest.mark.parametrize("length", [LONG // 2, LONG * 2])
def test_a_private_passage_or_a_key_across_a_cut_is_in_no_excerpt(length: int) -> None:
    words = WORDS * (length // len(WORDS))
    for before in range(0, 6_000, 500):
        end = "MIIE walrus </private> the end" + WORDS * (before // len(WORDS))
        shown = excerpt(f"begin {words} <private> walrus {words} {end}", 4_000)
        assert shown.startswith("begin the heron")
        assert "walrus" not in shown
        shown = excerpt(words + KEY + "-----END PRIVATE KEY-----\n" + WORDS * (before // len(WORDS)), 4_000)
        assert "MIIE" not in shown


def test_an_excerpt_of_a_long_text_has_its_beginning_its_end_and_its_size() -> None:
    text = "begin " + WORDS * LONG + "password=hunter2swordfish\nerror: no heron"
    shown = excerpt(text, 4_000)
    assert shown.startswith("begin the heron")
    assert shown.endswith("password=[redacted:password]\nerror: no heron")
    assert f" of {len(text):,} characters left out" in shown
    assert len(shown) < 4_100


def test_ten_megabytes_of_secrets_are_cut_at_once() -> None:
    started = time.process_time()
    excerpt("password=hunter2secret! " * 420_000, 24_000)
    assert time.process_time() - started < 1.5
