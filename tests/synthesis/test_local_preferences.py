"""A preference is what the user typed as one. What looks like it is in test_laundering.py."""

from __future__ import annotations

import pytest

from backstory.synthesis.rules.preferences import wishes
from tests.helpers.scripted_session import Script, found, one


@pytest.mark.parametrize(
    ("prompt", "wish"),
    [
        ("always ask me before you delete a branch", "Always ask me before you delete a branch"),
        ("ok, and from now on please answer in German", "From now on please answer in German"),
        ("Don't ever push to main!", "Don't ever push to main"),
        ("In future, write the tests first.", "In future, write the tests first"),
        ("Remember that staging is read-only. Thanks", "Remember that staging is read-only"),
        ("Remember to always run make check", "Remember to always run make check"),
    ],
)
def test_a_sentence_that_says_so_with_its_first_words_is_a_wish(prompt: str, wish: str) -> None:
    assert wishes(prompt) == [wish]


@pytest.mark.parametrize(
    "prompt",
    [
        "always visible",
        "never mind, use the other branch",
        "always show the newest comment first",
        "never worked for me",
        "from now on the build takes ten minutes",
        "never use pip until the mirror is back",
        "always use the old client for now",
        "always use tabs in this file",
        "never touch it when the user is logged out",
        "remember to push",
        "remember that bug is back",
        "in the future we may use uv",
        "he said never use pip",
        "always use `uv`",
        "never use pip, ok?",
        "always use uv\nnever use pip",
        "Always use uv. Never use pip. Always pin versions.",
        "always use uv " * 20,
    ],
)
def test_what_is_for_this_task_or_for_the_program_is_none(prompt: str) -> None:
    assert wishes(prompt) == []


def test_a_preference_is_the_users_and_is_kept_in_the_users_words() -> None:
    wish = one(Script().ask("please never use pip here, we use uv").say("Understood."))
    assert (wish.kind, wish.title, wish.source) == ("preference", "Never use pip here, we use uv", "user")
    assert wish.text == "The user: please never use pip here, we use uv"
    assert wish.turn == "turn0"


def test_where_nobody_is_there_nobody_wishes_anything() -> None:
    assert found(Script().ask("never use pip here, we use uv").say(), attended=False) == []
