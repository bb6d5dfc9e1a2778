"""AUTO-MANAGED sections in the bytes of a CLAUDE.md: what is one, what is none; and nothing else changes."""

from __future__ import annotations

import codecs

import pytest

from backstory.claude_md.write import dynamic
from backstory.claude_md.write.sections import (
    NAMES,
    Parsed,
    canonical,
    get,
    parse,
    same,
    theirs,
    with_new,
    with_section,
)
from backstory.errors import BadInput, NotFound
from tests.helpers.sections import END, FILE, MANUAL, VIEWS, names, opening, section


def problems(text: bytes) -> list[tuple[int, str]]:
    """Each with its line and the section that is unsound for it."""
    return [(problem.line, problem.name) for problem in parse(text).problems]


def said(text: bytes) -> str:
    return "\n".join(problem.said for problem in parse(text).problems)


# The file as the templates make it.


def test_sections_are_found_in_order_with_their_markers_and_bodies() -> None:
    parsed = parse(FILE)
    assert names(FILE) == ["project-description", "build-commands"]
    first, second = parsed.sections
    assert FILE[first.start : first.stop] == section("project-description", b"An API.\n")
    assert FILE[first.body_start : first.body_stop] == b"An API.\n"
    assert FILE[second.body_start : second.body_stop] == b"## Build Commands\n\n```sh\nmake\n```\n"
    assert [FILE[start:stop] for start, stop in parsed.manual] == [MANUAL]
    assert parsed.problems == ()
    assert parsed.unclosed is None


def test_every_name_of_the_specification_is_one() -> None:
    text = b"".join(section(name) for name in NAMES)
    assert names(text) == list(NAMES)
    assert len(NAMES) == 8
    assert parse(text).problems == ()


def test_a_section_is_read_without_its_markers_and_outer_blank_lines() -> None:
    assert get(FILE, "project-description") == "An API."
    assert get(section("a", b"\n \t\n    code\n\n\n"), "a") == "    code"
    assert get(section("a", b""), "a") == get(section("a", b"\n\n"), "a") == ""
    assert get(section("a", b"caf\xe9\n"), "a") == "caf\ufffd"


def test_a_section_is_replaced_and_all_around_it_stays() -> None:
    made = with_section(FILE, "project-description", "\n\nThe API.\nOf ours.\n\n")
    assert made == FILE.replace(b"An API.\n", b"The API.\nOf ours.\n")
    assert with_section(made, "project-description", "The API.\nOf ours.") == made
    assert with_section(made, "project-description", "") == FILE.replace(b"An API.\n", b"")


def test_a_section_that_is_not_there_says_which_there_are() -> None:
    for call in (lambda: get(FILE, "patterns"), lambda: with_section(FILE, "patterns", "x")):
        with pytest.raises(NotFound, match=r"no section patterns; .* project-description, build-commands$"):
            call()
    with pytest.raises(NotFound, match="backstory init"):
        get(b"# Rules\n", "patterns")


def test_an_unknown_name_that_is_well_formed_is_a_section_and_no_problem() -> None:
    text = section("deployment-2")
    assert names(text) == ["deployment-2"]
    assert parse(text).problems == ()


# What is a marker.


@pytest.mark.parametrize(
    ("marker", "end"),
    [
        (b"<!-- AUTO-MANAGED: a -->", b"<!-- END AUTO-MANAGED -->"),
        (b"<!--AUTO-MANAGED:a-->", b"<!--END AUTO-MANAGED-->"),
        (b"<!--\tAUTO-MANAGED \t:  a\t-->", b"<!--   END \t AUTO-MANAGED  -->"),
        (b"   <!-- AUTO-MANAGED: a -->  \t", b" <!-- END AUTO-MANAGED --> "),
        (b"<!-- AUTO-MANAGED: a -->\r", b"<!-- END AUTO-MANAGED --> \r"),
    ],
)
def test_blanks_in_and_around_a_marker_are_free(marker: bytes, end: bytes) -> None:
    text = b"above\n" + marker + b"\nold\n" + end + b"\nbelow\n"
    assert names(text) == ["a"]
    assert parse(text).problems == ()
    made = with_section(text, "a", "new")
    assert made.replace(b"\r", b"") == text.replace(b"old", b"new").replace(b"\r", b"")
    assert get(made, "a") == "new"


@pytest.mark.parametrize(
    "line", [b"    %b", b"\t%b", b"> %b", b"- %b", b"see %b", b"`%b`", b"\\%b", b"<!-- x %b"]
)
def test_what_does_not_begin_its_line_is_text(line: bytes) -> None:
    for marker in (b"<!-- AUTO-MANAGED: a -->", b"<!-- END AUTO-MANAGED -->", b"<!-- MANUAL -->"):
        assert parse(line % marker + b"\n") == Parsed((), (), ())


@pytest.mark.parametrize(
    "comment",
    [
        b"<!-- AUTO-MANAGED -->",
        b"<!-- AUTO-MANAGED: -->",
        b"<!-- AUTO_MANAGED: a -->",
        b"<!-- AUTO MANAGED: a -->",
        b"<!-- auto-managed: a -->",
        b"<!-- AUTO-MANAGED: Build Commands -->",
        b"<!-- AUTO-MANAGED: -a -->",
        b"<!-- AUTO-MANAGED: %b -->" % (b"a" * 65),
        b"<!-- AUTO-MANAGED: caf\xc3\xa9 -->",
        b"<!-- AUTO-MANAGED: ../../etc -->",
        b"<!-- AUTO-MANAGED: a --> text",
        b"<!-- AUTO-MANAGED: a",
        b"<!-- AUTO-MANAGED: a --",
        b"<!-- AUTO-MANAGED: a --><!-- END AUTO-MANAGED -->",
        b"<!-- BEGIN AUTO-MANAGED: a -->",
        b"<!-- START AUTO-MANAGED -->",
        b"<!-- END AUTO-MANAGED: a -->",
        b"<!-- END-AUTO-MANAGED -->",
        b"<!-- ENDAUTO-MANAGED -->",
        b"<!-- /AUTO-MANAGED -->",
        b"<!-- MANUAL: notes -->",
        b"<!-- manual -->",
        b"<!-- end manual -->",
        b"<!-- END MANUAL: notes -->",
    ],
)
def test_a_malformed_or_foreign_marker_is_reported_and_is_none(comment: bytes) -> None:
    parsed = parse(b"one\n" + comment + b"\ntwo\n")
    assert (parsed.sections, parsed.manual) == ((), ())
    assert [problem.line for problem in parsed.problems] == [2]
    assert "this is no marker as backstory knows them" in parsed.problems[0].said
    text = section("a", b"one\n" + comment + b"\ntwo\n")
    assert names(text) == []
    assert (3, "a") in problems(text)


@pytest.mark.parametrize(
    "comment",
    [
        b"<!-- manual steps come first -->",
        b"<!-- Manual: see the wiki -->",
        b"<!-- MANUALLY -->",
        b"<!-- automanagedx -->",
        b"<!-- TODO -->",
        b"<!-- end of the manual -->",
        b"<!--\nAUTO-MANAGED: a\n-->",
    ],
)
def test_a_persons_own_comment_is_text(comment: bytes) -> None:
    assert parse(comment + b"\n") == Parsed((), (), ())
    assert names(section("a", comment + b"\n")) == ["a"]


# Each problem: reported with its line, skipped, and not mended.


def unsound(text: bytes, *expected: str) -> None:
    """These sections are there, and neither read nor written; the others are."""
    found = set(names(text))
    for name in expected:
        assert name not in found
        for call in (lambda name=name: get(text, name), lambda name=name: with_section(text, name, "new")):
            with pytest.raises(BadInput, match=rf"^section {name} cannot be used: line \d+: "):
                call()
    for name in found:
        assert get(with_section(text, name, "new"), name) == "new"


def test_a_section_in_a_section_makes_both_unsound() -> None:
    text = opening("a") + b"one\n" + section("b") + b"two\n" + END + section("c")
    assert problems(text) == [(1, "a"), (3, "b")]
    assert "section a has section b in it (line 3)" in said(text)
    assert "section b begins within section a (line 1)" in said(text)
    assert names(text) == ["c"]
    unsound(text, "a", "b")


def test_all_sections_in_a_section_are_unsound_however_deep() -> None:
    text = opening("a") + section("b") + opening("c") + section("d") + END + END + section("e")
    assert names(text) == ["e"]
    unsound(text, "a", "b", "c", "d")


def test_a_section_without_an_end_is_unsound_and_so_is_the_one_that_begins_in_it() -> None:
    text = b"# Rules\n" + opening("a") + b"one\n" + section("b") + section("c")
    assert problems(text) == [(2, "a"), (4, "b")]
    assert "section a has no end; add <!-- END AUTO-MANAGED --> below its text" in said(text)
    assert names(text) == ["c"]  # whatever was meant, this one has markers of its own
    unsound(text, "a", "b")


def test_a_section_without_an_end_at_the_end_of_the_file_is_unsound() -> None:
    text = section("a") + opening("b") + b"text"
    assert problems(text) == [(4, "b")]
    assert names(text) == ["a"]
    unsound(text, "b")


def test_an_end_that_ends_nothing_is_reported_and_spoils_no_section() -> None:
    text = END + section("a") + b"\n" + END + section("b")
    assert problems(text) == [(1, ""), (6, "")]
    assert "ends no section" in said(text)
    assert names(text) == ["a", "b"]


def test_a_name_that_is_there_twice_is_unsound_each_time() -> None:
    text = section("a", b"one\n") + section("b") + section("a", b"two\n") + section("a", b"three\n")
    assert problems(text) == [(1, "a"), (7, "a"), (10, "a")]
    assert "section a is there twice, also in line 7; remove one" in said(text)
    assert names(text) == ["b"]
    unsound(text, "a")


def test_a_name_is_there_twice_also_where_one_of_them_is_unsound() -> None:
    text = section("a") + opening("a") + b"no end\n"
    assert names(text) == []
    unsound(text, "a")


def test_a_section_that_ends_as_a_manual_part_does_is_unsound() -> None:
    text = opening("a") + b"one\n<!-- END MANUAL -->\n" + section("b")
    assert problems(text) == [(3, "a")]
    assert "section a ends as a MANUAL part does" in said(text)
    assert names(text) == ["b"]
    unsound(text, "a")
    unsound(opening("a") + b"one\n<!-- END MANUAL -->\n" + END, "a")
    assert names(opening("a") + section("b") + b"<!-- END MANUAL -->\n" + section("c")) == ["c"]
    unsound(opening("a") + section("b") + b"<!-- END MANUAL -->\n" + section("c"), "a", "b")


# MANUAL parts.


def test_a_manual_part_in_a_section_makes_that_one_unsound() -> None:
    text = opening("a") + b"one\n" + MANUAL + b"two\n" + END + section("b")
    parsed = parse(text)
    assert problems(text) == [(3, "a")]
    assert "a MANUAL part lies in section a; move it out of there" in said(text)
    assert [text[start:stop] for start, stop in parsed.manual] == [MANUAL]
    assert names(text) == ["b"]
    unsound(text, "a")


def test_a_section_in_a_manual_part_is_text() -> None:
    text = b"<!-- MANUAL -->\n" + section("a") + b"<!-- END MANUAL -->\n" + section("b")
    assert problems(text) == [(2, ""), (4, "")]
    assert "a marker in a MANUAL part is text" in said(text)
    assert names(text) == ["b"]
    with pytest.raises(NotFound):
        get(text, "a")


def test_a_section_may_be_named_like_one_in_a_manual_part() -> None:
    text = b"<!-- MANUAL -->\n" + section("a", b"mine\n") + b"<!-- END MANUAL -->\n" + section("a", b"ours\n")
    assert get(text, "a") == "ours"
    assert b"mine\n" in with_section(text, "a", "new")


def test_a_manual_part_without_an_end_goes_on_to_the_end_of_the_file() -> None:
    text = section("a") + b"<!-- MANUAL -->\nmine\n" + section("b")
    parsed = parse(text)
    assert names(text) == ["a"]
    assert text[slice(*parsed.manual[0])] == b"<!-- MANUAL -->\nmine\n" + section("b")
    assert (4, "") in problems(text)
    assert "this MANUAL part has no end" in said(text)
    with pytest.raises(NotFound, match=r"line 4: this MANUAL part has no end"):
        get(text, "b")


def test_an_end_of_a_manual_part_too_many_is_reported() -> None:
    text = MANUAL + b"<!-- END MANUAL -->\n" + section("a")
    assert problems(text) == [(5, "")]
    assert "this ends no MANUAL part" in said(text)
    assert names(text) == ["a"]


def test_a_manual_part_in_a_manual_part_ends_with_it() -> None:
    text = b"<!-- MANUAL -->\n" + MANUAL + section("a")
    assert problems(text) == [(2, "")]
    assert len(parse(text).manual) == 1
    assert names(text) == ["a"]


def test_a_manual_part_that_ends_as_a_section_does_goes_on() -> None:
    text = b"<!-- MANUAL -->\nmine\n" + END + section("a") + b"<!-- END MANUAL -->\n"
    assert names(text) == []
    assert len(parse(text).manual) == 1


# Code fences.


@pytest.mark.parametrize(
    ("opened", "closed"),
    [
        (b"```", b"```"),
        (b"~~~", b"~~~~"),
        (b"   ````md", b"  `````  "),
        (b"```md\r", b"```\r"),
        (b"- ```", b"  ```"),
        (b" - ```md", b"   ```"),
        (b"~~~ `x`", b"~~~"),
    ],
)
def test_markers_in_a_closed_fence_are_text(opened: bytes, closed: bytes) -> None:
    example = opened + b"\n" + section("a") + b"<!-- MANUAL -->\n<!-- AUTO_MANAGED: x -->\n" + closed + b"\n"
    assert parse(example) == Parsed((), (), ())
    text = example + section("a", b"ours\n")
    assert parse(text).problems == ()
    assert with_section(text, "a", "new") == example + section("a", b"new\n")


def test_a_fence_in_a_section_is_closed_in_it() -> None:
    text = section("a", b"```\n" + END + b"```\n") + section("b")
    assert names(text) == ["a", "b"]
    assert get(text, "a") == "```\n<!-- END AUTO-MANAGED -->\n```"


def test_markers_below_a_fence_that_is_never_closed_are_text_and_the_fence_is_reported() -> None:
    text = section("a") + b"```sh\nmake\n" + section("b") + MANUAL
    assert names(text) == ["a"]
    assert problems(text) == [(4, "")]
    assert "this code fence is never closed" in said(text)
    with pytest.raises(NotFound, match="line 4: this code fence is never closed"):
        with_section(text, "b", "new")


def test_a_fence_that_is_opened_in_a_section_and_never_closed_takes_its_end_away() -> None:
    text = section("a") + section("b", b"```\n")
    assert names(text) == ["a"]
    assert problems(text) == [(4, "b"), (5, "")]
    unsound(text, "b")


def test_a_fence_after_a_bom_is_one() -> None:
    text = codecs.BOM_UTF8 + b"```\n" + section("a") + b"```\n" + section("a", b"ours\n")
    assert get(text, "a") == "ours"
    assert dynamic.layout(text).fences == [(0, len(codecs.BOM_UTF8 + b"```\n" + section("a")))]
    assert not dynamic.has_section(codecs.BOM_UTF8 + b"```\n# DOCMEM Dynamic\n```\n")


# Line breaks, a BOM, the last line.


def test_a_file_with_crlf_stays_one() -> None:
    text = FILE.replace(b"\n", b"\r\n")
    assert names(text) == ["project-description", "build-commands"]
    assert get(text, "build-commands") == get(FILE, "build-commands")
    assert with_section(text, "build-commands", get(text, "build-commands")) == text
    made = with_section(text, "project-description", "one\ntwo\r\nthree\rfour")
    assert made == text.replace(b"An API.", b"one\r\ntwo\r\nthree\r\nfour")
    made = with_new(text, [("patterns", "one\ntwo")])
    added = section("patterns", b"one\ntwo\n") + b"\n"
    assert made == FILE.replace(MANUAL, added + MANUAL).replace(b"\n", b"\r\n")


def test_each_section_has_the_line_breaks_of_its_opening_marker() -> None:
    text = section("a") + section("b").replace(b"\n", b"\r\n")
    made = with_section(with_section(text, "a", "1\n2"), "b", "3\n4")
    assert made == section("a", b"1\n2\n") + section("b", b"3\n4\n").replace(b"\n", b"\r\n")


def test_a_marker_may_be_the_first_thing_after_a_bom() -> None:
    text = codecs.BOM_UTF8 + section("a", b"old\n")
    assert parse(text).sections[0].start == len(codecs.BOM_UTF8)
    assert with_section(text, "a", "new") == codecs.BOM_UTF8 + section("a", b"new\n")


def test_a_last_line_may_lack_its_line_break() -> None:
    text = section("a", b"old\n").removesuffix(b"\n")
    assert with_section(text, "a", "new") == section("a", b"new\n").removesuffix(b"\n")
    text = FILE.removesuffix(b"\n")
    assert parse(text).problems == ()
    assert len(parse(text).manual) == 1


def test_bytes_that_are_no_utf8_around_and_in_sections_do_no_harm() -> None:
    text = b"\xff\xfe\x80\n" + section("a", b"\xe9\0\n") + b"\xff" + b"\n"
    assert with_section(text, "a", "new") == text.replace(b"\xe9\0", b"new")


@pytest.mark.parametrize("text", [b"", b"\n", b"# Rules", codecs.BOM_UTF8])
def test_a_file_without_markers_has_no_sections_and_no_problems(text: bytes) -> None:
    assert parse(text) == Parsed((), (), ())


@pytest.mark.parametrize("text", [b"\0", "# Rules\n".encode("utf-16")])
def test_a_file_in_which_no_marker_could_be_read_says_so(text: bytes) -> None:
    (problem,) = parse(text).problems
    assert (problem.line, "save it in UTF-8" in problem.said) == (1, True)


# Docmem's section.


def test_markers_in_docmems_section_are_text() -> None:
    views = [("ab12cd34", "text\n" + (section("a", b"node\n") + MANUAL + opening("b")).decode())]
    text = dynamic.with_views(section("a", b"ours\n"), views)
    parsed = parse(text)
    assert [found.name for found in parsed.sections] == ["a"]
    assert (parsed.manual, parsed.problems) == ((), ())
    made = with_section(text, "a", "new")
    assert made == dynamic.with_views(section("a", b"new\n"), views)


def test_docmems_section_in_a_section_makes_that_one_unsound_until_docmem_moves_it() -> None:
    text = opening("a") + b"one\n\n" + dynamic.section(VIEWS) + b"two\n" + END
    assert problems(text) == [(4, "a")]
    assert "docmem's section lies in section a" in said(text)
    unsound(text, "a")
    assert get(dynamic.with_views(text, VIEWS), "a") == "one\ntwo"


def test_an_end_in_docmems_section_ends_no_section() -> None:
    text = opening("a") + b"one\n" + dynamic.section([("ab12cd34", END.decode())])
    assert (1, "a") in problems(text)
    assert names(text) == []


def test_a_docmem_section_that_lost_its_end_does_not_swallow_sections_and_manual_parts_below() -> None:
    lost = dynamic.with_views(b"# Rules\n", VIEWS).replace(dynamic.END + b"\n", b"")
    for below in (section("a"), MANUAL, b"  <!--MANUAL-->\n  mine\n", END + b"text\n"):
        assert dynamic.without(lost + below) == b"# Rules\n" + below
        assert parse(lost + below).sections == () or get(lost + below, "a") == "text"


# New sections.


def test_sections_that_are_missing_are_added_below_ours_and_above_a_persons_part() -> None:
    new = [("project-description", "no"), ("patterns", "one\ntwo\n"), ("build-commands", "no"), ("a", "")]
    made = with_new(FILE, new)
    added = section("patterns", b"one\ntwo\n") + b"\n" + section("a", b"")
    assert made == FILE.replace(MANUAL, added + b"\n" + MANUAL)
    assert with_new(made, new) == made
    assert parse(made).problems == ()


def test_a_new_section_stands_in_the_order_of_a_file_that_init_makes() -> None:
    text = b"# Rules\n\n" + section("build-commands") + b"\n" + section("git-insights") + b"\nmine\n"
    for name, order in (
        ("project-description", ["project-description", "build-commands", "git-insights"]),
        ("architecture", ["build-commands", "architecture", "git-insights"]),
        ("module-description", ["module-description", "build-commands", "git-insights"]),
    ):
        made = with_new(text, [(name, "text")])
        assert names(made) == order
        assert b"\n\n<!-- AUTO-MANAGED: " + name.encode() in made
        assert made.endswith(b"\nmine\n")
    assert with_new(b"# Rules\nmine\n", [("architecture", "text")]).startswith(b"# Rules\nmine\n\n<!--")


@pytest.mark.parametrize(
    ("text", "between"),
    [
        (b"", b""),
        (codecs.BOM_UTF8, b""),
        (b"\n", b"\n"),
        (b"# Rules", b"\n\n"),
        (b"# Rules\n", b"\n"),
        (b"# Rules\n\n", b""),
        (b"# Rules\n\n\n", b""),
        (codecs.BOM_UTF8 * 2, b"\n\n"),
    ],
)
def test_a_blank_line_comes_before_a_new_section(text: bytes, between: bytes) -> None:
    assert with_new(text, [("a", "text")]) == text + between + section("a")


@pytest.mark.parametrize("text", [b"# Rules\r\n", b"# Rules\r\nBe kind.", b"one\ntwo\r\n"])
def test_a_new_section_has_the_line_breaks_of_the_file(text: bytes) -> None:
    between = b"\r\n" if text.endswith(b"\n") else b"\r\n\r\n"
    made = with_new(text, [("a", "one\ntwo")])
    assert made == text + between + section("a", b"one\ntwo\n").replace(b"\n", b"\r\n")


@pytest.mark.parametrize("text", [b"# Rules\n", b"# Rules", b"", b"# Rules\n\n", FILE, b"# Rules\r\n"])
def test_a_new_section_comes_above_docmems_and_its_separator(text: bytes) -> None:
    new = [("a", "text"), ("b", "")]
    made = with_new(dynamic.with_views(text, VIEWS), new)
    assert made == dynamic.with_views(with_new(text, new), VIEWS)
    assert dynamic.without(made) == with_new(text, new)


def test_a_new_section_spoils_no_marker_that_ends_in_a_lone_carriage_return() -> None:
    text = b"<!-- MANUAL -->\r\nMine.\r\n<!-- END MANUAL -->\r"
    made = with_new(text, [("a", "text")])
    assert made.startswith(text)
    assert parse(made).problems == ()
    assert (get(made, "a"), len(parse(made).manual)) == ("text", 1)


def test_a_new_section_comes_above_docmems_also_where_blank_lines_are_below_it() -> None:
    made = with_new(dynamic.with_views(b"# Rules\n", VIEWS) + b"\n \n", [("a", "text")])
    assert made == b"# Rules\n\n" + section("a") + b"\n" + dynamic.section(VIEWS) + b"\n \n"


def test_a_new_section_comes_below_docmems_where_text_is_below_it_until_docmem_moves() -> None:
    text = dynamic.with_views(b"# Rules\n", VIEWS) + b"Mine.\n"
    made = with_new(text, [("a", "text")])
    assert made == text + b"\n" + section("a")
    assert dynamic.with_views(made, VIEWS) == dynamic.with_views(b"# Rules\nMine.\n\n" + section("a"), VIEWS)


def test_a_new_section_comes_above_a_docmem_section_that_lost_its_end() -> None:
    text = b"# Rules\n\n# DOCMEM Dynamic\n\n## ab12cd34\nstale\n"
    made = with_new(text, [("a", "text")])
    assert names(made) == ["a"]
    assert dynamic.without(made) == b"# Rules\n\n" + section("a")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"# Rules\n```sh\nmake\n", "line 2: this code fence is never closed"),
        (b"<!-- MANUAL -->\nmine\n", "line 1: this MANUAL part has no end"),
        (section("x") + opening("y"), "line 4: section y has no end"),
        ("# Rules\n".encode("utf-16"), "save it in UTF-8"),
        ("# Rules\n".encode("utf-16-le"), "save it in UTF-8"),
        ("# Rules\n".encode("utf-16-be"), "save it in UTF-8"),
    ],
)
def test_nothing_is_added_where_it_would_be_text_or_nested(text: bytes, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        with_new(text, [("a", "text")])
    assert with_new(text, []) == text


def test_a_section_that_is_there_but_unsound_is_not_added_again() -> None:
    text = section("a") + section("a")
    assert with_new(text, [("a", "text")]) == text


# What is theirs.


def test_what_is_theirs_has_neither_bodies_of_sections_nor_docmems() -> None:
    text = dynamic.with_views(FILE, VIEWS)
    for name, body in (("project-description", "new"), ("build-commands", "")):
        assert theirs(with_section(text, name, body)) == theirs(FILE)
    assert b"An API." not in theirs(text)
    assert b"Mine." in theirs(text)
    assert theirs(text) != theirs(text.replace(b"Mine.", b"Yours."))


def test_what_is_in_an_unsound_section_is_theirs() -> None:
    text = section("a", b"one\n") + section("a", b"two\n") + opening("b") + b"three\n"
    assert theirs(text) == text


def test_who_knows_what_we_wrote_says_which_bodies_are_ours() -> None:
    kept = theirs(FILE, lambda section: section.name == "build-commands")
    assert b"An API." in kept
    assert b"make" not in kept
    assert theirs(FILE, lambda section: False) == FILE


# What formatters do.


def test_a_section_that_a_formatter_has_been_over_stays_formatted() -> None:
    text = b"<!-- AUTO-MANAGED: a -->\n\n## A\n\n- one\n\n<!-- END AUTO-MANAGED -->\n"
    body = "## B\nSome words:\n- one\n  more\n- two\n```sh\n# x\n- y\n```\nEnd."
    made = with_section(text, "a", body)
    said = b"## B\n\nSome words:\n\n- one\n  more\n- two\n\n```sh\n# x\n- y\n```\nEnd."
    assert made == b"<!-- AUTO-MANAGED: a -->\n\n" + said + b"\n\n<!-- END AUTO-MANAGED -->\n"
    assert same(get(made, "a"), body)
    assert with_section(text.replace(b"\n", b"\r\n"), "a", body) == made.replace(b"\n", b"\r\n")
    assert with_section(section("a", b"## A\n- one\n"), "a", body) == section("a", f"{body}\n".encode())


def test_blank_lines_in_code_mean_something() -> None:
    assert not same("```py\na = 1\n\n# b\n```", "```py\na = 1\n# b\n```")
    assert same("Some words:\n\n```py\na = 1\n```", "Some words:\n```py\na = 1\n```")


def test_a_section_above_ours_has_their_line_breaks() -> None:
    text = section("build-commands").replace(b"\n", b"\r\n")
    made = with_new(text, [("project-description", "text")])
    assert made.count(b"\n") == made.count(b"\r\n")


# What is the same.


def test_texts_are_the_same_whatever_editors_do_to_blanks_and_line_breaks() -> None:
    text = "## A\n\none\n    two"
    for other in (text, text.replace("\n", "\r\n"), "\n" + text + "\n\n", "## A \n \t\none\t\n    two"):
        assert same(text, other)
        assert canonical(other) == text.replace("\n\n", "\n")
    for other in ("## A\n\none\n\n    two", "## A\n\none\ntwo", text + ".", "", text.replace("A", "a")):
        assert not same(text, other)
    assert same("", " \r\n\n")
