"""What a person has written about a project for agents, and which of our sections that covers already.

Their text is that of CLAUDE.md, .claude/CLAUDE.md and AGENTS.md, of the project and of the folder in
question, and what these import of the project by `@path`; without sections of ours. A section is covered
where at least half of the commands and paths that it names stand in that text (all, where it names next to
none), or a part below a heading of its kind has code of its own: a person's commands go before those that a
program finds. What a project is, is covered by a sentence that says so, and by any longer text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice

from backstory.claude_md.write import dynamic, managed, sections
from backstory.errors import BackstoryError

NAMES = ("CLAUDE.md", os.path.join(".claude", "CLAUDE.md"), "AGENTS.md")
MOST_FILES = 20
MOST_BYTES = 200_000  # of all of them
MOST_HEADINGS = 1_000
FENCE = "\x00"
LONGEST_LINE = 500
FEW = 3  # commands and paths that say too little about what a text covers
LEAST_BELOW = 100  # characters below a heading
LONG = 1_000  # characters of a text that has introduced its project
# best-practices is not among them, and git-insights only where it is about messages: no text that names a
# file says how it changes.
KINDS = {
    "project-description": r"overview|about|introduction|description|purpose|what is",
    "module-description": r"overview|about|introduction|description|purpose|what is",
    "build-commands": r"commands?|build|building|development|running|setup",
    "architecture": r"architecture|structure|layout",
    "conventions": r"style|conventions?|guidelines?|formatting|naming",
    "patterns": r"patterns?|tests?|testing",
}
SAYS_OF_COMMITS = re.compile(
    r"conventional[ -]commits?|\bcommits? (?:messages?|style|subjects?|titles?)\b|\bcommits?:"
    r"|`(?:feat|fix)[:(]",
    re.IGNORECASE,
)
_IMPORT = re.compile(rb"(?<![\w\\])@([\w./-]{1,300})")
_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)([^`\n]{1,300})\1(?!`)")
_EVIDENCE = re.compile(r"\(from `[^()\n]*\)")
_WORD = re.compile(r"[\w.-]+")
_PARTS = ("_", "-", ".")  # of a longer word
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+([^\n]*)$", re.MULTILINE)


class OwnText:
    """What a person wrote, ready to be looked into."""

    def __init__(self, texts: Collection[bytes]) -> None:
        self._fences: list[str] = []
        plain: list[str] = []
        for text in texts:
            at = 0
            for start, stop in dynamic.layout(text).fences:
                plain.append(text[at:start].decode(errors="replace"))
                self._fences.append(text[start:stop].decode(errors="replace"))
                plain.append(f"\n{FENCE * (stop - start)}\n")  # text below its heading, and no words
                at = stop
            plain.append(text[at:].decode(errors="replace"))
        self._plain = "\n".join(plain)

    @cached_property
    def _words(self) -> str:
        return " ".join(" ".join((self._plain, *self._fences)).split())

    @cached_property
    def _code(self) -> frozenset[str]:
        """The words in what is marked as code."""
        spans = (found[2] for found in _SPAN.finditer(self._plain))
        return frozenset(word for code in (*spans, *self._fences) for word in _WORD.findall(code))

    @cached_property
    def _trees(self) -> list[frozenset[str]]:
        return [frozenset(_WORD.findall(fence)) for fence in self._fences]

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Whether a line of it does; a pattern may take its time on a long one."""
        return any(pattern.search(line[:LONGEST_LINE]) for line in self._plain.splitlines())

    def covers(self, name: str, body: str, project: str) -> str:
        """How it says what a section would; empty where it does not."""
        if name == "git-insights":
            is_of_commits = body.count("\n- ") == 1 and "\n- Commits: " in body
            says = is_of_commits and SAYS_OF_COMMITS.search(self._words)
            return "it says how commits are written" if says else ""
        if name not in KINDS or not self._words:
            return ""
        named = _named(body)
        there = sum(map(self._has, named))
        if there and there >= (len(named) / 2 if len(named) >= FEW else len(named)):
            return f"{there} of {len(named)} commands and paths are there"
        if name == "project-description" and (len(self._words) >= LONG or self._says_what_is(project)):
            return f"it says what {project} is"
        is_told_by_heading = name != "conventions" or len(named) < FEW
        if is_told_by_heading and (heading := self._heading(KINDS[name], named)):
            return f"it has a part `{heading}`"
        return ""

    def _has(self, thing: str) -> bool:
        words = " ".join(thing.split()).removeprefix("./").rstrip("/")
        if re.fullmatch("[a-z]+", words):
            return words in self._code  # elsewhere it may be any English word
        if _occurs(words, self._words):
            return True
        parts = words.split("/")
        if len(parts) == 1 or " " in words:
            return False
        # A tree in a code fence has the names of a path in several lines; prose may say `Polly.Testing`.
        is_named = not parts[-1].isidentifier() and _occurs(parts[-1], self._words)
        return is_named or any(tree.issuperset(parts) for tree in self._trees)

    def _says_what_is(self, project: str) -> bool:
        name = re.escape(project.rpartition("/")[2][:100])
        return bool(name) and bool(
            re.search(rf"\b{name}[`*_\"]{{0,3}} is (?:an?|the)\b", self._words, re.IGNORECASE)
        )

    def _heading(self, kind: str, named: Collection[str]) -> str:
        """A heading of that kind with text below, and code in that where a section would name some."""
        headings = list(islice(_HEADING.finditer(self._plain), MOST_HEADINGS))
        for i, found in enumerate(headings):
            if not re.search(rf"\b(?:{kind})\b", found[2], re.IGNORECASE):
                continue
            after = (one.start() for one in headings[i + 1 :] if len(one[1]) <= len(found[1]))
            below = self._plain[found.end() : next(after, len(self._plain))]
            if len(below.strip()) >= LEAST_BELOW and (len(named) < FEW or "`" in below or FENCE in below):
                return found[2].strip().strip("#").strip()[:60]
        return ""


def own_text(root: str, folder: str, *, without: Collection[str] = ()) -> OwnText:
    """That of a folder of the project, and of the project. A file that cannot be read says nothing."""
    folders = dict.fromkeys((folder, ""))
    waiting = [os.path.join(root, above, name) for above in folders for name in NAMES]
    seen = {os.path.realpath(path) for path in without}
    top = os.path.realpath(root)
    texts: list[bytes] = []
    room = MOST_BYTES
    while waiting and len(texts) < MOST_FILES and room > 0:
        path = os.path.realpath(waiting.pop(0))
        if path in seen or not path.startswith(top.rstrip("/") + "/") or not os.path.isfile(path):
            continue
        seen.add(path)
        try:
            text = sections.theirs(managed.read(path)[:room])
        except BackstoryError:
            continue
        room -= len(text)
        texts.append(text)
        waiting += [os.path.join(os.path.dirname(path), place) for place in imported(text)]
    return OwnText(texts)


def imported(text: bytes) -> list[str]:
    """The paths that a file for Claude Code imports; not by an example in a code fence or in backticks."""
    kept, at = [], 0
    for start, stop in dynamic.layout(text).fences:
        kept.append(text[at:start])
        at = stop
    plain = re.sub(rb"`[^`\n]*`", b"", b"".join((*kept, text[at:])))
    return [os.path.normpath(os.fsdecode(path)) for path in _IMPORT.findall(plain)]


def is_same_text(one: bytes, other: bytes) -> bool:
    """Does one file say what the other says? Then importing the other would say it twice. Half of its lines
    are enough: a copy has a heading of its own, and grows older."""
    lines, known = (_lines(text) for text in (other, one))
    return bool(lines) and 2 * len(lines & known) >= len(lines)


def _lines(text: bytes) -> set[bytes]:
    return {line.strip() for line in sections.theirs(text).splitlines()} - {b""}


def _named(body: str) -> list[str]:
    """The commands and paths that a section names: its code, each once. A bare name (`utils`) may stand for
    anything: such count only where there is nothing else. The files that say so are not what it says."""
    code = list(dict.fromkeys(found[2].strip() for found in _SPAN.finditer(_EVIDENCE.sub("", body))))
    return [thing for thing in code if not thing.isidentifier()] or code


def _occurs(words: str, text: str) -> bool:
    """Are these words there as such, and not as a part of others?"""
    for at in _places(words, text):
        before, after = text[at - 1 : at], text[at + len(words) : at + len(words) + 1]
        is_begun = before == "/" and text[at - 2 : at] != "./"
        if not (before.isalnum() or before in _PARTS or is_begun or after.isalnum() or after in _PARTS[:2]):
            return True
    return False


def _places(words: str, text: str) -> Iterator[int]:
    at = text.find(words) if words else -1
    while at >= 0:
        yield at
        at = text.find(words, at + 1)
