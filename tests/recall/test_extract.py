"""Web pages become the text that a reader came for, and files are read only where that was allowed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backstory.errors import BadInput, NotFound
from backstory.recall.documents import file as source
from backstory.recall.documents.chunk import chunks
from backstory.recall.documents.extract import main_text
from backstory.recall.documents.file import decode, kind_of, kind_of_page, read_file

PROSE = (
    "The drain takes the payloads oldest first, checks each one, and stores the rest in one transaction, so"
    " that nothing is ever stored twice, and nothing that was acknowledged is lost, whatever is killed. "
)


def extract(page: str) -> str:
    return main_text(page.encode(), None)[1]


# Whole pages.


def sphinx_page() -> str:
    """As Sphinx writes one: nested sections, each with its code, a sidebar, and links everywhere."""

    def section(name: str, level: int, inner: str) -> str:
        mark = f'<a class="headerlink" href="#{name}" title="Link to this heading">¶</a>'
        return f'<section id="{name}"><h{level}>{name}{mark}</h{level}>{inner}</section>'

    def code(text: str, language: str = "python3") -> str:
        return (
            f'<div class="highlight-{language} notranslate"><div class="highlight"><pre><span></span>'
            f'<span class="linenos">1</span><span class="kn">{text}</span>\n</pre></div></div>'
        )

    menu = "".join(
        f'<li class="toctree-l1"><a class="reference" href="x{n}">Page {n}</a></li>' for n in range(40)
    )
    api = (
        '<dl class="py function"><dt class="sig sig-object py" id="f"><span class="sig-name">fetch</span>'
        '<span class="sig-paren">(</span><em class="sig-param">url</em><span class="sig-paren">)</span>'
        '<a class="headerlink" href="#f">¶</a></dt><dd><p>Fetch one page.</p></dd></dl>'
    )
    body = section(
        "Guide",
        1,
        f"<p>{PROSE * 2}</p>"
        + section("Install", 2, "<p>Short.</p>" + code("pip install thing", "sh"))
        + section("Usage", 2, f"<p>{PROSE * 6}</p>" + section("Options", 3, code("import thing")))
        + section("API", 2, api)
        + section(
            "See also", 2, '<ul class="simple"><li><a href="a">One</a></li><li><a href="b">Two</a></li></ul>'
        )
        + section(
            "Notes",
            2,
            '<div class="admonition note"><p class="admonition-title">Note</p><p>Mind it.</p></div>',
        ),
    )
    return f"""<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Guide — thing 1.0</title>
      <style>p {{ color: red }}</style><script>var hidden = 1;</script></head><body>
      <div class="related" role="navigation"><h3>Navigation</h3><ul><li><a href="i">index</a></li></ul></div>
      <div class="document has-sidebar"><div class="documentwrapper"><div class="body" role="main">
      {body}</div></div>
      <div class="sphinxsidebar" role="navigation"><h1><a href="i">thing</a></h1><ul>{menu}</ul></div>
      </div><div class="footer">© somebody. Powered by Sphinx.</div></body></html>"""


@pytest.mark.parametrize("role", [' role="main"', ""], ids=["with main", "without main"])
def test_every_section_of_a_documentation_page_survives(role: str) -> None:
    title, text = main_text(sphinx_page().replace(' role="main"', role).encode(), None)
    assert title == "Guide — thing 1.0"
    headings = [line for line in text.split("\n") if line.startswith("#")]
    assert headings == [
        "# Guide",
        "## Install",
        "## Usage",
        "### Options",
        "## API",
        "## See also",
        "## Notes",
    ]
    assert "```sh\npip install thing\n```" in text
    assert "```python3\nimport thing\n```" in text
    assert "fetch(url)\n\nFetch one page." in text
    assert "- One\n- Two" in text
    assert "Mind it." in text
    for noise in ("¶", "Page 7", "color: red", "var hidden", "index"):
        assert noise not in text
    paths = [chunk.heading for chunk in chunks(text, "html")]
    assert "Guide > Usage > Options" in paths


def test_of_a_blog_post_the_post_remains() -> None:
    related = "".join(f'<li><a href="p{n}">Other post {n}</a></li>' for n in range(9))
    text = extract(f"""<html><head><title>On spools</title></head><body>
      <div id="top-menu" class="menu"><a href="/">Home</a> <a href="/about">About</a></div>
      <div class="wrap"><div class="post"><div class="entry-content">
        <h1>On spools</h1><p>{PROSE}</p><p>{PROSE}</p><h2>Why files</h2><p>{PROSE}</p>
        <blockquote><p>A rename is atomic.</p></blockquote><p>{PROSE}</p>
        <div class="share"><a href="t">Tweet this</a></div></div></div>
      <div class="sidebar widget"><h3>Related posts</h3><ul>{related}</ul></div>
      <div id="comments"><h3>2 comments</h3><p>First!</p></div></div>
      <div class="footer">All rights reserved</div></body></html>""")
    assert text.startswith("# On spools\n\nThe drain")
    assert "## Why files" in text
    assert "> A rename is atomic." in text
    for noise in ("Home", "Tweet", "Related", "Other post", "First!", "rights"):
        assert noise not in text


@pytest.mark.parametrize(("tag", "names"), [("section", ""), ("div", "section")])
def test_a_section_about_menus_is_no_menu(tag: str, names: str) -> None:
    ids = ["menu", "comments", "sidebar", "related", "toc"]
    parts = "".join(
        f"<{tag} class='{names}' id={name}><h2 id={name}>All on {name}</h2><p><a>{name} link</a></p></{tag}>"
        for name in ids
    )
    text = extract(f"<body><div class='page with sidebar'><p>{PROSE * 9}</p>{parts}</div></body>")
    assert [name for name in ids if f"## All on {name}\n\n{name} link" not in text] == []


def test_an_article_keeps_its_header_and_asides_but_the_page_does_not() -> None:
    text = extract(f"""<body><header><h1>Site</h1></header><article>
      <header><h1>Post</h1></header><p>{PROSE * 4}</p>
      <aside>Mind the gap.</aside><footer>Tags</footer></article><aside>Advert</aside></body>""")
    assert text.startswith("# Post")
    assert "Mind the gap." in text
    assert not any(noise in text for noise in ("Site", "Tags", "Advert"))


def test_a_page_that_is_a_table_becomes_lines() -> None:
    rows = "".join(f"<tr><td>{n}</td><td>Reason <b>{n}</b><br>again | so</td></tr>" for n in range(400, 430))
    text = extract(f"""<html><body><table><caption>Codes</caption>
      <thead><tr><th>Code</th><th>Meaning</th></tr></thead>
      <tbody>{rows}</tbody></table></body></html>""")
    assert text.startswith("Codes\n\n| Code | Meaning |\n| --- | --- |\n| 400 | Reason 400 again \\| so |")
    assert text.count("\n| 4") == 30


def test_a_page_without_a_main_part_is_read_whole() -> None:
    text = extract(
        "<html><body><nav>Menu</nav><div>Short.</div><div>Page <a href='x'>here</a>.</div></body></html>"
    )
    assert text == "Short.\n\nPage here."


def test_broken_html_is_read_as_far_as_it_goes() -> None:
    text = extract(
        "<p>One <b>bold<p>Two</i> &amp; &nbsp;three &bogus; <ul><li>a<li>b</ul><h2>Head</p><pre>x <"
    )
    assert "One bold" in text
    assert "Two & three &bogus;" in text
    assert "- a\n- b" in text
    assert "## Head" in text


def test_what_lies_deeper_than_the_parser_goes_is_not_lost() -> None:
    text = extract("<div><font>" * 500 + "<h2>Head</h2><p>Deep.</p>")
    assert text == "## Head\n\nDeep."


@pytest.mark.parametrize(
    "page",
    ["", " ", "<html></html>", "<script>x</script>", "<!-- x -->", "<img src=x>", "\0", "<nav>Menu</nav>"],
)
def test_a_page_without_text_is_refused(page: str) -> None:
    with pytest.raises(BadInput, match="no text"):
        extract(page)


# Pieces of pages.


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h3>A <em>b</em>\n c</h3>x", "### A b c\n\nx"),
        ("<h2><a href='#x'>Linked</a> <a class='anchor' href='#x'>#</a></h2>x", "## Linked\n\nx"),
        ("<p>a<br>b</p>", "a\nb"),
        ("<p>run <code>make  it</code> now</p>", "run `make it` now"),
        ("<pre>a\n\n  b\n</pre>", "```\na\n\n  b\n```"),
        ("<pre><code class='language-c++'>x</code></pre>", "```c++\nx\n```"),
        ("<pre>a<br>b</pre>", "```\na\nb\n```"),
        ("<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"),
        ("<ul><li>a<ul><li>b</li></ul></li><li><p>c</p><p>d</p></li></ul>", "- a\n  - b\n- c\n\n  d"),
        ("<ol><li>a<pre>x\ny</pre></li><li>b</li></ol>", "1. a\n\n   ```\n   x\n   y\n   ```\n\n2. b"),
        ("<blockquote>a<p>b</p></blockquote>c", "> a\n\n> b\n\nc"),
        ("<p># not a heading</p><p>```</p><p>a<br>---</p>", "\\# not a heading\n\n\\```\n\na\n\\---"),
        ("<dl><dt>Term</dt><dd>Meaning</dd></dl>", "Term\n\nMeaning"),
        ("<p>see <img alt='the plan'></p>", "see the plan"),
        ("<details><summary>More</summary>inside</details>", "More\n\ninside"),
        ("<table role=presentation><tr><td>a</td><td>b</td></tr></table>", "a\n\nb"),
        ("<table><tr><td class=linenos><pre>1</pre></td><td><pre>x</pre></td></tr></table>", "```\nx\n```"),
        ("<p hidden>no</p><p style='display: none'>no</p>yes", "yes"),
        ("<div role=tabpanel>one</div><div role=tabpanel hidden=true>two</div>", "one\n\ntwo"),
        ("<?xml version='1.0' encoding='utf-16'?><html><body>x</body></html>", "x"),
    ],
)
def test_html_becomes_markdown(html: str, text: str) -> None:
    assert extract(html) == text


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("é".encode("cp1252"), "ISO-8859-1", "é"),
        (b"<meta charset=koi8-r>" + "да".encode("koi8-r"), None, "да"),
        (
            b'<meta http-equiv=x content="text/html; charset=shift_jis">' + "漢".encode("shift_jis"),
            None,
            "漢",
        ),
        (b"<meta charset=koi8-r>" + "é".encode(), "utf-8", "é"),
        (b"<meta charset=utf-16>" + "é".encode(), None, "é"),
        (b"\xef\xbb\xbf" + "é".encode(), "latin-1", "é"),
        ("é".encode("utf-16"), None, "é"),
        ("é".encode(), "no-such-charset", "é"),
        ("é".encode(), "hex", "é"),
        (b"\\x41", "unicode_escape", "\\x41"),
        (b"a\xffb", None, "a\ufffdb"),
    ],
)
def test_the_charset_is_the_servers_then_the_pages_then_utf8(
    body: bytes, charset: str | None, text: str
) -> None:
    assert main_text(b"<p>" + body if not body.startswith((b"\xef", b"\xff")) else body, charset)[1] == text


def test_other_texts_have_no_meta_charset() -> None:
    assert decode(b"<meta charset=koi8-r>" + "é".encode(), None) == "<meta charset=koi8-r>é"


def test_readability_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        extract(f"<body><div>{PROSE}</div>")
    assert [record for record in caplog.records if record.name.startswith("readability")] == []


def test_the_parser_is_loaded_only_for_html() -> None:
    code = "import sys, backstory.recall.documents.extract; print({'lxml', 'readability'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_an_external_entity_is_not_loaded(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("SECRET")
    page = f'<!DOCTYPE html [<!ENTITY x SYSTEM "file://{secret}">]><html><body><p>a &x; b</p></body></html>'
    assert "SECRET" not in extract(page)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        f"<p>{PROSE}</p>" * 5_000,
        "<li>x" * 100_000,
        "<ul><li>" * 120 + "x " * 200_000,
        "<p>a" + " " * 1_000_000 + "b",
    ],
    ids=["prose", "items", "nested", "blanks"],
)
def test_a_large_page_takes_seconds(page: str) -> None:
    start = time.process_time()
    assert extract(page)
    assert time.process_time() - start < 20


# Kinds.


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a/b.md", "md"),
        ("B.MARKDOWN", "md"),
        ("a.mdx", "md"),
        ("a.rst", "rst"),
        ("a.txt", "txt"),
        ("a.html", "html"),
        ("a.v2.htm", "html"),
        ("a.xhtml", "html"),
        ("/x.y/README", "txt"),
        ("LICENSE", "txt"),
    ],
)
def test_the_kind_of_a_document(name: str, kind: str) -> None:
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        ("text/html", "html"),
        ("application/xhtml+xml", "html"),
        ("text/markdown", "md"),
        ("text/x-rst", "rst"),
        ("text/plain", "txt"),
        ("text/css", "txt"),
    ],
)
def test_the_kind_of_a_page(content_type: str, kind: str) -> None:
    assert kind_of_page("https://example.org/page", content_type) == kind


@pytest.mark.parametrize("name", ["a.pdf", "a.py", ".env", "dir/.bashrc", "a.tar.gz"])
def test_other_kinds_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="Markdown"):
        kind_of(name)


@pytest.mark.parametrize(
    ("url", "content_type", "kind"),
    [
        ("https://raw.example/README.md?x=1", "text/plain", "md"),
        ("https://raw.example/index.rst", "text/plain", "rst"),
        ("https://raw.example/page.md", "text/html", "html"),
        ("https://raw.example/LICENSE", "text/plain", "txt"),
        ("https://raw.example/data", "text/csv", "txt"),
    ],
)
def test_the_kind_of_something_fetched(url: str, content_type: str, kind: str) -> None:
    assert kind_of_page(url, content_type) == kind


# Files.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    (tmp_path / "secret.md").write_text("secret")
    return place


def test_a_file_inside_is_read(folder: Path) -> None:
    (folder / "a.md").write_text("hello")
    assert read_file(str(folder / "a.md"), ["/nowhere", str(folder)]) == (
        os.path.realpath(folder / "a.md"),
        b"hello",
    )


def test_a_folder_that_is_reached_by_a_link_counts_as_itself(folder: Path, tmp_path: Path) -> None:
    (folder / "a.md").write_text("hello")
    (tmp_path / "link").symlink_to(folder)
    assert read_file(str(tmp_path / "link" / "a.md"), [str(folder)])[1] == b"hello"
    assert read_file(str(folder / "a.md"), [str(tmp_path / "link")])[1] == b"hello"


@pytest.mark.parametrize("name", ["../secret.md", "link.md", "out/secret.md", "../project-twin/a.md"])
def test_a_file_outside_is_refused_however_it_is_named(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "out").symlink_to(tmp_path)
    (tmp_path / "project-twin").mkdir()
    (tmp_path / "project-twin" / "a.md").write_text("secret")
    with pytest.raises(BadInput, match="outside"):
        read_file(str(folder / name), [str(folder)])
    with pytest.raises(BadInput, match="outside"):
        read_file(str(folder / name), [])


def test_a_link_put_in_place_of_a_file_meanwhile_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the file becomes a link to another, after the path was judged and before it is opened."""
    (folder / "sub").mkdir()
    (folder / "sub" / "secret.md").write_text("harmless")
    really_open = os.open

    def open_late(path: str, flags: int) -> int:
        (folder / "sub").rename(folder / "away")
        (folder / "sub").symlink_to(tmp_path)
        return really_open(path, flags)

    monkeypatch.setattr(os, "open", open_late)
    with pytest.raises(BadInput, match="outside"):
        read_file(str(folder / "sub" / "secret.md"), [str(folder)])


def test_a_pipe_is_refused_without_waiting(folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")
    with pytest.raises(BadInput, match="not a file"):
        read_file(str(folder / "pipe.md"), [str(folder)])


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/dev/zero", BadInput),
        (".", BadInput),
        ("missing.md", NotFound),
        ("a\0b", BadInput),
        ("loop", BadInput),
    ],
)
def test_what_is_no_document_is_refused(folder: Path, path: str, error: type[Exception]) -> None:
    (folder / "loop").symlink_to(folder / "loop")
    with pytest.raises(error):
        read_file(os.path.join(folder, path), [str(folder), "/dev"])


def test_a_file_that_is_too_large_is_refused(folder: Path) -> None:
    with open(folder / "a.md", "wb") as file:
        file.truncate(source.LARGEST + 1)
    with pytest.raises(BadInput, match="10,000,001 bytes"):
        read_file(str(folder / "a.md"), [str(folder)])


def test_a_binary_file_is_refused_with_what_can_be_read(folder: Path) -> None:
    (folder / "a.md").write_bytes(b"%PDF-1.7\n\0\1")
    with pytest.raises(BadInput, match="Markdown"):
        read_file(str(folder / "a.md"), [str(folder)])
