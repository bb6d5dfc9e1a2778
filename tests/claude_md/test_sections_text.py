"""What enters an AUTO-MANAGED section: no text breaks out of it, and none imports a file."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from backstory.claude_md.write import dynamic
from backstory.claude_md.write.sections import get, harmless, parse, with_new, with_section
from tests.helpers import claude
from tests.helpers.scripted_model import ScriptedModel, say
from tests.helpers.sections import END, FILE, VIEWS, names, section


def enters(body: str) -> str:
    """What a section has of a text; all around it stays, and so do the sections."""
    text = dynamic.with_views(FILE, VIEWS)
    before, after = text.split(b"An API.\n")
    made = with_section(text, "project-description", body)
    assert made.startswith(before)
    assert made.endswith(after)
    assert names(made) == names(text)
    assert parse(made).problems == ()
    assert dynamic.without(made) == with_section(FILE, "project-description", body)
    found = get(made, "project-description")
    assert found == harmless(body) == harmless(found)
    assert get(with_new(b"", [("a", body)]), "a") == found
    assert names(with_new(b"", [("a", body), ("b", body)])) == ["a", "b"]
    return found


@pytest.mark.parametrize("indent", ["", "  ", "\t", "see ", "> ", "- "])
@pytest.mark.parametrize(
    "marker",
    [
        "<!-- AUTO-MANAGED: patterns -->",
        "<!-- END AUTO-MANAGED -->",
        "<!-- MANUAL -->",
        "<!-- END MANUAL -->",
        "<!--AUTO-MANAGED:project-description-->",
        "<!-- auto_managed: x -->",
        "<!-- END AUTO-MANAGED: x",
        "<!-- /MANUAL -->",
        "<!--\nEND\nAUTO-MANAGED\n-->",
    ],
)
def test_a_marker_in_a_text_becomes_plain_text(marker: str, indent: str) -> None:
    assert enters(f"one\n{indent}{marker}\ntwo") == f"one\n{indent}&lt;{marker[1:]}\ntwo"


def test_docmems_header_and_end_in_a_text_become_plain_text() -> None:
    body = f"one\n# DOCMEM Dynamic\n\n## ab12cd34\n  {dynamic.END.decode()}\ntwo"
    assert enters(body) == (f"one\n\\# DOCMEM Dynamic\n\n## ab12cd34\n  \\{dynamic.END.decode()}\ntwo")


def test_an_import_in_a_text_becomes_plain_text() -> None:
    assert enters("@/etc/passwd") == r"\@/etc/passwd"
    assert enters("see @~/.ssh/id and (@x), me@here") == r"see \@~/.ssh/id and (\@x), me@here"
    assert enters("a\n@b\n\\\\@c") == "a\n\\@b\n\\\\\\@c"


def test_control_characters_in_a_text_do_not_reach_a_terminal() -> None:
    assert enters("a\x1b[2Jb\x00c\x9bd\te") == "a\ufffd[2Jb\ufffdc\ufffdd\te"
    assert enters("one\r\ntwo\rthree") == "one\ntwo\nthree"
    assert enters("half a \ud83d pair") == "half a ? pair"
    assert enters("src/\u202egpj.exe \u2067x\u2069") == "src/\ufffdgpj.exe \ufffdx\ufffd"


def test_a_byte_order_mark_that_a_text_begins_with_hides_no_fence() -> None:
    assert enters("\n\ufeff```sh\nmake\n```") == "\ufffd```sh\nmake\n```\n```"
    assert enters("a\ufeffb") == "a\ufffdb"


@pytest.mark.parametrize(
    ("body", "closed"),
    [
        ("```", "```\n```"),
        ("text\n~~~~sh\nmake\n~~~", "text\n~~~~sh\nmake\n~~~\n~~~~"),
        ("  ```\nmake", "  ```\nmake\n  ```"),
        ("- ```sh\n  make", "- ```sh\n  make\n  ```"),
        (" * ```sh\n   make", " * ```sh\n   make\n   ```"),
        ("1. ```sh\n   make", "1. ```sh\n   make\n   ```"),
        ("```\na\n```\n```", "```\na\n```\n```\n```"),
        ("```\nmake\n```", "```\nmake\n```"),
        ("```a`b", "```a`b"),
    ],
)
def test_a_fence_that_a_text_leaves_open_is_closed(body: str, closed: str) -> None:
    assert enters(body) == closed


@pytest.mark.parametrize("tag", ["<pre>", "<SCRIPT src='x'>", "<style", "<textarea>", "<?php", "<![CDATA["])
def test_html_that_goes_on_over_blank_lines_becomes_plain_text(tag: str) -> None:
    for indent in ("", "   "):
        assert enters(f"one\n\n{indent}{tag}\ntwo") == f"one\n\n{indent}&lt;{tag[1:]}\ntwo"
    for kept in (f"```html\n{tag}\n```", f"see `{tag}`", f"    {tag}", "<preview>\n\n<div>\n\nx"):
        assert enters(kept) == kept
    assert enters(f"```html\n{tag}") == f"```html\n{tag}\n```"


@pytest.mark.parametrize("html", ["<div>\nx", "x\n\n  <B>", "text\n</p>", "- <div>\n  x", "<details>\n \nx"])
def test_html_in_the_last_lines_of_a_text_ends_with_the_section(html: str) -> None:
    assert enters(html) == html
    made = with_section(section("a") + b"Mine.\n", "a", html)
    assert made == section("a", html.encode() + b"\n\n") + b"Mine.\n"
    assert with_section(made, "a", html) == with_section(made, "a", get(made, "a")) == made
    crlf = with_section(section("a").replace(b"\n", b"\r\n"), "a", html)
    assert crlf.endswith(b"\r\n\r\n" + END.replace(b"\n", b"\r\n"))


def test_html_above_the_last_lines_needs_no_blank_line() -> None:
    for body in ("<div>\n\nx", "a < b", "see `<div>`", "<!-- a comment -->"):
        assert with_new(b"", [("a", body)]) == section("a", body.encode() + b"\n")


def test_outer_blank_lines_do_not_enter() -> None:
    assert enters("\n\n\r\n \t\n  one\n\ntwo \n\n \n") == "  one\n\ntwo"
    assert enters("\r x") == " x"
    assert enters(" \n\t\r\n") == ""


def test_a_command_in_plain_code_keeps_its_at_sign() -> None:
    for body in (
        '## Build\n\n```sh\npnpm --filter "@acme/api" test\n```',
        "```\nnpx @biomejs/biome check\n```",
        "# Two\n```sh\n@a\n```\n\n```py\n@app.route\n```\n\ntext",
    ):
        assert enters(body) == body
    assert enters("## @a\n```\n@b\n```\n@c") == "## \\@a\n```\n@b\n```\n\\@c"


def test_code_in_a_plain_line_keeps_an_at_sign_that_follows_another_sign() -> None:
    """In a list the client imports what follows a blank, be it code or not; to a shell `\\@` is `@`. The name
    of a package could only be a file without an ending in the project."""
    for body, shown in [
        ('- Test: `pnpm --filter "@acme/api" test`, `x`', '- Test: `pnpm --filter "@acme/api" test`, `x`'),
        ("uses `@acme/api` and\n`@app.route`.", "uses `@acme/api` and\n`@app.route`."),
        ("- Lint: `npx @biomejs/biome` (`@acme/api`)", "- Lint: `npx @biomejs/biome` (`@acme/api`)"),
        ("- `a @b/c.md` `a @b/c/d` `a @../b`", "- `a \\@b/c.md` `a \\@b/c/d` `a \\@../b`"),
        ("- `a @~/b` `a @/b/c` `a @B/c`", "- `a \\@~/b` `a \\@/b/c` `a \\@B/c`"),
        ("**@a** `@b` @c `d @e`", "**\\@a** `@b` \\@c `d \\@e`"),
        ("`a\u00a0@b`", "`a\u00a0\\@b`"),
        ("`@a` ` b`\n\nsee [c](d) `@e`\n\n`@f`", "`@a` ` b`\n\nsee [c](d) `\\@e`\n\n`@f`"),
    ]:
        assert enters(body) == shown


@pytest.mark.parametrize(
    "body",
    [
        "http://a.b/` `@x`",  # the URL takes the backtick along
        "(`@x`)",
        "x`@x`",
        "``@x``",
        "` `` `@x`",
        "a `b\n`@x` c`",
        "\\`a `@x`",
        "`a\\` `@x`",
        "~a `b~ `@x`",
        '<a b="` `@x`">',
        '[a](b "` `@x`")',
        "| a | b |\n|---|---|\n| `a | `@x` |",
        "a | b\n:-- | --\n `a | `@x`",
    ],
)
def test_what_may_not_be_code_in_a_line_keeps_none(body: str) -> None:
    assert not re.search(r"(?<!\\)@", enters(body))


@pytest.mark.parametrize(
    "body",
    [
        '[a]: b "\n\n```\n"\n@x\n```',  # to the client a link's title, which ends in the code
        "- a\n\n  ```\n  b\n\n```\n\n```\n@x\n```",  # the item ends its fence, and the next one opens
        "```\n```~\n@x\n```",
        "```\n~~~\n@x\n```",
        "- <pre>\n\n```\n</pre>\n@x\n```",
        "1. <pre>\n\n```\n</pre>\n@x\n```",
        "text\n```\n@x\n```",
        " ```\n@x\n ```",
        "````\n@x\n````",
        "``` @x\n```",
        "```\t\n@x\n```",
        "# a\n\n```\n# b\n```\t\n@x\n```",
    ],
)
def test_what_may_not_be_code_to_the_client_keeps_none(body: str) -> None:
    assert not re.search(r"(?<!\\)@", enters(body))


@pytest.mark.client
@pytest.mark.parametrize("is_raw", [False, True], ids=["as we write it", "as it is"])
@pytest.mark.parametrize("line_break", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_text_cannot_make_claude_code_read_a_file(
    home: Path, project: str, is_raw: bool, line_break: str
) -> None:
    raw = {
        "plain": "see @plain.env",
        "link": '[a]: b "\n\n```\n"\n@link.env\n```',
        "item": "- a\n\n  ```\n  b\n\n```\n\n```\n@item.env\n```",
        "other": "```\n```~\n@other.env\n```",
        "code": "# a walk\n```sh\n@code.env\nnpx @code.env x\n```",
    }
    text = b"# Rules\n"
    for name, body in raw.items():
        made = section(name, body.encode() + b"\n") if is_raw else with_new(b"", [(name, body)])
        text += b"\n" + made + b"\nText.\n"
        Path(project, f"{name}.env").write_text(f"the walrus of {name}\n")
    Path(project, "CLAUDE.md").write_bytes(text.replace(b"\n", line_break.encode()))
    with ScriptedModel(say("done")) as model:
        result = claude.run("hello", cwd=Path(project), env=claude.environment(home, model.url))
    assert result.text == "done"
    assert "a walk" in model.said()  # it has read the sections
    imported = {name for name in raw if f"the walrus of {name}" in model.said()}
    assert "code" not in imported  # nor in code that we left as it was
    assert bool(imported) is is_raw


SIGNS = "` `` ``` ~ ~~~ * ** _ \\ <a <pre> </pre> <!-- --> [ ]( ]: \" ' ( ) http://a.b/ | |-|".split()
SIGNS += "\n|\n|\n\n|  \n|\n- |\n> |# |    |\n1. |\n\n```\n|```\n@F\n```\n|@F|@F|@F|`@F`|x| | ".split("|")
SIGNS += [
    " `x @F`",
    "` @F `",
    '`"@F"`',
    " `@F",
    "\n| a | b |\n|---|---|\n",
    "\u00a0",
    "*x `",
    "\\`",
    "- [ ] ",
]


@pytest.mark.slow
@pytest.mark.client
def test_no_text_made_of_signs_makes_claude_code_read_a_file(home: Path, project: str) -> None:
    """Each in a file of its own, which CLAUDE.md imports; some as they are, to see that they would."""
    dice = random.Random(1)  # noqa: S311 - no secret
    written: dict[str, str] = {}
    while len(written) < 500:
        text = "".join(dice.choice(SIGNS) for _ in range(dice.randint(2, 14)))
        made = harmless(text)
        if len(written) < 100 and "@F" in text:
            written[f"raw{len(written)}"] = text
        elif re.search(r"(?<![A-Za-z0-9\\])@F", made):  # one that is left as it was
            written[f"ours{len(written)}"] = made
    for name, text in written.items():
        found = section("a", text.replace("@F", f"@{name}.env").encode() + b"\n")
        Path(project, f"{name}.md").write_bytes(found + f"\nthe zebra of {name}.\n".encode())
        Path(project, f"{name}.env").write_text(f"the walrus of {name}.\n")
    Path(project, "CLAUDE.md").write_text("".join(f"@{name}.md\n\n" for name in written))
    with ScriptedModel(say("done")) as model:
        claude.run("hello", cwd=Path(project), env=claude.environment(home, model.url))
    said = model.said()
    assert all(f"the zebra of {name}." in said for name in written)
    imported = [name for name in written if f"the walrus of {name}." in said]
    assert [written[name] for name in imported if name.startswith("ours")] == []
    assert len(imported) > 5


OPEN_HTML = {
    "pre": "text\n<pre>\nx",
    "script": "  <SCRIPT>",
    "php": "<?php",
    "cdata": "# x\n<![CDATA[ x",
    "div": "<div>\nx",
    "tag": "text\n\n<my-tag>",
}


@pytest.mark.slow
@pytest.mark.client
@pytest.mark.parametrize("way", ["as it is", "in a section", "in docmem's section"])
def test_no_html_in_a_text_keeps_claude_code_from_what_a_person_imports_below(
    home: Path, project: str, way: str
) -> None:
    """Each in a file of its own, which CLAUDE.md imports."""
    for name, body in OPEN_HTML.items():
        made = {
            "as it is": section(name, body.encode() + b"\n"),
            "in a section": with_new(b"", [(name, body)]),
            "in docmem's section": dynamic.section([("ab12cd34", body)]),
        }
        Path(project, f"{name}.md").write_bytes(made[way] + f"see @{name}.env please\n".encode())
        Path(project, f"{name}.env").write_text(f"the walrus of {name}.\n")
    Path(project, "CLAUDE.md").write_text("".join(f"@{name}.md\n\n" for name in OPEN_HTML))
    with ScriptedModel(say("done")) as model:
        claude.run("hello", cwd=Path(project), env=claude.environment(home, model.url))
    imported = {name for name in OPEN_HTML if f"the walrus of {name}." in model.said()}
    assert imported == (set() if way == "as it is" else set(OPEN_HTML))
