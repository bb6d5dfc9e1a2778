"""What a person chose about the sections of a file, kept as comments in the file itself, so that it travels:

    <!-- backstory: off patterns, git-insights -->    sections that are not wanted
    <!-- backstory: command test = make check -->     what is said of a role, instead of what was found;
                                                      again for another command, with nothing to say nothing

Anybody may have written these lines. Only names of sections and of roles that we know, and a command's text
as one printable line, are taken from them; nothing of it is ever run. In a section, a MANUAL part, a code
fence or docmem's section such a line is text. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backstory.claude_md.read.commands.roles import COMMAND_ROLES
from backstory.claude_md.write import dynamic, sections
from backstory.errors import BadInput
from backstory.model import Command

LONGEST = 200  # characters of a command, as many as a section shows
MOST_OF_A_ROLE = 5
AS_FOUND, NO_COMMAND = ".", "none"  # what a person says instead of a command
MOST_BYTES = 1_000  # of a line
_LINE = re.compile(rb"^ {0,3}<!--[ \t]*+backstory:(?P<said>[^\n]*+)(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Settings:
    off: tuple[str, ...] = ()  # names of sections
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # role -> lines; none: say nothing

    def corrected(self, found: Sequence[Command]) -> tuple[Command, ...]:
        """What was found, with a person's commands in place of those of the same role. No file is the source
        of these."""
        kept = [command for command in found if command.folder or command.role not in self.commands]
        return (*kept, *(Command(role, line, "") for role, lines in self.commands.items() for line in lines))


def read(text: bytes) -> Settings:
    off: dict[str, None] = {}
    commands: dict[str, tuple[str, ...]] = {}
    for _, names, role, line in _understood(text):
        off |= dict.fromkeys(names)
        if role:
            known = commands.get(role, ())
            commands[role] = (*known, line) if line and line not in known else known
    return Settings(tuple(off), commands)


def misread(text: bytes) -> list[int]:
    """The lines that begin like a setting and are none: a comment of a person, or one that is misspelt."""
    good = {span for span, *_ in _understood(text)}
    return [text.count(b"\n", 0, span[0]) + 1 for span, _ in _lines(text) if span not in good]


def _understood(text: bytes) -> Iterator[tuple[tuple[int, int], list[str], str, str]]:
    """The lines that are settings to the last word: where; names of sections, or role and command."""
    known: dict[str, set[str]] = {}
    for span, said in _lines(text):
        verb, _, what = said.partition(" ")
        names = [name for name in re.split(r"[,\s]+", what) if name]
        role, is_given, given = what.partition("=")
        role, line = role.strip(), _shown(given)
        if verb == "off" and names and all(name in sections.NAMES for name in names):
            yield span, names, "", ""
        elif verb == "command" and is_given and role in COMMAND_ROLES and line is not None:
            line = "" if line.lower() == NO_COMMAND else line
            if line and len(known.setdefault(role, set()) | {line}) > MOST_OF_A_ROLE:
                continue
            known.setdefault(role, set()).update([line] if line else [])
            yield span, [], role, line


def write(text: bytes, settings: Settings) -> bytes:
    """The file with these settings: where it had some, or else at its end, above docmem's section."""
    if read(text) == settings:
        return text
    first, rest, at = None, bytearray(), 0
    for (start, stop), *_ in _understood(text):
        rest += text[at:start]
        first, at = len(rest) if first is None else first, stop
    kept = bytes(rest + text[at:])
    lines = "".join(f"<!-- backstory: {said} -->\n" for said in _said(settings)).encode()
    if not lines:
        return kept
    if first is None:
        first = dynamic.last_place(kept)
        above = kept[:first]
        is_apart = not above or above.endswith((b"\n\n", b"\n\r\n"))
        lines = (b"" if is_apart else b"\n" if above.endswith(b"\n") else b"\n\n") + lines
    if b"\r\n" in kept[: kept.find(b"\n") + 1]:
        lines = lines.replace(b"\n", b"\r\n")
    return kept[:first] + lines + kept[first:]


def with_choices(
    settings: Settings, off: Iterable[str], on: Iterable[str], commands: Mapping[str, tuple[str, ...] | None]
) -> Settings:
    """The same with what a person chose since; None for a role: what is found holds again."""
    wanted = set(on)
    names = dict.fromkeys((*settings.off, *off))
    merged = {**settings.commands, **commands}
    return replace(
        settings,
        off=tuple(name for name in sections.NAMES if name in names and name not in wanted),
        commands={role: lines for role in COMMAND_ROLES if (lines := merged.get(role)) is not None},
    )


def section_name(given: str) -> str:
    if given not in sections.NAMES:
        raise BadInput(f"no section is called {given[:80]!a}; there are {', '.join(sections.NAMES)}")
    return given


def command(given: str) -> tuple[str, str]:
    """Role and text of `test=make check`; an empty text, or `none`, says that there is no such command."""
    role, is_given, line = given.partition("=")
    role = role.strip().lower()
    if not is_given or role not in COMMAND_ROLES:
        wrong = f"no role is called {role[:80]!a}" if is_given else f"{given[:80]!a} is no ROLE=COMMAND"
        raise BadInput(
            f"{wrong}; the roles are {', '.join(COMMAND_ROLES)}, and `{NO_COMMAND}` for a command says that"
            " there is none"
        )
    return role, command_line(line)


def meant(line: str) -> tuple[str, ...] | None:
    """What a person's word about a role's command is for `with_choices`."""
    return None if line == AS_FOUND else () if line.lower() in ("", NO_COMMAND) else (line,)


def command_line(given: str) -> str:
    """A command as it can be kept in a comment and shown in a section."""
    line = _shown(sections.redacted(given))
    if line is None:
        raise BadInput(
            f"a command is one line of at most {LONGEST} printable characters without `-->` or `<!--`"
        )
    return line


def _shown(given: str) -> str | None:
    """None where it is no command that can be shown."""
    line = given.replace("\\@", "@").strip()
    is_plain = line.isprintable() and not re.search(r"--!?>|<!--", line)
    return line if is_plain and len(line) <= LONGEST else None


def _said(settings: Settings) -> Iterator[str]:
    if settings.off:
        yield f"off {', '.join(settings.off)}"
    for role, lines in settings.commands.items():
        for line in lines or ("",):
            # An `@` would be an import to a client that looks into comments.
            kept = dynamic.without_imports(line.encode()).decode()
            yield f"command {role} = {kept}".rstrip()


def _lines(text: bytes) -> Iterator[tuple[tuple[int, int], str]]:
    """The lines that begin like settings and stand in nothing else: where, and what they say."""
    found = list(_LINE.finditer(text))
    if not found:
        return
    parsed, layout = sections.parse(text), dynamic.layout(text)
    taken = [(section.start, section.stop) for section in parsed.sections]
    taken += [*((cut.start, cut.stop) for cut in layout.sections), *parsed.manual, *layout.fences]
    if layout.open_fence is not None:
        taken.append((layout.open_fence, len(text)))
    taken.sort()
    i, until = 0, 0
    for match in found:
        while i < len(taken) and taken[i][0] <= match.start():
            until = max(until, taken[i][1])
            i += 1
        comment = match["said"][: MOST_BYTES + 1].decode(errors="replace").strip()
        is_whole = comment.endswith("-->") and len(match["said"]) <= MOST_BYTES
        if match.start() >= until and is_whole:
            yield match.span(), " ".join(comment.removesuffix("-->").split(maxsplit=1))
