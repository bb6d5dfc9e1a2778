"""Whatever is in a CLAUDE.md, and whatever is written into our parts of it, in whatever order and by however
many at once: what is not ours stays, byte for byte.

Two kinds of files are made up. Of a sound one, a model of plain lists says what must be in it after each
write, so nothing here depends on how markers are found. Of any other, made of pieces of markers, fences and
docmem sections, only what is between the markers of a sound section may differ.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product, takewhile
from operator import add
from pathlib import Path
from string import ascii_lowercase, digits
from typing import IO, Any, TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backstory.claude_md.write import dynamic, writer
from backstory.claude_md.write.sections import (
    body,
    harmless,
    parse,
    same,
    spaced,
    theirs,
    with_new,
    with_section,
)
from backstory.errors import BackstoryError, BadInput, Conflict, NotFound
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow

T = TypeVar("T")
Views = list[tuple[str, str]]

OPEN, END = "<!-- AUTO-MANAGED: {} -->", "<!-- END AUTO-MANAGED -->"
NAMES = ["a", "build-commands", "c3"]
SOURCE = str(REPOSITORY / "src")

# Pieces of files, of bodies and of node texts.

MARKERS = [OPEN.format(name) for name in NAMES]
MARKERS += [
    END,
    END,
    "<!-- MANUAL -->",
    "<!-- END MANUAL -->",
    "<!--AUTO-MANAGED:a-->",
    "  <!-- MANUAL -->  ",
]
MARKERS += ["<!-- AUTO_MANAGED: a -->", "<!-- AUTO-MANAGED -->", "<!-- END AUTO-MANAGED: a -->"]
MARKERS += ["<!-- backstory: by program, digest 0123456789ab -->", "<<<<<<< HEAD", "=======", ">>>>>>> b"]
MARKERS += ["<!-- manual -->", "<!-- AUTO-MANAGED: a", "<!--", "-->", "<!-- end of DOCMEM Dynamic -->"]
OTHERS = ["", "", "text", "# Rules", "## More", "- item", " ", "\t", "\r", "\x00", "\x1b[2J", "\u00e9", "\\"]
OTHERS += ["```", "```sh", "~~~", "````", "   ```", "- ```", "```~", "`", "@", "@x", "# DOCMEM Dynamic"]
OTHERS += ["\ufeff", "\ufeff```", "<div>", "- </p>", " <?", "<!["]
OTHERS += ['[a]: b "', "<pre>", "`@x`", " `a @x`", "- `\\@x`", "see @x `@y`", "| - |", "~", "\\\\@x"]
LINE = st.one_of(st.sampled_from(MARKERS), st.sampled_from(OTHERS), st.text(max_size=6))
BREAKS = ["\n", "\n", "\n", "\r\n", "\n\n", "", "\r"]


def sampled_product(makes: Callable[..., T], *parts: Sequence[Any]) -> st.SearchStrategy[T]:
    """Of each part anything. To choose from all there are is one choice: making choices takes most of the
    time."""
    return st.sampled_from([makes(*chosen) for chosen in product(*parts)])


PIECE = st.one_of(
    sampled_product(add, MARKERS, BREAKS),
    sampled_product(add, OTHERS, BREAKS),
    st.builds(add, st.text(max_size=6), st.sampled_from(BREAKS)),
)
TEXT = st.lists(PIECE, max_size=10).map("".join)
VIEWS = st.lists(st.tuples(st.text(ascii_lowercase + digits, min_size=8, max_size=8), TEXT), max_size=2)

WRITTEN = st.sampled_from(
    [
        *[
            b"",
            b"text\n",
            b"# Rules\n\nBe kind.\n",
            b"- item\r\n",
            b"\xff caf\xe9\n",
            b"<!-- a comment -->\n",
        ],
        b"```md\n" + OPEN.format("a").encode() + b"\nan example\n" + END.encode() + b"\n```\n",
        b"~~~\n# DOCMEM Dynamic\n~~~\n",
        b"    " + OPEN.format("a").encode() + b"\n    in a block of code\n",
        b"`" + OPEN.format("a").encode() + b"` begins a section\n",
        b"<!-- MANUAL -->\n## Mine\nNotes.\n<!-- END MANUAL -->\n",
        b"<!-- MANUAL -->\n# DOCMEM Dynamic\n\n## Mine\nNotes.\n<!-- END MANUAL -->\n",
        b"@AGENTS.md\n",
    ]
)

DOCMEM = dynamic.section([("ab12cd34", "ab12cd34 note:: 2026-01-31T12:00:00Z\n```\n<!-- MANUAL -->\ntext")])
SECTIONS = sampled_product(
    lambda name, text: f"{OPEN.format(name)}\n{text}{END}\n".encode(),
    [*NAMES, *"bdefg"],
    [
        *("", "text\n", "<!-- backstory: by model, digest 0123456789ab -->\ntext\n"),
        "\n\n    code\n\n",
        "```\n<!-- END AUTO-MANAGED -->\n```\n",
        "\x00 @x\r\n",
    ],
)
BLOCKS = st.lists(st.one_of(SECTIONS, SECTIONS, WRITTEN, st.just(b"\n" + DOCMEM)), max_size=7)
DAMAGE = st.lists(st.tuples(st.sampled_from("irm"), st.integers(0, 30), st.integers(0, 30), LINE), max_size=2)


def damaged(blocks: list[bytes], damage: list[tuple[str, int, int, str]], way: str) -> bytes:
    """A sound file, to which somebody did this and that."""
    lines = b"".join(blocks).split(b"\n")
    for kind, here, there, line in damage:
        if kind == "i":
            lines.insert(here % (len(lines) + 1), line.encode("utf-8", "replace"))
        elif len(lines) > 1:
            moved = lines.pop(here % len(lines))
            if kind == "m":
                lines.insert(there % (len(lines) + 1), moved)
    text = b"\n".join(lines)
    return {"bom": b"\xef\xbb\xbf" + text, "crlf": text.replace(b"\n", b"\r\n")}.get(way, text)


ANY = st.one_of(
    st.builds(damaged, BLOCKS, DAMAGE, st.sampled_from(["", "", "", "bom", "crlf"])),
    st.builds(damaged, BLOCKS, DAMAGE, st.just("")),
    st.lists(st.one_of(TEXT.map(lambda text: text.encode("utf-8", "replace")), st.binary(max_size=6))).map(
        b"".join
    ),
)


def settled(text: bytes) -> bytes:
    """A file without docmem's section. (One rest in many has a section again, of what was two.)"""
    while (rest := dynamic.without(text)) != text:
        text = rest
    return text


def outside(text: bytes) -> list[bytes]:
    """What is not in a sound section, with all markers."""
    pieces, at = [], 0
    for section in parse(text).sections:
        pieces.append(text[at : section.body_start])
        at = section.body_stop
    return [*pieces, text[at:]]


def shape(text: bytes) -> tuple[list[str], list[bytes], list[str]]:
    """Sections, MANUAL parts, and what is wrong; all but where."""
    parsed = parse(text)
    return (
        [section.name for section in parsed.sections],
        [text[start:stop].rstrip(b"\r\n") for start, stop in parsed.manual],
        [problem.name for problem in parsed.problems],
    )


def aimed(puts: list[tuple[str, str]], names: list[str]) -> list[tuple[str, str]]:
    """Those for a section that is not there go into one that is, mostly."""
    return [
        (name if name in names or not names or name == NAMES[-1] else names[len(new) % len(names)], new)
        for name, new in puts
    ]


# Any file.


@settings(max_examples=400)
@given(ANY, st.lists(st.tuples(st.sampled_from(NAMES), TEXT), max_size=4))
def test_in_any_file_only_what_is_between_sound_markers_changes(
    text: bytes, puts: list[tuple[str, str]]
) -> None:
    before, kept, known = shape(text), outside(text), {}
    for name, new in aimed(puts, before[0]):
        try:
            made = with_section(text, name, new)
        except (NotFound, BadInput):
            assert name not in before[0]
            continue
        assert with_section(made, name, new) == made
        assert with_section(made, name, harmless(new)) == made
        text = made
        known[name] = harmless(new)
        assert outside(text) == kept
        assert shape(text) == before
        found = {section.name: body(text, section) for section in parse(text).sections}
        assert all(found[name] in (known[name], spaced(known[name])) for name in known)
        assert all(same(spaced(body), body) for body in known.values())
        assert len(theirs(text)) <= len(text)


@settings(max_examples=400)
@given(ANY, st.lists(st.tuples(st.sampled_from(NAMES), TEXT), max_size=3, unique_by=lambda new: new[0]))
def test_to_any_file_sections_are_added_in_one_piece_or_not_at_all(
    text: bytes, new: list[tuple[str, str]]
) -> None:
    names, manual, problems = shape(text)
    try:
        made = with_new(text, new)
    except BadInput:
        assert parse(text).unclosed or text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text
        return
    missing = [name for name, _ in new if name not in names and name not in problems]
    size = len(made) - len(text)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, made, strict=False)))
    assert made[:alike] + made[alike + size :] == text
    assert sorted(shape(made)[0]) == sorted(names + missing)
    assert shape(made)[1:] == (manual, problems)
    bodies = {section.name: body(made, section) for section in parse(made).sections}
    assert all(bodies[name] == harmless(new_body) for name, new_body in new if name in missing)
    assert with_new(made, new) == made


@settings(max_examples=400)
@given(ANY, st.lists(st.tuples(st.sampled_from(NAMES), TEXT), max_size=3), VIEWS, VIEWS)
def test_in_any_file_docmem_and_sections_do_not_mind_each_other(
    text: bytes, puts: list[tuple[str, str]], views: Views, later: Views
) -> None:
    """Who comes first does not matter, and views that come and go leave no trace."""
    text = settled(text)
    both = dynamic.with_views(text, views)
    for name, new in aimed(puts, shape(text)[0]):
        try:
            alone = with_section(text, name, new)
        except BackstoryError:
            with pytest.raises(BackstoryError):
                with_section(both, name, new)
            continue
        text, both = alone, dynamic.with_views(with_section(both, name, new), later)
        assert both == dynamic.with_views(text, later)
    assert dynamic.without(both) == text
    assert outside(dynamic.without(both)) == outside(text)


@settings(max_examples=400)
@given(TEXT)
@example("\r x")
@example("```\n@a\n```\n\n# @b\n```\n@c")
@example("- ```\n  x")
def test_any_text_is_harmless_once_it_was_made_so(text: str) -> None:
    made = harmless(text)
    assert harmless(made) == made
    assert same(made, made.replace("\n", " \r\n"))
    alone = with_new(b"", [("a", text), ("b", text)])
    assert shape(alone) == (["a", "b"], [], [])
    assert not dynamic.has_section(alone)
    assert dynamic.layout(alone).open_fence is None
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", made)
    assert not re.search(r"(?i)<!--\s*(?:end\s+)?(?:auto-managed|manual)\b", made)


# Sound files, and a model of them.


@dataclass
class Model:
    """A file as a list: what a person wrote, and names of sections."""

    parts: list[bytes | str]
    bodies: dict[str, str] = field(default_factory=dict)
    views: Views = field(default_factory=list)

    @property
    def text(self) -> bytes:
        return dynamic.with_views(b"".join(map(self.part, self.parts)), self.views)

    def part(self, part: bytes | str) -> bytes:
        if isinstance(part, bytes):
            return part
        text = harmless(self.bodies.get(part, ""))
        is_html = re.search(r"(?m)^[^a-zA-Z\n]*<[a-zA-Z/]", text.rpartition("\n\n")[2])
        lines = [text, *([""] if is_html else [])] if text else []
        return "\n".join([OPEN.format(part), *lines, END, ""]).encode()


def model(written: list[bytes]) -> Model:
    parts: list[bytes | str] = [*written]
    for i, name in enumerate(NAMES):
        parts.insert(2 * i + 1, name)
    return Model(parts)


MODELS = st.lists(WRITTEN, min_size=4, max_size=4).map(model)


@settings(max_examples=250)
@given(MODELS, st.lists(st.one_of(st.tuples(st.sampled_from(NAMES), TEXT), VIEWS), max_size=8))
def test_a_sound_file_is_what_the_model_of_it_says_after_every_write(
    model: Model, writes: list[tuple[str, str] | Views]
) -> None:
    text = model.text
    for write in writes:
        if isinstance(write, tuple):
            name, new = write
            model.bodies[name] = new
            text = with_section(text, name, new)
        else:
            model.views = write
            text = dynamic.with_views(text, write)
        assert text == model.text
    assert shape(text)[0] == NAMES
    assert parse(text).problems == ()


# Real files, the real writer.


@contextmanager
def folder() -> Iterator[tuple[str, str]]:
    """A project and a data folder, for one example."""
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(os.path.join(place, "api"))
        yield os.path.join(place, "api"), os.path.join(place, "data")


def patient(write: Callable[[], bool]) -> None:
    """A person's edit is waited for; on a busy machine, more than once."""
    for _ in range(20):
        try:
            assert write()
            return
        except Conflict:
            time.sleep(0.05)
    raise AssertionError("the file never came to rest")


EDITS = st.tuples(st.integers(0, 6), WRITTEN)
STEPS = st.lists(st.one_of(st.tuples(st.sampled_from(NAMES), TEXT), VIEWS, EDITS), max_size=6)


@settings(max_examples=40)
@given(MODELS, STEPS)
def test_a_real_file_that_a_person_edits_between_our_writes_is_what_the_model_says(
    model: Model, steps: list[Any]
) -> None:
    with folder() as (project, data):
        path = Path(project, "CLAUDE.md")

        def change(found: bytes) -> bytes:
            return with_section(found, name, new)

        path.write_bytes(model.text)
        for step in steps:
            if isinstance(step, list):
                model.views = step
                patient(lambda: writer.put_views(project, data, model.views, 0))
            elif isinstance(step[0], str):
                name, new = step
                model.bodies[name] = new
                patient(lambda: writer.rewrite(str(path), project, data, change, theirs=theirs, now=0))
            else:
                place, written = step
                where = [i for i, part in enumerate(model.parts) if isinstance(part, bytes)]
                i = where[place % len(where)]
                model.parts[i] = model.part(model.parts[i]) + written
                path.write_bytes(model.text)
            assert path.read_bytes() == model.text
        assert os.listdir(project) == ["CLAUDE.md"]


# Several processes at once. They stay, so that many files can be tried.

WORKER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from backstory.claude_md.write import sections, writer

for line in sys.stdin:
    order = json.loads(line)
    project, data = order["project"], order["data"]
    path = project + "/CLAUDE.md"
    for kind, what in order["writes"]:
        if kind == "views":
            done = writer.put_views(project, data, what, 0)
        elif kind == "new":
            change = lambda text: sections.with_new(text, what)
            done = writer.rewrite(path, project, data, change, theirs=sections.theirs, now=0, create=b"")
        else:
            change = lambda text: sections.with_section(text, kind, what)
            done = writer.rewrite(path, project, data, change, theirs=sections.theirs, now=0)
        assert done
    print("done", flush=True)
"""


class Workers:
    def __init__(self, stack: ExitStack, many: int) -> None:
        self.all = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WORKER, SOURCE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(many)
        ]
        stack.callback(lambda: [pipe(one.stdin).close() for one in self.all])

    def write(self, project: str, data: str, writes: list[list[tuple[str, Any]]]) -> None:
        """Each does its own, all at the same time."""
        for worker, own in zip(self.all, writes, strict=False):
            order = {"project": project, "data": data, "writes": own}
            pipe(worker.stdin).write(json.dumps(order) + "\n")
            pipe(worker.stdin).flush()
        for worker, _ in zip(self.all, writes, strict=False):
            assert pipe(worker.stdout).readline() == "done\n"


def pipe(found: IO[str] | None) -> IO[str]:
    assert found
    return found


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with ExitStack() as stack:
        yield Workers(stack, 4)


PUTS = st.lists(TEXT, min_size=1, max_size=3)


@settings(max_examples=25)
@given(MODELS, st.tuples(PUTS, PUTS), st.tuples(VIEWS, VIEWS), st.lists(VIEWS, max_size=3))
def test_whoever_writes_at_once_both_parts_arrive_and_a_persons_text_stays(
    workers: Workers,
    model: Model,
    puts: tuple[list[str], list[str]],
    last: tuple[Views, Views],
    views: list[Views],
) -> None:
    """Two write docmem's views, and two a section each."""
    with folder() as (project, data):
        path = Path(project, "CLAUDE.md")
        path.write_bytes(model.text)
        sections = [[(name, text) for text in texts] for name, texts in zip(NAMES, puts, strict=False)]
        shows = [[*[("views", one) for one in views], ("views", one)] for one in last]
        workers.write(project, data, [*sections, *shows])
        model.bodies = {name: texts[-1] for name, texts in zip(NAMES, puts, strict=False)}
        expected = []
        for model.views in last:  # one of them was the last
            expected.append(model.text)
        assert path.read_bytes() in expected
        assert os.listdir(project) == ["CLAUDE.md"]


@settings(max_examples=25)
@given(ANY, st.lists(st.tuples(st.sampled_from(NAMES), TEXT), max_size=4), VIEWS)
def test_whoever_writes_at_once_into_any_file_nothing_outside_of_our_parts_changes(
    workers: Workers, text: bytes, puts: list[tuple[str, str]], views: Views
) -> None:
    text = settled(text)
    known = shape(text)[0]
    puts = [(name, new) for name, new in aimed(puts, known) if name in known]
    with folder() as (project, data):
        path = Path(project, "CLAUDE.md")
        path.write_bytes(text)
        workers.write(project, data, [puts[::2], puts[1::2], [("views", views)], [("views", views)]])
        found = path.read_bytes()
        assert outside(dynamic.without(found)) == outside(text)
        assert found == dynamic.with_views(dynamic.without(found), views)
        allowed: dict[str, list[str]] = {}
        for name, new in puts:
            allowed.setdefault(name, []).append(harmless(new))
        for section in parse(found).sections:
            if section.name in allowed:
                said = body(found, section)
                assert any(same(said, text) for text in allowed[section.name])  # where it was spaced, it is


@settings(max_examples=15)
@given(st.one_of(st.none(), st.lists(WRITTEN, max_size=3).map(b"".join)), VIEWS)
def test_whoever_adds_sections_at_once_adds_each_once(
    workers: Workers, text: bytes | None, views: Views
) -> None:
    with folder() as (project, data):
        path = Path(project, "CLAUDE.md")
        if text is not None:
            path.write_bytes(text)
        first = [("new", [(name, f"{i} {name}") for name in NAMES]) for i in range(3)]
        workers.write(project, data, [[one] for one in first])
        workers.write(project, data, [[("views", views)], [("new", [("d", "text")])]])
        found = dynamic.without(path.read_bytes())
        assert shape(found)[0] == [*NAMES, "d"]
        assert found.startswith(text or b"")
        winners = {body(found, section)[0] for section in parse(found).sections[:3]}
        assert len(winners) == 1  # the file was changed by one after the other


MANY = """
import select, sys, time
sys.path.insert(0, sys.argv[1])
from backstory.claude_md.write import sections, writer
from backstory.errors import Conflict

project, data, what = sys.argv[2:]
path = project + "/CLAUDE.md"
number = 0

def write():
    text = f"{what} {number}\\n```\\n{'@' * 50}\\n<!-- END AUTO-MANAGED -->"
    if what == "views":
        return writer.put_views(project, data, [("ab12cd34", text)], 0)
    change = lambda found: sections.with_section(found, what, text)
    return writer.rewrite(path, project, data, change, theirs=sections.theirs, now=0)

while not select.select([sys.stdin], [], [], 0.01)[0]:  # without a pause the others hardly get the lock
    number += 1
    try:
        assert write()
    except Conflict:
        pass  # on a busy machine the file may not come to rest
    if number == 1:
        print("writing", flush=True)
"""


def test_a_person_who_saves_while_docmem_and_sections_are_written_loses_nothing(
    project: str, data: Path
) -> None:
    path = Path(project, "CLAUDE.md")
    start = Model(
        [b"above\n\n", "a", b"\n<!-- MANUAL -->\nmine\n<!-- END MANUAL -->\n\n", "c3", b"\nbelow\n"]
    )
    path.write_bytes(start.text)
    edits = 40
    with ExitStack() as stack:
        writing = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", MANY, SOURCE, project, str(data), what],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for what in ("a", "c3", "views")
        ]
        for one in writing:
            stack.callback(one.kill)
        assert [pipe(one.stdout).readline() for one in writing] == ["writing\n"] * 3
        for number in range(edits):
            line, place = b"edit %d\n" % number, (b"above\n", b"mine\n", b"below\n")[number % 3]
            saved = path.with_suffix(".swp")
            saved.write_bytes(path.read_bytes().replace(place, place + line, 1))
            os.rename(saved, path)
            time.sleep(0.03 + number % 7 / 200)
        for one in writing:
            one.communicate(timeout=60)
        assert [one.returncode for one in writing] == [0, 0, 0]
    found = path.read_bytes()
    assert sorted(map(int, re.findall(rb"^edit (\d+)$", found, re.MULTILINE))) == list(range(edits))
    assert shape(found)[0] == ["a", "c3"]
    assert parse(found).problems == ()
    outer = re.sub(rb"(?m)^edit \d+\n", b"", b"".join(outside(dynamic.without(found))))
    assert outer == b"".join(outside(start.text))
    for name, section in zip(("a", "c3"), parse(found).sections, strict=True):
        assert re.fullmatch(
            rf"{name} \d+\n```\n[\\@]+\n&lt;!-- END AUTO-MANAGED -->\n```", body(found, section)
        )
    assert re.search(rb"\nviews \d+\n", found)
