"""AUTO-MANAGED sections and MANUAL parts of a CLAUDE.md: found, read, replaced. Bytes in, bytes out.

    <!-- AUTO-MANAGED: build-commands -->
    <!-- backstory: by program, digest 3f9a1c0b7e21 -->
    ours: what is between the markers is replaced, and nothing else
    <!-- END AUTO-MANAGED -->

    <!-- MANUAL -->
    a person's: never touched, whatever it looks like
    <!-- END MANUAL -->

A marker is alone on its line, indented by at most three blanks. In a code fence and in docmem's section it is
text, and so it is below a fence that is never closed. Fences are found by the rules of `dynamic`, so that the
two agree on what is whose.

Whatever leaves it open what belongs to a section makes it unsound: it is reported, and neither read nor
written, and never mended, because only who wrote the file knows what was meant.

    a section in a section          both
    one without an end              itself, and the one that begins in it; not those below that
    a name that is there twice      all of that name
    a MANUAL part, an end of one, a malformed marker or docmem's section in a section   that section

Sections in a MANUAL part are text. What enters a section is made harmless, so it stays as sound as it was.

The ownership line says who of ours wrote the section, and the digest of what was written: a clone and another
machine know it by that. It is no part of the section's body. A repository may forge one, and so it decides
about nothing but the text of its section.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from backstory.claude_md.write import dynamic
from backstory.errors import BadInput, NotFound
from backstory.safety.clean import clean_whole

NAMES = tuple(
    "project-description build-commands architecture conventions patterns best-practices git-insights"
    " module-description".split()
)
END = "<!-- END AUTO-MANAGED -->"


@dataclass(frozen=True, slots=True)
class Section:
    """A sound one. All are offsets of bytes."""

    name: str
    start: int  # with its markers
    stop: int
    body_start: int  # between the lines of the markers
    body_stop: int


@dataclass(frozen=True, slots=True)
class Ownership:
    """What the ownership line of a section says."""

    author: str  # program or model
    digest: str  # of what that author wrote; somebody may have edited it since
    facts: str | None = None  # a digest of what a model's text was written on

    @property
    def line(self) -> str:
        facts = f", facts {self.facts}" if self.facts else ""
        return f"<!-- backstory: by {self.author}, digest {self.digest}{facts} -->"


@dataclass(frozen=True, slots=True)
class Problem:
    line: int
    said: str  # what is wrong, and what to do
    name: str = ""  # of the section that is unsound for it


@dataclass(frozen=True, slots=True)
class Parsed:
    sections: tuple[Section, ...]  # the sound ones
    manual: tuple[tuple[int, int], ...]  # with their markers
    problems: tuple[Problem, ...]
    unclosed: Problem | None = None  # what is still open at the end, so that nothing can be added there


def parse(text: bytes) -> Parsed:
    return _Parser().parsed(text)


def _is_no_utf8(text: bytes) -> bool:
    return text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in text


def body(text: bytes, section: Section) -> str:
    """What is between the markers: with LF, without the outer blank lines and the ownership line. No two
    texts have the same: bytes that are no UTF-8 are surrogates, see `readable`."""
    return unowned(text[section.body_start : section.body_stop])


def unowned(between: bytes) -> str:
    """The body of a section, of what is between its markers."""
    found = _OWNERSHIP.sub(b"", between)
    return _trimmed(found.decode("utf-8", "surrogateescape").replace("\r\n", "\n"))


def owners(text: bytes, section: Section) -> tuple[Ownership, ...]:
    """The ownership lines of a section: one, where a backstory wrote it that makes them; more where git has
    merged two texts."""
    found = _OWNERSHIP.finditer(text[section.body_start : section.body_stop])
    said = (tuple(part.decode() for part in one.groups(b"")) for one in found)
    return tuple(Ownership(author, digest, facts or None) for author, digest, facts in said)


def readable(body: str) -> str:
    """A body as it can be shown and kept."""
    return body.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def get(text: bytes, name: str) -> str:
    return readable(body(text, sound(text, name)))


def sound(text: bytes, name: str) -> Section:
    """The section of that name. NotFound or BadInput, with the reason, where no sound one has it."""
    parsed = parse(text)
    for section in parsed.sections:
        if section.name == name:
            return section
    for problem in parsed.problems:
        if problem.name == name:
            raise BadInput(f"section {name} cannot be used: line {problem.line}: {problem.said}")
    names = ", ".join(section.name for section in parsed.sections) or "none; backstory init adds them"
    hidden = f" (line {parsed.unclosed.line}: {parsed.unclosed.said})" if parsed.unclosed else ""
    raise NotFound(f"there is no section {name}; those there are: {names}{hidden}")


def with_section(text: bytes, name: str, body: str, owner: Ownership | None = None) -> bytes:
    """The file with this body in a section that is there; its line breaks are those of the opening marker,
    and where a formatter has been over the section, there are blank lines as it would put them. The ownership
    line stays as it is, unless another one is given; an empty section has none."""
    section = sound(text, name)
    crlf = text.endswith(b"\r\n", section.start, section.body_start)
    there = _OWNERSHIP.sub(b"", text[section.body_start : section.body_stop])
    is_spaced = there.startswith((b"\n", b"\r\n")) and there.strip()
    new = _lines(body, crlf)
    if new and is_spaced:
        formatted = f"\n{spaced(harmless(body))}\n\n".encode()
        new = formatted.replace(b"\n", b"\r\n") if crlf else formatted
    kept = (owner,) if owner else owners(text, section)
    line = f"{kept[0].line}{chr(13) if crlf else ''}\n".encode() if new and kept else b""
    return text[: section.body_start] + line + new + text[section.body_stop :]


def with_owner(text: bytes, name: str, owner: Ownership) -> bytes:
    """The file with this ownership line in a section, and nothing else of it changed."""
    section = sound(text, name)
    crlf = text.endswith(b"\r\n", section.start, section.body_start)
    line = f"{owner.line}{chr(13) if crlf else ''}\n".encode()
    rest = _OWNERSHIP.sub(b"", text[section.body_start : section.body_stop])
    return text[: section.body_start] + line + rest + text[section.body_stop :]


def with_new(text: bytes, new: Sequence[tuple[str, str]]) -> bytes:
    """The file with those of these sections, (name, body) each, that it lacks, in one piece: below those of
    ours that come before them in `NAMES`, or above the first; where there are none, at the file's end, above
    docmem's section. One that is there stays as it is, sound or not."""
    before = parse(text)
    known = {section.name for section in before.sections} | {problem.name for problem in before.problems}
    missing = [(name, body) for name, body in new if name not in known]
    if not missing:
        return text
    if _is_no_utf8(text):
        raise BadInput(
            "the file is in UTF-16, or has zero bytes in it; sections cannot be there: save it in UTF-8"
            " without them, and try again"
        )
    if before.unclosed:
        raise BadInput(f"no section can be added: line {before.unclosed.line}: {before.unclosed.said}")
    added = b"\n".join(
        f"<!-- AUTO-MANAGED: {name} -->\n".encode() + _lines(body) + f"{END}\n".encode()
        for name, body in missing
    )
    first = min(map(_place, (name for name, _ in missing)))
    has_place = first < len(NAMES)
    ours = [section for section in before.sections if has_place and section.name in NAMES]
    stops = [section.stop for section in ours if _place(section.name) < first]
    at = stops[-1] if stops else ours[0].start if ours else dynamic.last_place(text)
    above, below = text[:at], text[at:]
    crlf = (above[: above.rfind(b"\n") + 1] or text[: text.find(b"\n") + 1]).endswith(b"\r\n")
    is_apart = above in (b"", codecs.BOM_UTF8) or above.endswith((b"\n\n", b"\n\r\n"))
    before_it = b"" if is_apart else b"\n" if above.endswith(b"\n") else b"\n\n"
    after_it = b"\n" if ours and below[:1] not in (b"", b"\r", b"\n") else b""
    added = before_it + added + after_it
    return above + (added.replace(b"\n", b"\r\n") if crlf else added) + below


def _place(name: str) -> int:
    """In the order in which sections stand: a file has the description of a project, or of a module."""
    return 0 if name == "module-description" else NAMES.index(name) if name in NAMES else len(NAMES)


def has_known(text: bytes) -> bool:
    """Does it have sections by names that we know?"""
    return any(section.name in NAMES for section in parse(text).sections)


def has_ownership(text: bytes) -> bool:
    """Is one of the sections ours by its ownership line?"""
    if _OWNERSHIP.search(text) is None:
        return False
    found = parse(text).sections
    return any(section.name in NAMES and owners(text, section) for section in found)


def marker_lines(text: bytes) -> list[bytes]:
    """The lines that are markers, wherever they stand."""
    return [found["line"] for found in _MARKER.finditer(text) if _EXACT.fullmatch(found["said"])]


def theirs(text: bytes, is_ours: Callable[[Section], bool] | None = None) -> bytes:
    """What is not ours: the file without docmem's section and what is in sound sections; with `is_ours`, only
    in those of which it says so."""
    kept, at = bytearray(), 0
    for section in parse(text).sections:
        if is_ours is None or is_ours(section):
            kept += text[at : section.body_start]
            at = section.body_stop
    return dynamic.theirs(bytes(kept + text[at:]))


def redacted(text: str) -> str:
    """Without secrets and private parts."""
    return clean_whole(text)[0]


def cleaned(body: str) -> str:
    """What a section gets of a text: redacted, and harmless."""
    return harmless(redacted(body))


def harmless(body: str) -> str:
    """Text that anybody may have written, as a section can have it: with LF, without the outer blank lines
    and ownership lines; what looks like a marker, like docmem's section or like an import is plain text,
    fences are closed."""
    plain = dynamic.plain(_OWNERSHIP_IN_TEXT.sub("", body.replace("\r\n", "\n")))
    found = _LIKE_MARKER.sub(b"&lt;", _trimmed(plain.decode()).encode())
    closing = dynamic.closing(found)
    found = dynamic.without_open_html(found + b"\n" + closing if closing else found)
    return _without_imports(found).decode()


def _without_imports(text: bytes) -> bytes:
    """Claude Code imports nothing in code, and a backslash would spoil a command there. But text may be made
    to look like code to us and not to the client; so code is left alone only where all around it is plain."""
    pieces = _around(_CODE, text)
    if any(_NOT_PLAIN.search(piece) for piece in pieces[::2]):
        return dynamic.without_imports(text)
    for i in range(0, len(pieces), 2):
        blocks = _BLANK_LINES.split(pieces[i])  # nothing that is in a line goes on below a blank one
        pieces[i] = b"".join(map(_without_imports_in_block, blocks))
    return b"".join(pieces)


def _without_imports_in_block(block: bytes) -> bytes:
    pieces = _around(_SPAN, block)
    if any(_NOT_PLAIN_IN_LINE.search(piece) for piece in pieces[::2]):
        return dynamic.without_imports(block)
    pieces[::2] = map(dynamic.without_imports, pieces[::2])
    # In a list the client does not mind backticks. It never takes an `@` that follows a sign.
    pieces[1::2] = (_AFTER_NO_SIGN.sub(rb"\\@", piece) for piece in pieces[1::2])
    return b"".join(pieces)


def _around(code: re.Pattern[bytes], text: bytes) -> list[bytes]:
    """Text in pieces, of which every second one is code."""
    pieces, at = [], 0
    for found in code.finditer(text):
        start, stop = found.span("code")
        pieces += [text[at:start], text[start:stop]]
        at = stop
    return [*pieces, text[at:]]


_HEADING = re.compile(r"#{1,6}[ \t]")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_IN_LIST = re.compile(r"[ \t]|(?:[-*+]|\d{1,9}[.)])[ \t]")
_BLOCK = re.compile(r"\s*(?:#{1,6}[ \t]|[-*+][ \t]|\d{1,9}[.)][ \t]|```|~~~)")


def canonical(body: str) -> str:
    """What two texts have in common that are the same: digest this. Formatters of Markdown put blank lines
    around headings, lists and code."""
    kept: list[str] = []
    blanks, is_code = 0, False
    for line in (line.rstrip(" \t\r") for line in _trimmed(body).split("\n")):
        if line:
            is_apart = blanks and (is_code or not (_BLOCK.match(line) or _BLOCK.match(kept[-1])))
            kept += [*([""] * blanks if is_apart else ()), line]
            is_code ^= _FENCE.match(line) is not None
        blanks = 0 if line else blanks + 1
    return "\n".join(kept)


def digest(body: str) -> str:
    """What a text is known by. An ownership line has the beginning of it, see `short`."""
    return hashlib.sha256(canonical(body).encode("utf-8", "surrogateescape")).hexdigest()


def short(body: str) -> str:
    return digest(body)[:12]


def same(one: str, other: str) -> bool:
    """Are they equal but for CRLF, blanks at the end of lines, and blank lines that mean nothing?"""
    return canonical(one) == canonical(other)


def _lines(body: str, crlf: bool = False) -> bytes:
    found = harmless(body).encode()
    # HTML in the last lines would go on below our end, up to a blank line.
    found += b"" if not found else b"\n\n" if _HTML.search(found, found.rfind(b"\n\n") + 1) else b"\n"
    return found.replace(b"\n", b"\r\n") if crlf else found


def spaced(body: str) -> str:
    """With blank lines around headings and lists."""
    made: list[str] = []
    is_code = False
    for line in body.split("\n"):
        above = made[-1] if made else ""
        if above and line and not is_code:
            is_heading = _HEADING.match(above) or _HEADING.match(line)
            is_edge = bool(_IN_LIST.match(above)) != bool(_IN_LIST.match(line))
            # No other blank line means nothing, see `canonical`.
            if (is_heading or is_edge) and (_BLOCK.match(above) or _BLOCK.match(line)):
                made.append("")
        is_code ^= _FENCE.match(line) is not None
        made.append(line)
    return "\n".join(made)


def _trimmed(text: str) -> str:
    """Without the outer blank lines. The first line keeps its indent, which may make it code."""
    blank = len(text) - len(text.lstrip(" \t\r\n"))
    return text[text.rfind("\n", 0, blank) + 1 :].rstrip(" \t\r\n")


# Finding markers. All of it takes time in proportion to the text.

_LIKE = rb"[-_/%b]*+(?:(?:END|BEGIN|START)[-_:/%b]*+)?(?:AUTO[-_%b]*+MANAGED|MANUAL)\b"
# A comment that another line would make a marker is one for other programs already.
_LIKE_MARKER = re.compile(rb"<(?=!--" + _LIKE % ((rb"\s",) * 3) + rb")", re.IGNORECASE)
_OWNERSHIP = re.compile(
    rb"^ {0,3}<!-- backstory: by (?P<author>program|model), digest (?P<digest>[0-9a-f]{12})"
    rb"(?:, facts (?P<facts>[0-9a-f]{12}))? -->[ \t\r]*+(?:\n|\Z)",
    re.MULTILINE,
)
_OWNERSHIP_IN_TEXT = re.compile(_OWNERSHIP.pattern.decode(), re.MULTILINE)
# A fence at the left margin, at the start, below a blank line or a heading, and no other fence in it.
_CODE = re.compile(
    rb"(?:\A|(?<=\n)\n|^#[^\n]*\n)(?P<code>```[\w+.#-]*\n(?:[^`~]|`(?!``)|~(?!~~))*+(?<=\n)```$)",
    re.MULTILINE,
)
# Other fences; HTML, or a link's title, that may have a fence in it; a table, that may part a line in two.
_NOT_PLAIN = re.compile(rb"```|~~~|^[^a-zA-Z\n]*[<\[]|^(?=[^a-zA-Z`\n]*+$)[^|:\n]*[|:]", re.MULTILINE)
_HTML = re.compile(rb"^[^a-zA-Z\n]*<[a-zA-Z/]", re.MULTILINE)
_BLANK_LINES = re.compile(rb"(\n[ \t]*\n)")
# Code in a line, after a blank or a bracket after one: a URL would take the backtick along.
_SPAN = re.compile(rb"(?:^|(?<=[ \t])|(?<=[ \t]\())(?P<code>`(?:[^`\\\n]|\\@)+`)(?!`)", re.MULTILINE)
# What may begin something that ends in the code. `@scope/name` is a package of npm, in many commands: as an
# import it could only be a file without an ending, two folders down in the project.
_AFTER_NO_SIGN = re.compile(rb"@(?<![!-~]@)(?![a-z0-9][a-z0-9-]*+/[a-z0-9][a-z0-9-]*+(?![\w./\\~-]))")
_NOT_PLAIN_IN_LINE = re.compile(rb"[`<\[~]|\\(?!@)")
_MARKER = re.compile(
    rb"^(?:\A\xef\xbb\xbf)?(?P<line> {0,3}<!--(?P<said>" + _LIKE % ((rb" \t",) * 3) + rb"[^\n]*+)(?:\n|\Z))",
    re.MULTILINE | re.IGNORECASE,
)
_EXACT = re.compile(
    rb"[ \t]*(?:AUTO-MANAGED[ \t]*:[ \t]*(?P<open>[a-z0-9][a-z0-9-]{0,63})|(?P<end>END[ \t]+AUTO-MANAGED)"
    rb"|(?P<manual>MANUAL)|(?P<end_manual>END[ \t]+MANUAL))[ \t]*-->[ \t\r]*"
)
# A person may well have a comment that begins with that word.
_PROSE = re.compile(rb"(?i:[ \t]*(?:end[ \t]+)?manual\b(?![ \t]*-->))(?<!MANUAL)")


@dataclass(slots=True)
class _Event:
    """A line, or docmem's section, that matters."""

    kind: str  # open, end, manual, end_manual, malformed, docmem, fence
    start: int
    stop: int
    line: int
    name: str = ""  # of a section that opens


@dataclass(slots=True)
class _Opened:
    """A section that has begun."""

    at: _Event
    is_sound: bool = True
    is_ended_wrongly: bool = False
    inner: list[tuple[_Opened, Section]] = field(default_factory=list)


def _events(text: bytes) -> Iterator[_Event]:
    sections, fences, open_fence = dynamic.layout(text)
    spans = sorted([(cut.start, cut.stop, True) for cut in sections] + [(*fence, False) for fence in fences])
    end = len(text) if open_fence is None else open_fence
    line, counted, i = 1, 0, 0

    def event(kind: str, start: int, stop: int, name: str = "") -> _Event:
        nonlocal line, counted
        line += text.count(b"\n", counted, start)
        counted = start
        return _Event(kind, start, stop, line, name)

    for found in _MARKER.finditer(text, 0, end):
        start, stop = found.span("line")
        while i < len(spans) and spans[i][1] <= start:
            if spans[i][2]:
                yield event("docmem", *spans[i][:2])
            i += 1
        if i < len(spans) and spans[i][0] <= start:
            continue
        exact = _EXACT.fullmatch(found["said"])
        if exact:
            kind = exact.lastgroup or ""
            yield event(kind, start, stop, exact["open"].decode() if kind == "open" else "")
        elif not _PROSE.match(found["said"]):
            yield event("malformed", start, stop)
    for start, stop, is_docmem in spans[i:]:
        if is_docmem and start < end:
            yield event("docmem", start, stop)
    if open_fence is not None:
        yield event("fence", open_fence, len(text))


class _Parser:
    def __init__(self) -> None:
        self.sections: list[tuple[_Opened, Section]] = []
        self.manual: list[tuple[int, int]] = []
        self.problems: list[Problem] = []
        self.openings: dict[str, list[_Opened]] = {}
        self.opened: list[_Opened] = []  # the outermost first
        self.in_manual: _Event | None = None
        self.unclosed: Problem | None = None

    def parsed(self, text: bytes) -> Parsed:
        for event in _events(text):
            if event.kind == "fence":
                said = "this code fence is never closed, so all below it is code; close it"
                self.unclosed = self._blame(event, said)
            elif self.in_manual:
                self._within_manual(event)
            else:
                getattr(self, f"_{event.kind}")(event)
        if self.in_manual:
            self.manual.append((self.in_manual.start, len(text)))
            said = "this MANUAL part has no end; add <!-- END MANUAL --> below its text"
            problem = self._blame(self.in_manual, said)
            self.unclosed = self.unclosed or problem
        for outer in self.opened:
            self._without_end(outer)
        if not self.sections and _is_no_utf8(text):
            self.problems.append(
                Problem(1, "the file is in UTF-16, or has zero bytes in it; save it in UTF-8")
            )
        for twice in self.openings.values():
            for one, other in zip(twice, [*twice[1:], twice[0]], strict=True):
                if one is not other:
                    said = f"section {one.at.name} is there twice, also in line {other.at.line}; remove one"
                    self._blame(one.at, said, one)
        sections = [section for opened, section in self.sections if opened.is_sound]
        sections.sort(key=attrgetter("start"))
        self.problems.sort(key=attrgetter("line"))
        return Parsed(tuple(sections), tuple(self.manual), tuple(self.problems), self.unclosed)

    def _open(self, event: _Event) -> None:
        if self.opened and self.opened[-1].is_ended_wrongly:
            self._without_end(self.opened.pop())
        opened = _Opened(event)
        self.openings.setdefault(event.name, []).append(opened)
        self.opened.append(opened)

    def _end(self, event: _Event) -> None:
        if not self.opened:
            self._blame(event, "this ends no section; remove it, or put the marker back that began one")
            return
        opened = self.opened.pop()
        at = opened.at
        if opened.inner:
            within = opened.inner[0][0].at
            said = f"section {at.name} has section {within.name} in it (line {within.line}); move that out"
            self._blame(at, said, opened)
        for inner, _ in opened.inner:
            self._nested(inner, at)
        section = Section(at.name, at.start, event.stop, at.stop, event.start)
        (self.opened[-1].inner if self.opened else self.sections).append((opened, section))

    def _without_end(self, outer: _Opened) -> None:
        if not outer.is_ended_wrongly:
            said = f"section {outer.at.name} has no end; add {END} below its text"
            problem = self._blame(outer.at, said, outer)
            self.unclosed = self.unclosed or problem
        if outer.inner:
            self._nested(outer.inner[0][0], outer.at)
            self.sections += outer.inner  # the others are sound

    def _nested(self, inner: _Opened, outer: _Event) -> None:
        where = f"within section {outer.name} (line {outer.line})"
        self._blame(inner.at, f"section {inner.at.name} begins {where}; move it out of there", inner)

    def _manual(self, event: _Event) -> None:
        if self.opened:
            name = self.opened[-1].at.name
            self._blame(event, f"a MANUAL part lies in section {name}; move it out of there", self.opened[-1])
        self.in_manual = event

    def _end_manual(self, event: _Event) -> None:
        if self.opened:
            said = f"section {self.opened[-1].at.name} ends as a MANUAL part does; make this {END}"
            self._blame(event, said, self.opened[-1])
            self.opened[-1].is_ended_wrongly = True
        else:
            self._blame(event, "this ends no MANUAL part; remove it, or put <!-- MANUAL --> back above")

    def _within_manual(self, event: _Event) -> None:
        if event.kind == "end_manual" and self.in_manual:
            self.manual.append((self.in_manual.start, event.stop))
            self.in_manual = None
        elif event.kind in ("open", "end", "manual"):
            self._blame(event, "a marker in a MANUAL part is text; end the part above it, or indent the line")

    def _malformed(self, event: _Event) -> None:
        said = "this is no marker as backstory knows them: <!-- AUTO-MANAGED: name -->, alone on its line"
        self._blame(event, f"{said}; correct it, or remove it", *self.opened[-1:])

    def _docmem(self, event: _Event) -> None:
        if self.opened:
            said = f"docmem's section lies in section {self.opened[-1].at.name}; move {END} above it"
            self._blame(event, said, self.opened[-1])

    def _blame(self, event: _Event, said: str, opened: _Opened | None = None) -> Problem:
        problem = Problem(event.line, said, opened.at.name if opened else "")
        self.problems.append(problem)
        if opened:
            opened.is_sound = False
        return problem
