"""The `# DOCMEM Dynamic` section in the bytes of a CLAUDE.md: whatever they are, only ours change."""

from __future__ import annotations

import re
import time
from pathlib import Path
from string import ascii_lowercase, digits

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backstory.claude_md.write.dynamic import (
    END,
    HEADER,
    closing,
    has_section,
    last_place,
    layout,
    section,
    theirs,
    with_views,
    without,
)
from tests.helpers import claude
from tests.helpers.growth import assert_linear
from tests.helpers.scripted_model import ScriptedModel, say

OLD_END = b"<!-- end of DOCMEM Dynamic -->"  # as it was written once

ONE = [("ab12cd34", "ab12cd34 root:api: 2026-01-31T12:00:00Z\nThe API speaks JSON.")]
TWO = [*ONE, ("ef56gh78", "ef56gh78 note:: 2026-01-31T12:00:01Z\nTests come first.")]
FENCED = [
    ("ab12cd34", "ab12cd34 note:: 2026-01-31T12:00:00Z\n```sh\n# a comment\nmake\n```\nand ~~~\n~~~\nopen")
]
HOSTILE = [
    (
        "ab12cd34",
        "# DOCMEM Dynamic\n<!-- end of DOCMEM Dynamic -->\n```\n# DOCMEM Dynamic  \r\n"
        "<!-- end of DOCMEM Dynamic --> and more\r~~~~\n\n# A heading\n## ef56gh78\n````",
    )
]
VIEWS = (ONE, TWO, FENCED, HOSTILE)
EXAMPLE = b"```md\n# DOCMEM Dynamic\n\n## ab12cd34\n\ntext\n\n" + END + b"\n```\n"


def headers(text: bytes) -> int:
    return len(re.findall(rb"^# DOCMEM Dynamic[ \t]*\r?$", text, re.MULTILINE))


def ends(text: bytes) -> int:
    return len(re.findall(rb"^<!-- end of DOCMEM Dynamic\b", text, re.MULTILINE))


def lines(text: bytes) -> list[bytes]:
    """Those with something in them. What follows an end is one of its own."""
    found = re.sub(rb"<!-- end of DOCMEM Dynamic\b(?:[^\n]*?-->)?", rb"\g<0>\n", text).split(b"\n")
    return [line.removesuffix(b"\r") for line in found if line.strip(b"\r")]


# What a section is.


def test_a_section_has_a_header_a_subheader_for_each_view_in_the_order_given_and_an_end() -> None:
    assert section(TWO).decode() == (
        "# DOCMEM Dynamic\n"
        "\n"
        "## ab12cd34\n"
        "\n"
        "ab12cd34 root:api: 2026-01-31T12:00:00Z\n"
        "The API speaks JSON.\n"
        "\n"
        "## ef56gh78\n"
        "\n"
        "ef56gh78 note:: 2026-01-31T12:00:01Z\n"
        "Tests come first.\n"
        "\n"
        "<!-- end of DOCMEM Dynamic: backstory rewrites this; put your text outside -->\n"
    )


def test_the_section_is_the_last_one_with_one_line_break_before_it() -> None:
    assert with_views(b"# Rules\n\nBe kind.\n", ONE) == b"# Rules\n\nBe kind.\n\n" + section(ONE)


def test_a_rewrite_replaces_the_whole_section() -> None:
    text = b"# Rules\n"
    assert with_views(with_views(text, TWO), ONE) == with_views(text, ONE)
    assert b"ef56gh78" not in with_views(with_views(text, TWO), ONE)


def test_without_views_there_is_no_section() -> None:
    assert with_views(b"# Rules\n", []) == b"# Rules\n"
    assert with_views(with_views(b"# Rules\n", ONE), []) == b"# Rules\n"


def test_a_section_uses_lf_in_a_file_that_uses_crlf() -> None:
    text = b"# Rules\r\n\r\nBe kind.\r\n"
    views = [("ab12cd34", "one\r\ntwo\rthree\nfour")]
    made = with_views(text, views)
    assert made.startswith(text)
    assert b"\r" not in made[len(text) :]
    assert b"one\ntwo\nthree\nfour\n" in made
    assert without(made) == text


def test_node_text_that_looks_like_our_header_or_end_gets_a_backslash_and_the_rest_stays() -> None:
    made = section(HOSTILE)
    assert headers(made) == ends(made) == 1
    assert made.startswith(HEADER + b"\n\n## ab12cd34\n\n\\# DOCMEM Dynamic\n\\<!-- end of")
    assert (
        b"\n```\n\\# DOCMEM Dynamic  \n\\" + OLD_END + b" and more\n~~~~\n\n# A heading\n## ef56gh78\n````\n"
        in made
    )


def test_node_text_that_only_mentions_our_header_or_end_stays_as_it_is() -> None:
    text = "see # DOCMEM Dynamic\n # DOCMEM Dynamic\n# DOCMEM Dynamics\n## DOCMEM Dynamic\nx " + END.decode()
    assert text.encode() in section([("ab12cd34", text)])


def test_an_end_in_node_text_gets_a_backslash_however_it_goes_on_or_is_indented() -> None:
    for line in (END.decode(), "<!-- end of DOCMEM Dynamic", "<!-- end of DOCMEM Dynamic, or so -->"):
        for blanks in ("", " ", "    ", "\t", " \t "):
            made = section([("ab12cd34", f"one\n{blanks}{line}\ntwo")])
            assert f"one\n{blanks}\\{line}\ntwo\n".encode() in made
            assert ends(made.replace(b"\n" + blanks.encode(), b"\n")) == 1  # also when somebody shifts it


def test_control_characters_in_node_text_do_not_reach_a_terminal() -> None:
    signs = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)])).replace("\t", "").replace("\n", "")
    made = section([("ab12cd34", f"a\tb\n[{signs.replace(chr(13), '')}] caf\u00e9 \U0001f418")]).decode()
    assert f"a\tb\n[{chr(0xFFFD) * (len(signs) - 1)}] caf\u00e9 \U0001f418\n" in made
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", section([("ab12cd34", signs)]).decode())


def test_what_claude_code_would_take_for_an_import_gets_a_backslash() -> None:
    for text, shown in [
        ("@.env", r"\@.env"),
        ("see @.env, @~/.ssh/id and\n@/etc/passwd", "see \\@.env, \\@~/.ssh/id and\n\\@/etc/passwd"),
        ('(@a) *@b* _@c_ "@d" |@e| >@f', r'(\@a) *\@b* _\@c_ "\@d" |\@e| >\@f'),
        ("\u00a0@a \u200b@b \u00e9@c", "\u00a0\\@a \u200b\\@b \u00e9\\@c"),
        ("\x00@a \x85@b", "\ufffd\\@a \ufffd\\@b"),
        (r"\@a \\@b \\\@c \\\\@d x\\@e", r"\@a \\\@b \\\@c \\\\\@d x\\\@e"),
        ("\\\r@a", "\\\n\\@a"),
        ("@@a", r"\@\@a"),
    ]:
        assert section([("ab12cd34", text)]) == section([("ab12cd34", "-")]).replace(
            b"\n-\n", f"\n{shown}\n".encode()
        )


def test_html_in_node_text_that_goes_on_over_blank_lines_becomes_plain_text() -> None:
    made = section([("ab12cd34", "a\n<pre>\n  <?x\n```\n<pre>\n```\n<div>\n<PRE>")])
    assert b"\na\n&lt;pre>\n  &lt;?x\n```\n<pre>\n```\n<div>\n&lt;PRE>\n" in made


def test_an_address_is_no_import_and_stays_as_it_is() -> None:
    assert b"\nmail me@example.org, user1@host:dir\n" in section(
        [("ab12cd34", "mail me@example.org, user1@host:dir")]
    )


@pytest.mark.client
@pytest.mark.parametrize("is_raw", [False, True], ids=["as we write it", "as it is"])
def test_node_text_cannot_make_claude_code_read_a_file(home: Path, project: str, is_raw: bool) -> None:
    text = "ab12cd34 note:: 2026-01-31T12:00:00Z\nsee @secret.env\n- (x) \\\\@./other.env"
    views = [("ab12cd34", text)]
    made = with_views(b"# Rules\n", views)
    if is_raw:  # so the client does what we guard against
        made = b"# Rules\n\n" + HEADER + b"\n\n## ab12cd34\n\n" + text.encode() + b"\n\n" + END + b"\n"
    Path(project, "CLAUDE.md").write_bytes(made)
    names = ["secret.env", "other.env"]
    for name in names:
        Path(project, name).write_text(f"the walrus of {name}\n")
    with ScriptedModel(say("done")) as model:
        result = claude.run("hello", cwd=Path(project), env=claude.environment(home, model.url))
    assert result.text == "done"
    assert "2026-01-31T12:00:00Z" in model.said()  # it has read the section
    imported = [name for name in names if f"the walrus of {name}" in model.said()]
    assert imported == (names if is_raw else [])


def test_text_that_utf8_cannot_say_does_not_stop_a_view() -> None:
    assert b"half a ? pair" in section([("ab12cd34", "half a \ud83d pair")])


# Taking it out again leaves the file as it was.

FILES = {
    "empty": b"",
    "a line break": b"\n",
    "no line break at the end": b"# Rules",
    "several at the end": b"# Rules\n\n\n\n",
    "crlf": b"# Rules\r\n\r\nBe kind.\r\n",
    "crlf without a last one": b"# Rules\r\nBe kind.",
    "a lone cr at the end": b"# Rules\r",
    "mixed": b"a\r\nb\nc\rd\n\r",
    "a bom": b"\xef\xbb\xbf# Rules\n",
    "a bom alone": b"\xef\xbb\xbf",
    "a bom and an example": b"\xef\xbb\xbf" + EXAMPLE,
    "utf-16": "# Rules\n".encode("utf-16"),
    "not utf-8": b"\xff\xfe\x80 caf\xe9\n",
    "nul": b"a\0b\n\0",
    "blanks at the end": b"# Rules  \n \t ",
    "an open fence": b"# Rules\n```sh\nmake\n",
    "an open fence of tildes": b"~~~\nmake",
    "nested fences that do not match": b"```\n```json\n{}\n```\n```\n",
    "a fence in an item": b"- ```sh\n  make\n  ```\n",
    "an example": b"# Rules\n\n" + EXAMPLE,
    "an example in a longer fence": b"````\n```\n# DOCMEM Dynamic\n```\n````\n",
    "an example in tildes": b"~~~\n# DOCMEM Dynamic\n```\n~~~\ntext\n",
    "an example in an open fence": b"```\n# DOCMEM Dynamic\nnothing of ours\n",
    "an end without a header": b"# Rules\n" + END + b"\ntext\n",
    "an old end without a header": b"# Rules\n" + OLD_END + b"\ntext\n",
    "a header as text": b"see # DOCMEM Dynamic\n\n    # DOCMEM Dynamic\n\n> # DOCMEM Dynamic\n",
    "another heading": b"# DOCMEM Dynamics\n## DOCMEM Dynamic\n",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
@pytest.mark.parametrize("views", VIEWS, ids=["one", "two", "fenced", "hostile"])
def test_removing_the_section_restores_the_file_byte_for_byte(
    text: bytes, views: list[tuple[str, str]]
) -> None:
    assert not has_section(text)
    made = with_views(text, views)
    assert made == text + b"\n" + section(views)
    assert has_section(made)
    assert without(made) == text


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_ten_rewrites_leave_one_section_and_removing_it_restores_the_file(text: bytes) -> None:
    made = text
    for i in range(10):
        made = with_views(made, VIEWS[i % 4])
    assert made == text + b"\n" + section(VIEWS[9 % 4])
    assert without(made) == text


# Which sections are ours.


def test_a_section_in_a_closed_fence_is_an_example_and_stays() -> None:
    for opened, closed in [
        (b"```", b"```"),
        (b"~~~", b"~~~"),
        (b"~~~ `md`", b"~~~~~"),
        (b"   ````md", b"  `````  "),
        (b"```md", b"```\r"),
    ]:
        text = b"\n".join(
            [b"# Rules", opened, HEADER, b"", b"## ab12cd34", b"```x", END, closed, b"after", b""]
        )
        assert not has_section(text)
        assert without(with_views(text, ONE)) == text


def test_what_does_not_close_a_fence_does_not_make_an_example_ours() -> None:
    for not_closing in (b"```sh", b"~~~", b"``", b"    ```", b"\t```", b"text ```"):
        text = b"\n".join([b"```", not_closing, HEADER, b"text", b"```", b""])
        assert not has_section(text)


def test_a_fence_that_opens_an_item_of_a_list_does_not_turn_those_below_inside_out() -> None:
    items = [b"- ```sh\n  make\n  ```\n", b"*  ~~~\n   make\n   ~~~\n", b"1. ```\n   make\n   ```\n"]
    for item in (*items, b" - ```\n   make\n   ```\n"):
        text = item + b"\n```\n# DOCMEM Dynamic\n```\n~~~\n# DOCMEM Dynamic\n~~~\n"
        assert not has_section(text)


def test_what_does_not_open_a_fence_does_not_hide_our_section() -> None:
    for not_opening in (b"``", b"``` a `tick`", b"    ```", b"\t```", b"text ```", b"> ```"):
        text = not_opening + b"\ntext\n"
        made = text + b"\n" + HEADER + b"\nno end\n"
        assert without(made) == text


def test_a_fence_in_node_text_does_not_close_one_that_a_person_left_open() -> None:
    text = b"# Rules\n```sh\nmake\n"
    made = with_views(with_views(text, FENCED), HOSTILE)
    assert headers(made) == ends(made) == 1
    assert without(made) == text


def test_a_fence_that_a_person_opens_above_our_section_does_not_double_it() -> None:
    made = with_views(b"# Rules\n", FENCED)
    edited = made.replace(b"# Rules\n", b"# Rules\n```\n")
    assert with_views(edited, ONE) == b"# Rules\n```\n\n" + section(ONE)


def test_an_example_above_our_section_stays_and_the_section_goes() -> None:
    for text in (EXAMPLE, b"```\n# DOCMEM Dynamic\n\n## ab12cd34\n```\n", b"~~~\n" + HEADER + b"\n~~~"):
        assert without(with_views(with_views(text, FENCED), TWO)) == text


def test_a_doubled_section_goes_as_a_whole() -> None:
    made = with_views(b"# Rules\n", ONE)
    assert without(made + b"\n" + section(TWO)) == b"# Rules\n"
    assert without(made + section(FENCED) + section(ONE)) == b"# Rules\n"
    assert with_views(made + b"Mine.\n\n" + section(TWO), ONE) == b"# Rules\nMine.\n\n" + section(ONE)


def test_trailing_blanks_after_header_and_end_do_not_hide_a_section() -> None:
    made = with_views(b"# Rules\n", ONE).replace(HEADER, HEADER + b" \t").replace(END, END + b"  ")
    assert without(made) == b"# Rules\n"


def test_a_section_with_an_older_or_an_edited_end_goes_with_it() -> None:
    made = with_views(b"# Rules\n", FENCED)
    for end in (OLD_END, b"<!-- end of DOCMEM Dynamic, hands off! -->", b"<!-- end of DOCMEM Dynamic"):
        assert without(made.replace(END, end)) == b"# Rules\n"
        assert without(made.replace(END, end) + b"Mine -->\n") == b"# Rules\nMine -->\n"
    assert without(made.replace(END, OLD_END + b" Mine <!-- too -->")) == b"# Rules\n Mine <!-- too -->\n"
    assert without(made.replace(END, b"<!-- end of DOCMEM Dynamic\n: mine -->")) == b"# Rules\n: mine -->\n"


def test_another_comment_is_no_end() -> None:
    made = with_views(b"# Rules\n", ONE)
    other = b"<!-- end of DOCMEM Dynamics -->\n"
    assert without(made.replace(END, other + END)) == b"# Rules\n"
    assert b"\n" + other in section([("ab12cd34", other.decode())])


def test_a_section_that_an_editor_turned_into_crlf_with_its_file_goes_with_its_separator() -> None:
    made = with_views(b"# Rules\n", FENCED).replace(b"\n", b"\r\n")
    assert without(made) == b"# Rules\r\n"
    made = with_views(b"# Rules\n```\n", FENCED).replace(b"\n", b"\r\n")
    assert without(made) == b"# Rules\r\n```\r\n"


def test_a_section_without_its_last_line_break_is_whole() -> None:
    assert without(with_views(b"# Rules\n", ONE).removesuffix(b"\n")) == b"# Rules\n"


# What a person writes below our section.


def test_text_below_the_section_is_moved_above_it() -> None:
    made = with_views(b"# Rules\n", ONE) + b"\n# More rules\n\nBe brief.\n"
    assert with_views(made, TWO) == b"# Rules\n\n# More rules\n\nBe brief.\n\n" + section(TWO)
    assert without(made) == b"# Rules\n\n# More rules\n\nBe brief.\n"


def test_text_on_the_line_of_the_end_is_moved_above_it_too() -> None:
    made = with_views(b"# Rules\n", ONE).removesuffix(b"\n") + b" Be brief.\nAnd kind.\n"
    assert without(made) == b"# Rules\n Be brief.\nAnd kind.\n"


def test_text_below_does_not_run_into_a_last_line_without_a_line_break() -> None:
    assert without(with_views(b"# Rules", ONE) + b"Be brief.") == b"# Rules\nBe brief."
    assert (
        without(with_views(b"# Rules", ONE).replace(b"\n", b"\r\n") + b"Be brief.") == b"# Rules\r\nBe brief."
    )
    assert without(with_views(b"", ONE) + b"Be brief.") == b"Be brief."
    assert without(with_views(b"# Rules", ONE) + section(TWO) + b"Be brief.") == b"# Rules\nBe brief."


def test_text_below_may_be_an_example_or_an_open_fence() -> None:
    assert without(with_views(b"# Rules\n", ONE) + EXAMPLE) == b"# Rules\n" + EXAMPLE
    assert without(with_views(b"# Rules\n", ONE) + b"```\nopen\n") == b"# Rules\n```\nopen\n"


def test_a_header_right_behind_an_end_begins_another_section() -> None:
    made = with_views(b"# Rules\n", ONE).removesuffix(b"\n") + section(TWO) + b"Mine.\n"
    assert without(made) == b"# Rules\nMine.\n"


def test_an_end_too_many_is_text() -> None:
    made = with_views(b"# Rules\n", ONE) + b"Mine.\n" + END + b"\n"
    assert without(made) == b"# Rules\nMine.\n" + END + b"\n"


# Sections that are not as we write them.


def test_a_section_without_an_end_goes_up_to_the_next_heading() -> None:
    made = b"# Rules\n\n# DOCMEM Dynamic\n\n## ab12cd34\n\nstale\n\n# More rules\n\nBe brief.\n"
    assert without(made) == b"# Rules\n# More rules\n\nBe brief.\n"


def test_a_section_without_an_end_or_a_heading_below_goes_up_to_the_end_of_the_file() -> None:
    assert without(b"# Rules\n\n# DOCMEM Dynamic\n\n## ab12cd34\nstale\n") == b"# Rules\n"
    assert without(b"# DOCMEM Dynamic") == b""


def test_a_comment_in_code_is_no_heading_below_a_section_without_an_end() -> None:
    code = b"```sh\n# a comment\n```\n~~~\n# another\n~~~\n"
    made = b"# Rules\n\n# DOCMEM Dynamic\n\n" + code + b"stale\n\n# More rules\n"
    assert without(made) == b"# Rules\n# More rules\n"


def test_an_open_fence_in_a_section_without_an_end_hides_no_heading() -> None:
    made = b"# Rules\n\n# DOCMEM Dynamic\n\n```sh\nmake\n\n# More rules\n"
    assert without(made) == b"# Rules\n# More rules\n"


def test_a_section_without_an_end_leaves_the_line_above_it_whole() -> None:
    assert without(b"# Rules\n# DOCMEM Dynamic\nstale\n") == b"# Rules\n"
    assert without(b"# Rules\r\n\r\n# DOCMEM Dynamic\r\nstale\r\n") == b"# Rules\r\n"


def test_a_section_without_an_end_before_a_whole_one_goes_with_it() -> None:
    made = b"# Rules\n\n# DOCMEM Dynamic\nstale\n\n" + section(ONE) + b"Mine.\n"
    assert with_views(made, TWO) == b"# Rules\nMine.\n\n" + section(TWO)


def test_a_section_without_an_end_stops_at_a_marker_even_where_a_fence_seems_to_hold_it() -> None:
    for marker in (b"<!-- AUTO-MANAGED: a -->", b"  <!--MANUAL-->", b"<!-- END AUTO-MANAGED -->"):
        below = marker + b"\n```\nmake\n```\n"
        for text in (b"stale\n", b"```\nopen\n", b"```\n# a comment\n"):
            assert without(b"# Rules\n\n# DOCMEM Dynamic\n\n" + text + below) == b"# Rules\n" + below
    assert without(with_views(b"# Rules\n", [("ab12cd34", below.decode())])) == b"# Rules\n"


def test_a_section_without_an_end_stops_at_a_whole_one_even_where_a_fence_seems_to_hold_it() -> None:
    made = b"# Rules\n\n# DOCMEM Dynamic\n\n```\n" + section(ONE) + b"Mine.\n```\nmake\n```\n"
    assert without(made) == b"# Rules\nMine.\n```\nmake\n```\n"


def test_a_section_without_an_end_may_hold_what_a_person_wrote() -> None:
    made = with_views(b"# Rules\n", ONE)
    assert theirs(made) == theirs(made.replace(b"JSON", b"TOML")) == without(made) == b"# Rules\n"
    swallowed = made.replace(END, b"") + b"Mine.\n"
    assert without(swallowed) == b"# Rules\n"
    assert theirs(swallowed) == swallowed
    assert theirs(section(ONE) + swallowed) == swallowed


def test_a_heading_like_ours_in_a_manual_part_is_a_persons() -> None:
    for manual in (
        b"<!-- MANUAL -->\n",
        b"  <!--MANUAL-->  \r\n",
        b"```\n<!-- END MANUAL -->\n```\n<!-- MANUAL -->\n",
    ):
        for notes in (b"\nMy notes.\n", b"\n## My notes\n", b"Not ours.\n" + END + b"\n"):
            part = manual + b"# DOCMEM Dynamic\n" + notes + b"<!-- END MANUAL -->\n"
            for text in (part, b"\xef\xbb\xbf" + part, b"# Rules\n\n" + part + b"Text.\n", part + part):
                assert not has_section(text)
                assert with_views(with_views(text, ONE), TWO) == text + b"\n" + section(TWO)
                assert without(with_views(text, ONE)) == text
    below = part + b"\n# DOCMEM Dynamic\n\nstale\n"
    assert without(below) == part


def test_a_section_as_we_write_it_goes_also_from_a_manual_part() -> None:
    for end in (b"<!-- END MANUAL -->\n", b""):
        text = b"<!-- MANUAL -->\nMine.\n"
        assert without(text + b"\n" + section(TWO) + end) == text + end
    quoted = b"`<!-- MANUAL -->`\n```\n<!-- MANUAL -->\n```\n<!-- MANUAL: mine -->\n"
    assert without(quoted + b"\n# DOCMEM Dynamic\n\nstale\n") == quoted


def test_a_malformed_section_that_is_not_surely_ours_stays_and_a_new_one_is_appended() -> None:
    text = b"# Rules\n```\nopen\n# DOCMEM Dynamic\nno end\n"
    assert with_views(text, ONE) == text + b"\n" + section(ONE)
    text = b"# Rules\n```\nopen\n# DOCMEM Dynamic\nnot as we write it\n" + END + b"\n"
    assert with_views(text, ONE) == text + b"\n" + section(ONE)


# For whoever else has a part in the file.


def test_a_layout_has_sections_closed_fences_and_the_one_that_is_open() -> None:
    text = b"```\na\n```\n" + section(FENCED) + b"~~~\nb\n~~~~\n- ```\nc\n"
    found = layout(text)
    assert [text[cut.start : cut.stop] for cut in found.sections] == [section(FENCED)]
    assert [text[start:stop] for start, stop in found.fences] == [b"```\na\n", b"~~~\nb\n"]
    assert found.open_fence == text.index(b"- ```")
    assert layout(b"text\n") == ([], [], None)


def test_what_closes_a_fence_is_as_long_and_as_far_indented() -> None:
    for text, line in [
        (b"", b""),
        (b"```\nx\n```\n", b""),
        (b"```sh\nx\n", b"```"),
        (b"  ~~~~\n~~~\n", b"  ~~~~"),
        (b"- ````\n  ```", b"  ````"),
        (b"1) ```\n", b"   ```"),
        (b" + ~~~\n", b"   ~~~"),
        (b"\xef\xbb\xbf```\n", b"```"),
    ]:
        assert closing(text) == line
        assert closing(text + b"\n" + line) == b""


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_the_last_place_is_above_the_section_and_its_separator(text: bytes) -> None:
    assert last_place(text) == last_place(with_views(text, HOSTILE)) == len(text)
    assert last_place(with_views(text, ONE) + b" \r\n") == len(text)
    below = with_views(text, ONE) + b"Mine.\n"
    assert last_place(below) == len(below)


# Any bytes at all.

PIECES = st.sampled_from(
    [
        *[
            b"\n",
            b"\n",
            b"\r\n",
            b"\r",
            b" ",
            b"foo",
            b"bar\n",
            b"\xff\0",
            b"\xef\xbb\xbf",
            b"\\",
            b"`",
            b"#",
        ],
        *[
            b"# A\n",
            b"## B\n",
            b"- ```\n",
            b"```",
            b"```\n",
            b"````\n",
            b"~~~\n",
            b"~~~~",
            b"```sh\n",
            b"   ```\n",
        ],
        *[HEADER, HEADER + b"\n", HEADER + b"\n\n## x\n", HEADER + b" \r\n\r\n## x\r\n"],
        *[END, END + b"\n", END + b"\r\n", END + b"foo\n", END + HEADER + b"\n"],
        *[OLD_END + b"\n", b"<!-- end of DOCMEM Dynamic", b" -->", b"@", b"\x1b[2J"],
        *[section(ONE), b"\n" + section(FENCED), section(HOSTILE)[:-1], EXAMPLE],
        *[b"<!-- MANUAL -->\n", b"<!-- END MANUAL -->\n", b"<!-- AUTO-MANAGED: a -->\n"],
    ]
)
ANY = st.one_of(
    st.lists(PIECES, max_size=16).map(b"".join),
    st.lists(PIECES, max_size=16).map(b"\n".join),
    st.lists(st.one_of(PIECES, st.binary(max_size=8)), max_size=10).map(b"".join),
)
NODE_TEXT = st.lists(
    st.one_of(PIECES.map(lambda piece: piece.decode("latin-1")), st.text(max_size=8)), max_size=6
).map("".join)
ANY_VIEWS = st.lists(
    st.tuples(st.text(ascii_lowercase + digits, min_size=8, max_size=8), NODE_TEXT), min_size=1, max_size=3
)


LEFT_OVER = b"```\n# DOCMEM Dynamic\n\n## x\n```\nRules.\n\n" + section(ONE) + b"Mine.\n" + END + b"\n"


@pytest.mark.slow
@settings(max_examples=250)
@given(ANY, st.lists(st.one_of(*map(st.just, VIEWS), ANY_VIEWS), min_size=10, max_size=10))
@example(LEFT_OVER, [ONE] * 10)
def test_any_file_gets_one_section_that_is_last_however_often_it_is_rewritten(
    text: bytes, rewrites: list[list[tuple[str, str]]]
) -> None:
    """What is left without sections stays, byte for byte. There is one exception: an end that ends nothing,
    once no section stands between, is taken for that of an example above it; both go at the next write."""
    rest = without(text)
    assert (rest == text) is not has_section(text)
    is_settled = not has_section(rest)
    assert is_settled or (ends(rest) and re.search(rb"```|~~~|MANUAL", rest))
    made = text
    for views in rewrites:
        made = with_views(made, views)
        assert made.endswith(b"\n" + section(views))
        if is_settled:
            assert made == rest + b"\n" + section(views)
            assert with_views(made, views) == made
    assert without(made) == (rest if is_settled else made.removesuffix(b"\n" + section(rewrites[-1])))


@pytest.mark.slow
@settings(max_examples=250)
@given(ANY, ANY_VIEWS)
def test_any_file_without_a_section_is_the_same_after_views_have_come_and_gone(
    text: bytes, views: list[tuple[str, str]]
) -> None:
    assert has_section(text) or without(with_views(text, views)) == text


@pytest.mark.slow
@settings(max_examples=200)
@given(ANY_VIEWS)
def test_a_section_of_any_node_text_has_one_header_and_one_end(views: list[tuple[str, str]]) -> None:
    made = section(views)
    assert headers(made) == ends(made) == 1
    assert made.startswith(HEADER + b"\n\n## " + views[0][0].encode() + b"\n")
    assert made.endswith(b"\n" + END + b"\n")
    assert b"\r" not in made


@pytest.mark.slow
@settings(max_examples=250)
@given(ANY)
@example(b"foo\r\n" + section(ONE) + section(TWO) + b"bar")
def test_nothing_outside_of_sections_is_lost_or_made_up(text: bytes) -> None:
    """Lines above the first header and below the last end are no section, whatever is between them."""
    rest = without(text)
    left = iter(lines(text))
    assert all(line in left for line in lines(rest))  # in the same order
    first = re.search(rb"^# DOCMEM Dynamic[ \t]*\r?$", text, re.MULTILINE)
    above = text[: first.start()] if first else text
    assert rest.startswith(above.removesuffix(b"\n").removesuffix(b"\r"))
    below = (b"\n" + text).rpartition(b"\n" + END)[2]
    if ends(text) and not headers(below) and b"```" not in text and b"~~~" not in text:
        assert rest.endswith(below.lstrip(b" \t\r\n"))


WRITTEN = st.lists(
    st.sampled_from(
        [b"", b"Be kind.", b"# Rules", b"## More", b"- an item\r", b"\xff", b"```sh\n# make\n```"]
    ),
    max_size=5,
).map(lambda lines: b"".join(line + b"\n" for line in lines))


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.lists(WRITTEN, min_size=2, max_size=5),
    st.lists(st.one_of(*map(st.just, VIEWS), ANY_VIEWS), min_size=4, max_size=4),
)
def test_what_a_person_wrote_around_sections_is_all_there_without_them(
    written: list[bytes], views: list[list[tuple[str, str]]]
) -> None:
    made = written[0]
    for shown, text in zip(views, written[1:], strict=False):
        made += b"\n" + section(shown) + text
    assert without(made) == b"".join(written)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        *[HEADER + b"\n", HEADER + b"\n\n## x\n", END + b"\n", END, END + HEADER + b"\n", section(FENCED)],
        *[
            b"```\n",
            b"```x\n",
            b"~~~\n```\n",
            b"`",
            b" ",
            b"\n",
            b"# x\n",
            HEADER + b" ",
            HEADER + b"\n```x\n",
        ],
        *[END[:26], END[:26] + b"\n", HEADER + b"\n" + END[:26], HEADER + b"\n" + END[:26] * 9],
    ],
)
def test_time_grows_with_the_file_and_not_faster(unit: bytes) -> None:
    count = 40_000 // len(unit)
    assert_linear(without, unit * count, unit * count * 4)


@pytest.mark.parametrize("unit", ["@", "\\", "\\\\@", " ", "\t<!--", END.decode(), "\x00", "# DOCMEM "])
def test_time_grows_with_node_text_and_not_faster(unit: str) -> None:
    count = 40_000 // len(unit)
    assert_linear(lambda text: section([("ab12cd34", text)]), unit * count, unit * count * 4)


def test_fences_that_are_never_closed_take_no_longer() -> None:
    text = b"".join(HEADER + b"\n" + b"`" * size + b"\n" for size in range(800, 3, -1)) + b"~~~x\n" * 50_000
    began = time.process_time()
    without(text)
    assert time.process_time() - began < 3
