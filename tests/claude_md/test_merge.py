"""The three-way merge by lines, and git's conflicts taken apart."""

from __future__ import annotations

import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.claude_md.write import merge, sections

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "", "- x", "- y"]), max_size=8).map("\n".join)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("a\nb\nc", "a\nb\nC", "A\nb\nc", "A\nb\nC"),
        ("a\nb\nc", "a\nc", "a\nb\nc\nd", "a\nc\nd"),
        ("a\nb\nc", "a\nb\nc\nd", "a\nb\nc\nd", "a\nb\nc\nd"),
        ("a\nb\nc", "a\nb\nc\nd", "a\nb\nc\ne", None),
        ("a\nb", "A\nb", "a\nB", None),
        ("a\nb\nc", "", "a\nb\nc", ""),
        ("a\nb\nc", "", "a\nB\nc", None),
        ("a\nb\nc", "a\nb\nC", "a  \nb\nc", "a  \nb\nC"),
        ("a\nb", "a\nb\nc", "a\nB", "a\nB\nc"),
        ("a\nb", "a\nB", "x\na\nb", "x\na\nB"),
        ("a", "x\na", "A", "x\nA"),
        ("a", "a\nb", "a\nc", None),
        ("a\nb", "a\nb\nc", "D", None),
        ("a\nb", "a\nb\nc", "", None),
        ("", "a", "", "a"),
        ("", "a", "b", None),
    ],
)
def test_changes_of_other_lines_are_both_taken_and_those_of_the_same_are_not(
    base: str, ours: str, theirs: str, merged: str | None
) -> None:
    assert merge.merge(base, ours, theirs) == merged


@settings(max_examples=300)
@given(LINES, LINES)
def test_who_changed_nothing_gets_what_the_other_wrote(base: str, other: str) -> None:
    assert merge.merge(base, other, base) == other
    assert merge.merge(base, base, other) == other
    assert merge.merge(base, other, other) == other


@settings(max_examples=300)
@given(LINES, LINES, LINES)
def test_no_line_that_only_one_of_them_wrote_is_lost(base: str, ours: str, theirs: str) -> None:
    merged = merge.merge(base, ours, theirs)
    if merged is not None:
        known = set(base.split("\n"))
        for text in (ours, theirs):
            assert set(text.split("\n")) - known <= set(merged.split("\n"))


@settings(max_examples=60)
@given(LINES, LINES, LINES)
def test_what_git_merges_we_merge_alike_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, base: str, ours: str, theirs: str
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    for name, text in (("ours", ours), ("base", base), ("theirs", theirs)):
        (folder / name).write_text(f"{text}\n")
    ran = subprocess.run(
        ["git", "merge-file", "-p", "ours", "base", "theirs"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    merged = merge.merge(base, ours, theirs)
    # Which of two equal lines was added is a matter of taste, and git's is another one.
    texts = [text.split("\n") for text in (base, ours, theirs)]
    is_clear = all(len(set(lines)) == len(lines) for lines in texts)
    if merged is not None and ran.returncode == 0 and is_clear:
        assert merged + "\n" == ran.stdout


def test_texts_of_very_many_lines_are_not_merged() -> None:
    text = "\n".join(["a", "b"] * 499)
    began = time.process_time()
    assert merge.merge(text, text.replace("a", "c"), text[::-1]) is None
    assert time.process_time() - began < 10
    long = "x\n" * merge.MOST_LINES
    assert merge.merge(long, long, long) is None


ACROSS = b"""\
<!-- AUTO-MANAGED: a -->
<<<<<<< HEAD
one
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: b -->
two
=======
ONE
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: b -->
TWO
>>>>>>> feature
<!-- END AUTO-MANAGED -->
"""


def test_a_conflict_over_several_sections_becomes_one_in_each() -> None:
    made = merge.apart(ACROSS)
    parsed = sections.parse(made)
    assert parsed.problems == ()
    assert [sections.body(made, one) for one in parsed.sections] == [
        "<<<<<<< HEAD\none\n=======\nONE\n>>>>>>> feature",
        "<<<<<<< HEAD\ntwo\n=======\nTWO\n>>>>>>> feature",
    ]
    assert merge.apart(made) == made
    assert [*merge.sides(made)] == [*merge.sides(ACROSS)]


@pytest.mark.parametrize(
    "text",
    [
        ACROSS.replace(b"=======\n", b""),
        ACROSS.replace(b">>>>>>> feature\n", b""),
        ACROSS.replace(b"<!-- AUTO-MANAGED: b -->\nTWO\n", b""),
        b"Title\n=======\n>>>>>>> quoted\n",
        b"",
    ],
)
def test_what_is_no_whole_conflict_or_has_other_markers_on_each_side_stays(text: bytes) -> None:
    assert merge.apart(text) == text


def test_many_marks_take_time_in_proportion() -> None:
    began = time.process_time()
    for piece in (
        b"<<<<<<< a\n",
        b"<<<<<<< a\n=======\n",
        b"<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n",
        b"=======\n",
    ):
        text = piece * 20_000
        merge.apart(text)
        merge.first_conflict(text)
    assert time.process_time() - began < 10
