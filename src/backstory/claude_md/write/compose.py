"""What the sections of a CLAUDE.md say, put together from what is known about a project; the two templates.

All of it is short: a model reads it at the start of every session. And all of it is quiet: a date or a number
that changes with every commit would make every sync a change.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from backstory.claude_md.read import outline
from backstory.claude_md.read.files import ProjectFiles
from backstory.claude_md.read.imports import NODE
from backstory.claude_md.read.languages import ENDINGS, is_test
from backstory.claude_md.read.manifests.frameworks import FOR_TESTS
from backstory.claude_md.read.survey import COMMAND_ROLES
from backstory.claude_md.write import sections
from backstory.model import Command, Insights, Pattern, Survey

ROOT = """\
# Project: {{PROJECT_NAME}}

<!-- AUTO-MANAGED: project-description -->
{{DESCRIPTION}}
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: build-commands -->
## Build Commands
{{BUILD_COMMANDS}}
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: architecture -->
## Architecture Overview
{{ARCHITECTURE}}
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: conventions -->
## Code Conventions
{{CONVENTIONS}}
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: patterns -->
## Detected Patterns
{{PATTERNS}}
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: best-practices -->
## Best Practices
{{BEST_PRACTICES}}
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: git-insights -->
## Git Insights
{{GIT_INSIGHTS}}
<!-- END AUTO-MANAGED -->

<!-- MANUAL -->
## Custom Notes
Add your custom notes here. This section will never be auto-modified.
<!-- END MANUAL -->
"""
SUBTREE = """\
# Module: {{MODULE_NAME}}

<!-- AUTO-MANAGED: module-description -->
{{DESCRIPTION}}
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: architecture -->
## Module Architecture
{{ARCHITECTURE}}
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: conventions -->
## Module Conventions
{{CONVENTIONS}}
<!-- END AUTO-MANAGED -->

<!-- MANUAL -->
## Module Notes
<!-- END MANUAL -->
"""
TEMPLATES = {"root": ROOT, "subtree": SUBTREE}
_SECTION = re.compile(
    r"<!-- AUTO-MANAGED: (?P<name>[a-z-]+) -->\n(?P<body>.*?)<!-- END AUTO-MANAGED -->\n\n", re.DOTALL
)
_MANUAL = re.compile(r"(?<=<!-- MANUAL -->\n).*(?=<!-- END MANUAL -->)", re.DOTALL)
_BLANK = re.compile(r"\{\{[A-Z_]+\}\}")

DESCRIPTION = 500  # characters
MOST_COMMANDS = 5  # of a role
LONGEST_EXAMPLE = 60
MOST_HOT, MOST_TOGETHER, MOST_DECISIONS = 5, 3, 5
NOTHING = "Nothing that the files show."  # where something stood before
USUAL = "As in the whole project."
ALWAYS_COMPUTABLE = frozenset("project-description build-commands architecture conventions patterns".split())
AS = ", as "
LANGUAGES = {name.lower(): name for name in ENDINGS.values()}


@dataclass(frozen=True, slots=True)
class Known:
    """What was found out about a project, or a part of one."""

    project: ProjectFiles
    survey: Survey
    patterns: tuple[Pattern, ...] = ()
    insights: Insights | None = None
    practices: str | None = None


# The templates.


def names(template: str) -> list[str]:
    """The sections that a template has, in order."""
    return [found["name"] for found in _SECTION.finditer(TEMPLATES[template])]


def skeleton(template: str, title: str, wanted: Collection[str], notes: bytes | None = None) -> bytes:
    """A new file: the template with these sections, empty. Notes, if given, are all of its manual part."""

    def section(found: re.Match[str]) -> str:
        if found["name"] not in wanted:
            return ""
        return found[0].replace(found["body"], "")

    text = _SECTION.sub(section, TEMPLATES[template])
    text = _BLANK.sub(lambda _: sections.harmless(_plain(title, 100)) or "this project", text, count=1)
    manual = _MANUAL.search(text)
    if notes is None or manual is None:
        return text.encode()
    above, below = text[: manual.start()].encode(), text[manual.end() :].encode()
    if notes.partition(b"\n")[0].endswith(b"\r"):
        above, below = above.replace(b"\n", b"\r\n"), below.replace(b"\n", b"\r\n")
    last = b"" if not notes or notes.endswith(b"\n") else b"\n"
    return above + notes + last + below


def _filled(template: str, contents: Mapping[str, str]) -> dict[str, str]:
    """The body of each section that has something to say."""
    bodies = {found["name"]: found["body"] for found in _SECTION.finditer(TEMPLATES[template])}
    return {
        name: _BLANK.sub(lambda _, said=contents[name]: said, body).strip("\n")
        for name, body in bodies.items()
        if contents.get(name)
    }


def nothing(template: str, name: str) -> str:
    """What a section says that had something to say before."""
    said = USUAL if (template, name) == ("subtree", "conventions") else NOTHING
    return _filled(template, {name: said})[name]


# The sections.


def texts(known: Known) -> dict[str, str]:
    """What the sections of the root's file say. One that would say nothing is left out."""
    survey = known.survey
    return _filled(
        "root",
        {
            "project-description": _description(survey),
            "build-commands": _commands(survey),
            "architecture": _architecture(known),
            "conventions": _conventions(known.patterns, known.project),
            "patterns": _patterns(known.patterns),
            "best-practices": (known.practices or "").strip(),
            "git-insights": _insights(known.insights),
        },
    )


def module_texts(
    known: Known, folder: str, part: ProjectFiles, own: Sequence[Pattern], commands: Sequence[Command] = ()
) -> dict[str, str]:
    """The same for the file of a folder, with the files below that, the patterns found in it, and the
    commands that its own manifests know."""
    top = outline.folders(part)
    said = outline.about(part, "", top.files)
    some = top.source / 10
    languages = [name for name, number in top.languages.most_common(3) if number >= some]
    what = f"{_and(languages)} in {_code(folder)}" if languages else _code(folder)
    description = (
        _plain(said[:1].upper() + said[1:], DESCRIPTION)
        if said
        else f"{what}, a part of {_plain(known.survey.name, 100)}"
    )
    lines = list(outline.lines(part, (), _code, _text))
    usual = {(one.type, one.subject): one.value for one in known.patterns}
    differs = [one for one in own if usual.get((one.type, one.subject)) != one.value]
    conventions = _conventions(differs, part)
    there = "\n".join(_roles(commands))
    if there:
        description = f"{_whole(description)}\n\nAfter {_code('cd ' + shlex.quote(folder))}:\n{there}"
    else:
        description = _whole(description)
    return _filled(
        "subtree",
        {
            "module-description": description,
            "architecture": "\n".join(lines),
            "conventions": f"{USUAL} What differs here:\n{conventions}" if conventions else "",
        },
    )


def _description(survey: Survey) -> str:
    said = _whole(_plain(survey.description, DESCRIPTION))
    languages = [name for name, _ in survey.languages]
    built = [name for name in survey.frameworks if name not in FOR_TESTS]
    tested = [name for name in survey.frameworks if name in FOR_TESTS]
    made = f"Written in {_and(languages)}" if languages else ""
    if made and built:
        made += f", with {_and(built[:8])}"
    if made and tested:
        made += f"; tested with {_and(tested[:4])}"
    return "\n\n".join(part for part in (said, f"{made}." if made else "") if part)


def _whole(text: str) -> str:
    """The sentences of a text that was cut off, without the one that is no more whole."""
    if text.endswith("…"):
        text = (re.match(r".*[.!?](?=\s)", text) or [""])[0]
    return f"{text}." if text[-1:].isalnum() or text.endswith((")", "`")) else text


def _commands(survey: Survey) -> str:
    label = "Package managers" if len(survey.managers) > 1 else "Package manager"
    packages = [f"- {label}: {_and(survey.managers)}"] if survey.managers else []
    return "\n".join([*packages, *_roles(survey.commands)])


def _roles(commands: Sequence[Command]) -> Iterator[str]:
    for role in COMMAND_ROLES:
        those = sorted((command for command in commands if command.role == role), key=_special)
        if those:
            yield f"- {role.capitalize()}: {_listed(those)}"


def _special(command: Command) -> int:
    """`make test` comes before `make test-docs`, and both keep their place among such as they."""
    word = command.line.split()[-1:]
    return 0 if word == [command.role] else 2 if re.search(r"\w[-:_]\w", "".join(word)) else 1


def _listed(commands: Sequence[Command]) -> str:
    shown = ", ".join(_code(command.line) for command in commands[:MOST_COMMANDS])
    rest = dict.fromkeys(command.source for command in commands[MOST_COMMANDS:])
    return shown + (f" and more in {_and([_code(source) for source in rest])}" if rest else "")


def _architecture(known: Known) -> str:
    lines = []
    workspaces = known.survey.workspaces
    if workspaces:
        shown = ", ".join(_code(path) for path in workspaces[:12])
        lines.append(f"A monorepo of {shown}{' and others' if len(workspaces) > 12 else ''}.")
    lines += outline.lines(known.project, workspaces, _code, _text)
    if entries := outline.entries(known.project):
        label = "Entry points" if len(entries) > 1 else "Entry point"
        lines.append(f"- {label}: {', '.join(_code(path) for path in entries)}")
    return "\n".join(lines)


KINDS = {"functions": "functions, methods", "classes": "classes", "constants": "constants", "files": "files"}
WITHOUT_CLASSES = {"functions": "functions, methods", "classes": "types"}  # Go and Rust
SEMICOLONS = {"always": "semicolons", "never": "no semicolons"}
FROM_NODE = re.compile(
    rf"(?:from|require\(|^import) *['\"](?:node:\w+|{'|'.join(sorted(NODE))})['\"/]", re.MULTILINE
)


def _conventions(patterns: Iterable[Pattern], project: ProjectFiles) -> str:
    """Patterns as rules to go by. Languages with the same rules share a line."""
    rules: dict[str, dict[str, list[str]]] = {}  # label -> language -> rules
    names: dict[str, dict[str, list[str]]] = {}  # language -> style -> what is named so
    for pattern in patterns:
        language, what = _subject(pattern)
        value = _plain(pattern.value, 100)
        if pattern.type == "naming":
            kinds = KINDS | WITHOUT_CLASSES if language in ("go", "rust") else KINDS
            names.setdefault(language, {}).setdefault(value, []).append(kinds.get(what, what))
        elif pattern.type == "import":
            said = _order(language, pattern, project) if "order" in what else value
            rules.setdefault("Imports", {}).setdefault(language, []).append(said)
        elif pattern.type == "style":
            how = {"quotes": f"{value} quotes", "indentation": f"indented with {value}"}
            said = how.get(what) or SEMICOLONS.get(value, value)
            rules.setdefault("Style", {}).setdefault(language, []).append(said)
    for language, styles in names.items():
        rules.setdefault("Names", {})[language] = [
            f"{_and(', '.join(kinds).split(', '))} {_code(style)}" for style, kinds in styles.items()
        ]
    several = len({language for languages in rules.values() for language in languages}) > 1
    lines = []
    for label in ("Names", "Style", "Imports"):
        same: dict[str, list[str]] = {}
        for language, those in rules.get(label, {}).items():
            same.setdefault(", ".join(those), []).append(LANGUAGES.get(language, language))
        for those_said, languages in same.items():
            shown = f"{_and(languages)} {label.lower()}" if several else label
            lines.append(f"- {shown}: {those_said}")
    return "\n".join(lines)


def _order(language: str, pattern: Pattern, project: ProjectFiles) -> str:
    """Names only what there is: a project for browsers imports nothing from Node."""
    first = "the standard library first"
    if language in ("javascript", "typescript"):
        uses_node = any(FROM_NODE.search(project.text(path, 100_000) or "") for path in pattern.examples)
        first = "Node's own modules first" if uses_node else ""
    return ", ".join(part for part in (first, "the project's own last") if part)


def _subject(pattern: Pattern) -> tuple[str, str]:
    """Of which language a pattern is, and what it is about."""
    words = pattern.subject.split()
    language = next((word for word in words if word in LANGUAGES), "")
    return language, " ".join(word for word in words if word != language)


def _patterns(patterns: Sequence[Pattern]) -> str:
    """What conventions do not say: architecture, and where tests are; with confidence and an example."""
    tested = {pattern.subject for pattern in patterns if pattern.type == "test"}
    lines = []
    for pattern in patterns:
        sure = f"({pattern.confidence:.0%})"
        if pattern.type == "architecture" and pattern.value != "monorepo":  # of which the outline tells
            value = _plain(pattern.value, 100)
            where = ", ".join(_code(example) for example in pattern.examples[:4])
            lines.append(f"- Architecture: {value} {sure}" + (f"{AS}{where}" if where else ""))
        elif pattern.type == "test":
            language, _ = _subject(pattern)
            label = f"{LANGUAGES.get(language, '')} tests" if len(tested) > 1 else "Tests"
            said, is_named = _tests(pattern.value)
            short = [example for example in pattern.examples if len(example) <= LONGEST_EXAMPLE]
            lines.append(
                f"- {label}: {said} {sure}" + (f"{AS}{_code(short[0])}" if short and is_named else "")
            )
    return "\n".join(lines)


def _tests(value: str) -> tuple[str, bool]:
    """Where tests are and what they are called, and whether an example would show it."""
    where, _, name = _plain(value, 100).partition(", ")
    if where.startswith("inline "):
        return f"in the source itself, under {_code(where.removeprefix('inline '))}", True
    folder = where.removesuffix(" folder")
    place = f"in {_code(folder)}" if folder.endswith("/") else where
    return (place, False) if name in ("", "any name") else (f"{place}, named {_code(name)}", True)


def settled(old: str, new: str, is_there: Callable[[str], bool]) -> str:
    """Detected patterns with the examples they had, as far as those are files that are there or no files: one
    example is as good as another."""
    known = {line.partition(AS)[0]: line for line in old.split("\n")}
    return "\n".join(
        kept if all(map(is_there, re.findall(r"`([^`]*[/.][^`]*)`", kept.partition(AS)[2]))) else line
        for line in new.split("\n")
        for kept in [known.get(line.partition(AS)[0], line)]
    )


def _insights(insights: Insights | None) -> str:
    if insights is None:
        return ""
    lines = []
    if insights.hot:  # by name: their order changes with every commit
        hot = sorted(path for path, _ in insights.hot[:MOST_HOT])
        lines.append(f"- Changed most often: {', '.join(_code(path) for path in hot)}")
    lines += [f"- {_code(one)} and {_code(other)} change together" for one, other in _pairs(insights)]
    if insights.habits:
        lines.append(f"- Commits: {' '.join(_plain(habit, 200) for habit in insights.habits)}")
    if insights.decisions:
        lines.append("- Decided:")
        for date, commit, said in insights.decisions[:MOST_DECISIONS]:
            lines.append(f"  - {_text(said)} ({_plain(date, 20)}, {_plain(commit, 16)})")
    return "\n".join(lines)


def _pairs(insights: Insights) -> list[tuple[str, str]]:
    """Files that change together: one pair of a folder, and none of source and test, which is no news."""
    seen: set[str] = set()
    pairs = []
    for one, other, _ in insights.together:
        folders = {os.path.dirname(one), os.path.dirname(other)}
        if seen.isdisjoint(folders) and is_test(one) == is_test(other):
            pairs.append((one, other))
            seen |= folders
    return sorted(pairs[:MOST_TOGETHER])


# Text from a repository, as Markdown that is nothing but that text.


def _text(text: str) -> str:
    return _plain(text, 200)


def _plain(text: str, most: int) -> str:
    """One line. A comment that is never closed would hide what comes after it."""
    words = " ".join(text.encode("utf-8", "backslashreplace").decode().split()).replace("<!--", "&lt;!--")
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"


def _code(text: str) -> str:
    text = _text(text)
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (max(len(run) for run in re.findall("`+", text)) + 1)
    return f"{fence} {text} {fence}"


def _and(things: Sequence[str]) -> str:
    return " and ".join([*([", ".join(things[:-1])] if len(things) > 1 else []), *things[-1:]])
