"""Parsing a CLAUDE.md and cleaning a text take time that grows with their size and not faster."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable

import pytest

from backstory.claude_md.write import dynamic
from backstory.claude_md.write.sections import harmless, parse, same, theirs, with_new, with_section
from tests.helpers.growth import assert_linear
from tests.helpers.sections import END, VIEWS, opening, section

pytestmark = pytest.mark.slow

HOSTILE: list[bytes] = [
    opening("a"),
    END,
    b"<!-- MANUAL -->\n",
    b"<!-- END MANUAL -->\n",
    section("a", b""),
    opening("a") + b"<!-- END MANUAL -->\n",
    b"<!--MANUAL-->\n<!--END MANUAL-->\n",
    b"<!-- AUTO-MANAGED",
    b"<!-- AUTO-MANAGED\n",
    b"<!-- - ",
    b"<!--" + b" " * 50,
    b"<!-- END END END\n",
    b"   ",
    b" \n",
    b"```\n",
    b"```x\n",
    b"~~~\n" + opening("a") + b"```\n" + END,
    dynamic.HEADER + b"\n" + opening("a"),
    dynamic.section(VIEWS) + section("a"),
    codecs.BOM_UTF8,
    b"[",
    b"- [\n",
    b"# x\n```\n",
    b"\n```\nx\n```\n",
    b"@",
    b"\\",
    b"<",
    b"\r",
]


def grows(measured: Callable[[bytes], object], unit: bytes) -> None:
    count = 25_600 // len(unit)
    assert_linear(measured, unit * count, unit * count * 4)


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_grows_with_the_file_and_not_faster(unit: bytes) -> None:
    grows(parse, unit)
    grows(theirs, unit)
    if parse(unit * 100).unclosed is None:
        grows(lambda text: with_new(text, [("new", "text")]), unit)


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_grows_with_a_text_and_not_faster(unit: bytes) -> None:
    grows(lambda text: harmless(text.decode("latin-1")), unit)
    grows(lambda text: same(text.decode("latin-1"), ""), unit)


def test_a_file_as_large_as_may_be_is_parsed_whatever_is_in_it() -> None:
    many = b"".join(section(f"n{i}", b"") for i in range(10_000))
    parts = [many, section("x") * 10_000, b"```\n" * 100_000, opening("a") * 50_000, b" " * 1_000_000]
    text = b"\n".join(parts)
    text += b"x" * (10_000_000 - len(text))
    began = time.process_time()
    parsed = parse(text)
    assert time.process_time() - began < 10
    assert len(parsed.sections) == 10_000
    assert {"x", "a"} <= {problem.name for problem in parsed.problems}
    made = section("n9999", b"new\n")
    assert with_section(text, "n9999", "new") == text.replace(section("n9999", b""), made)
