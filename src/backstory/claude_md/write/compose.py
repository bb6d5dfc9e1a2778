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

from backstory.claude_md.own_text import own_text
from backstory.claude_md.read import outline
from backstory.claude_md.read.commands.roles import COMMAND_ROLES
from backstory.claude_md.read.files import ProjectFiles
from backstory.claude_md.read.languages import ENDINGS, is_test, language_of, sources
from backstory.claude_md.read.obligations import TOPICS
from backstory.claude_md.read.purposes import said_of_paths
from backstory.claude_md.write import sections
from backstory.model import Command, Fact, Insights, Pattern, Survey

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
LONGEST_EXAMPLE = 60
MOST_TOGETHER, MOST_DECISIONS = 2, 2
INSIGHTS_SHARE = 0.1  # of the file, for what git says
MOST_SET = 6  # variables that CI sets
NOTHING = "Nothing that the files show."  # where something stood before
USUAL = "As in the whole project."
ALWAYS_COMPUTABLE = frozenset(
    "project-description module-description build-commands architecture conventions patterns".split()
)
AS = ", as "
SAYS, QUOTED = " says:", "- “"  # of a document, in its own words
PLACED_BY_RUNNER = frozenset("Go Rust Elixir Swift Java Kotlin Dart C#".split())
USUAL_TESTS = re.compile(r"test_\*\.py|\*\.(?:test|spec)\.\S+|\*_spec\.rb|\*Test\.\w+|any name|[^,]* folder")
MINOR = 0.15  # of the source
SURE = 0.95  # the share that agrees, for a rule
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


def texts(known: Known, elsewhere: Collection[str] = ()) -> dict[str, str]:
    """What the sections of the root's file say. One that would say nothing is left out, and so is what the
    files of these folders say."""
    survey = known.survey
    said = {
        "project-description": _whole(_plain(survey.description, DESCRIPTION)),
        "build-commands": _commands(survey, elsewhere),
        "architecture": _architecture(known, elsewhere),
        "conventions": _bound(known),
        "patterns": _patterns(known),
    }
    if not any(said.values()):  # what a look at the files tells
        said["project-description"] = _languages(survey, known.project)
    room = int(INSIGHTS_SHARE * sum(map(len, said.values())))
    # Not every sync asks for best practices: they must not decide how long the others are.
    practices = (known.practices or "").strip()
    is_signed = re.search(r"sign(?:ed)?[- ]off|\bDCO\b", said["conventions"], re.IGNORECASE) is not None
    insights = _insights(known.insights, room, is_signed)
    return _filled("root", {**said, "best-practices": practices, "git-insights": insights})


def module_texts(
    known: Known, folder: str, part: ProjectFiles, own: Sequence[Pattern], commands: Sequence[Command] = ()
) -> dict[str, str]:
    """The same for the file of a folder, with the files below that, the patterns found in it, and the
    commands that its own manifests know."""
    said = outline.about(part, "", outline.folders(part).files)
    if outline.same(said, known.survey.description):
        said = ""
    description = _whole(_plain(said[:1].upper() + said[1:], DESCRIPTION))
    purposes = {
        path.removeprefix(f"{folder}/"): said
        for path, said in said_of_paths(known.project).items()
        if path.startswith(f"{folder}/")
    }
    lines = list(outline.lines(part, (), _code, _text, purposes))
    usual = {(one.type, one.subject): one.value for one in known.patterns}
    differs = [one for one in own if usual.get((one.type, one.subject)) != one.value]
    those = [one for one in known.survey.commands if one.folder in ("", folder)]
    conventions = "\n".join(_conventions(_unformatted(differs, (*those, *commands)), part))
    there = "\n".join(_roles(commands))
    if there:
        there = f"After {_code('cd ' + shlex.quote(folder))}:\n{there}"
    return _filled(
        "subtree",
        {
            "module-description": "\n\n".join(filter(None, (description, there))),
            "architecture": "\n".join(lines),
            "conventions": f"{USUAL} What differs here:\n{conventions}" if conventions else "",
        },
    )


def _languages(survey: Survey, project: ProjectFiles) -> str:
    languages = [name for name, _ in survey.languages]
    notebooks = [file.path for file in project.files if file.path.endswith(".ipynb")]
    if len(notebooks) > max(2, len(sources(project).get("Python", ()))):
        languages.insert(0, "Jupyter notebooks")
    return f"Written in {_and(languages)}." if languages else ""


def _whole(text: str) -> str:
    """The sentences of a text that was cut off, without the one that is no more whole."""
    if text.endswith("…"):
        text = (re.match(r".*[.!?](?=\s)", text) or [""])[0]
    return f"{text}." if text[-1:].isalnum() or text.endswith((")", "`")) else text


def _commands(survey: Survey, elsewhere: Collection[str]) -> str:
    here = [command for command in survey.commands if not command.folder]
    lines = list(_roles(here))
    for folder in dict.fromkeys(command.folder for command in survey.commands if command.folder):
        if folder in elsewhere:
            continue  # it is read with the first file there
        there = [command for command in survey.commands if command.folder == folder]
        said = (
            f"{_label(role)} {', '.join(_code(one.line) for one in there if one.role == role)}"
            for role in COMMAND_ROLES
            if any(one.role == role for one in there)
        )
        lines.append(f"- In {_code(folder + '/')}: {'; '.join(said)}{_evidence(there)}")
    return "\n".join([*_needs(survey), *lines])


def _roles(commands: Sequence[Command]) -> Iterator[str]:
    """A line for each role, with the files that say so; how to run one test stands with the tests."""
    ones = ", ".join(_code(command.line) for command in commands if command.role == "one")
    told: set[str] = set()
    for role in COMMAND_ROLES:
        those = [command for command in commands if command.role == role]
        if those and role != "one":
            single = f"; one: {ones}" if role == "test" and ones else ""
            yield f"- {_label(role).capitalize()}: {_listed(those, told)}{single}"


def _listed(commands: Sequence[Command], told: set[str]) -> str:
    """Those that come from one file stand together, with its name behind them, and what CI does before them
    that was not told."""
    files = dict.fromkeys(command.source for command in commands)
    groups = ([command for command in commands if command.source == file] for file in files)
    return ", ".join(
        ", ".join(_code(one.line) + (f", after {_code(one.after)}" if one.after else "") for one in group)
        + _evidence(group, told)
        for group in groups
    )


def _evidence(commands: Sequence[Command], told: set[str] | None = None) -> str:
    files = dict.fromkeys(one.source for one in commands if one.source and one.role != "one")
    if not files:
        return ""
    said = ", ".join(_code(file) for file in files)
    if told is not None:
        jobs = _untold((f"{one.source}\n{one.job}" for one in commands if one.job), told)
        jobs = [job.partition("\n")[2] for job in jobs]
        brought = _untold((name for one in commands for name in one.packages), told)
        variables = _untold((name for one in commands for name in one.variables), told)
        said += f", whose job {_listing(jobs)} does more before it" if jobs else ""
        said += f"; CI first installs {_listing(brought)} with apt" if brought else ""
        more = f" and {len(variables) - MOST_SET} others" if len(variables) > MOST_SET + 1 else ""
        shown = variables[:MOST_SET] if more else variables
        said += f"; CI sets {_listing(shown)}{more}" if variables else ""
    return f" (from {said})"


def _untold(things: Iterable[str], told: set[str]) -> list[str]:
    new = sorted({*things} - told)
    told.update(new)
    return new


def _listing(things: Sequence[str]) -> str:
    return ", ".join(map(_code, things))


def _label(role: str) -> str:
    return {"one": "one test", "check": "all checks"}.get(role, role)


def _needs(survey: Survey) -> Iterator[str]:
    """What must be there before the first command."""
    typed = " ".join(command.line for command in survey.commands)
    tools = [
        fact
        for fact in survey.prerequisites
        if not fact.kind and not (fact.text.startswith("CMake ") and "cmake" not in typed)
    ]
    if tools:
        yield f"- Needs {_and([_sourced(fact) for fact in tools])}"
    pinned = [fact for fact in survey.prerequisites if fact.kind == "pinned"]
    if pinned:
        yield f"- Pinned: {_and([_sourced(fact) for fact in pinned])}"
    for fact in survey.prerequisites:
        if fact.kind == "service":
            is_ci = fact.source.startswith((".github/", ".gitlab"))
            yield f"- {'CI starts' if is_ci else _code(fact.source) + ' starts'} {_plain(fact.text, 100)}" + (
                f" (from {_code(fact.source)})" if is_ci else ""
            )
        elif fact.kind == "settings" and fact.text:
            yield f"- Settings: copy {_code(fact.source)} to {_code(fact.text)}"
        elif fact.kind == "settings":
            yield f"- Settings: the variables are in {_code(fact.source)}"
        elif fact.kind == "submodules":
            yield f"- Submodules: {_code('git submodule update --init')} for {_plain(fact.text, 200)}"


def _sourced(fact: Fact) -> str:
    return f"{_plain(fact.text, 60)} (from {_code(fact.source)})"


def _architecture(known: Known, elsewhere: Collection[str]) -> str:
    purposes = said_of_paths(known.project)
    workspaces, about = known.survey.workspaces, known.survey.description
    lines = list(outline.lines(known.project, workspaces, _code, _text, purposes, about, elsewhere))
    migrations = [
        path for path in outline.migrations(known.project) if not any(f"`{path}/`:" in line for line in lines)
    ]
    if migrations:
        lines.append(f"- Migrations: {', '.join(_code(path + '/') for path in migrations)}")
    return "\n".join(lines)


def _hands_off(survey: Survey) -> Iterator[str]:
    """What is not edited by hand, by the reason."""
    for kind, how in (
        ("generated", "Generated, not edited by hand"),
        ("vendored", "Other people's code, not edited here"),
    ):
        paths = [_code(fact.text) for fact in survey.hands_off if fact.kind == kind]
        if paths:
            yield f"- {how}: {', '.join(paths)}"


def _bound(known: Known) -> str:
    """What binds whoever writes code here."""
    found = _unformatted(known.patterns, known.survey.commands)
    lines = [*_hands_off(known.survey), *_conventions(found, known.project)]
    theirs = own_text(known.project.root, "")
    rules = [fact for fact in known.survey.rules if not theirs.says(TOPICS[fact.kind])]
    return "\n".join([*lines, *_settings(known.survey.settings), *_quoted(rules)])


def _unformatted(patterns: Iterable[Pattern], commands: Iterable[Command]) -> list[Pattern]:
    """Without the style that a formatter sees to."""
    is_formatted = any(command.role == "format" for command in commands)
    return [one for one in patterns if not (is_formatted and one.type == "style")]


def _settings(settings: Iterable[Fact]) -> Iterator[str]:
    """What the settings of tools ask for."""
    for fact in settings:
        is_named = any(
            part in fact.text for part in (f"`{fact.source}`", f"`{os.path.dirname(fact.source)}/`")
        )
        source = "" if is_named else f" (from {_code(fact.source)})"
        yield f"- {_text(fact.text)}{source}"


def _quoted(rules: Iterable[Fact]) -> Iterator[str]:
    """What documents for contributors say, in their own words."""
    by_source: dict[str, list[str]] = {}
    for fact in rules:
        by_source.setdefault(fact.source, []).append(_text(fact.text))
    for source, said in by_source.items():
        yield f"- {_code(source)}{SAYS}"
        yield from (f"  {QUOTED}{text}”" for text in said)


KINDS = {"functions": "functions, methods"}
WITHOUT_CLASSES = {"classes": "types"}  # Go and Rust
SEMICOLONS = {"always": "semicolons", "never": "no semicolons"}


# What every project of a language does is no convention of this one.
_SNAKE = {"functions": "snake_case", "classes": "PascalCase", "files": "snake_case"}
_CAMEL = {"functions": "camelCase", "classes": "PascalCase"}
_GO = {"functions": "MixedCaps", "classes": "MixedCaps", "files": "snake_case"}
USUAL_NAMES = {
    "python": _SNAKE,
    "rust": _SNAKE,
    "go": _GO,
    "java": {**_CAMEL, "files": "PascalCase"},
    "javascript": _CAMEL,
    "typescript": _CAMEL,
}
USUAL_STYLE = {
    ("python", "indentation"): "4 spaces",
    ("python", "quotes"): "double",
    ("rust", "indentation"): "4 spaces",
    ("go", "indentation"): "tabs",
    ("java", "indentation"): "4 spaces",
    ("typescript", "imports"): "ES modules",
    ("javascript", "imports"): "ES modules",
    ("python", "imports"): "absolute",
}


def _is_usual(pattern: Pattern) -> bool:
    language, what = _subject(pattern)
    if pattern.type == "naming":  # what a module calls its tables and routers is no style of constants
        return what == "constants" or USUAL_NAMES.get(language, {}).get(what) == pattern.value
    return "order" in what or USUAL_STYLE.get((language, what)) == pattern.value


def _conventions(patterns: Iterable[Pattern], project: ProjectFiles) -> list[str]:
    """Patterns as rules to go by, without what is usual. Languages with the same rules share a line."""
    rules: dict[str, dict[str, list[str]]] = {}  # label -> language -> rules
    names: dict[str, dict[str, list[str]]] = {}  # language -> style -> what is named so
    minor = _minor(project)
    for pattern in patterns:
        language, what = _subject(pattern)
        value = _plain(pattern.value, 100)
        if _is_usual(pattern) or language in minor or pattern.confidence < SURE:
            continue
        if pattern.type == "naming":
            kinds = KINDS | WITHOUT_CLASSES if language in ("go", "rust") else KINDS
            names.setdefault(language, {}).setdefault(value, []).append(kinds.get(what, what))
        elif pattern.type == "import":
            rules.setdefault("Imports", {}).setdefault(language, []).append(value)
        elif pattern.type == "style":
            how = {"quotes": f"{value} quotes", "indentation": f"indented with {value}"}
            said = how.get(what) or SEMICOLONS.get(value, value)
            rules.setdefault("Style", {}).setdefault(language, []).append(said)
    for language, styles in names.items():
        rules.setdefault("Names", {})[language] = [
            f"{_and(', '.join(kinds).split(', '))} {_code(style)}" for style, kinds in styles.items()
        ]
    several = len(sources(project)) > 1
    lines = []
    for label in ("Names", "Style", "Imports"):
        same: dict[str, list[str]] = {}
        for language, those in rules.get(label, {}).items():
            same.setdefault(", ".join(those), []).append(LANGUAGES.get(language, language))
        for those_said, languages in same.items():
            shown = f"{_and(languages)} {label.lower()}" if several else label
            lines.append(f"- {shown}: {those_said}")
    return lines


def _minor(project: ProjectFiles) -> set[str]:
    """The languages of which there is too little for a style of their own."""
    sizes = {name: sum(file.size for file in files) for name, files in sources(project).items()}
    return {name.lower() for name, size in sizes.items() if size < MINOR * sum(sizes.values())}


def _subject(pattern: Pattern) -> tuple[str, str]:
    """Of which language a pattern is, and what it is about."""
    words = pattern.subject.split()
    language = next((word for word in words if word in LANGUAGES), "")
    return language, " ".join(word for word in words if word != language)


def _patterns(known: Known) -> str:
    """Where tests are, with an example; not where a language has only one place for them, or they are called
    as everywhere and the command for one test shows where."""
    lines = []
    ones = [command.line for command in known.survey.commands if command.role == "one"]
    shown = {language_of(word.partition("::")[0]) for line in ones for word in line.split() if "/" in word}
    has_several_languages = len(sources(known.project)) > 1
    for pattern in known.patterns:
        name = LANGUAGES.get(_subject(pattern)[0], "")
        if pattern.type != "test" or name in PLACED_BY_RUNNER:
            continue
        if name in shown and USUAL_TESTS.fullmatch(pattern.value.rpartition(", ")[2]):
            continue
        label = f"{name} tests" if has_several_languages else "Tests"
        short = [example for example in pattern.examples if len(example) <= LONGEST_EXAMPLE]
        lines.append(f"- {label}: {_tests(pattern.value)}" + (f"{AS}{_code(short[0])}" if short else ""))
    return "\n".join(lines)


def _tests(value: str) -> str:
    """Where tests are and what they are called."""
    where, _, name = _plain(value, 100).partition(", ")
    folder = where.removesuffix(" folder")
    place = f"in {_code(folder)}" if folder.endswith("/") else where
    return place if name in ("", "any name") else f"{place}, named {_code(name)}"


def settled(old: str, new: str, is_there: Callable[[str], bool]) -> str:
    """Detected patterns with the examples they had, as far as those are files that are there or no files: one
    example is as good as another."""
    known = {line.partition(AS)[0]: line for line in old.split("\n")}
    return "\n".join(
        kept if all(map(is_there, re.findall(r"`([^`]*[/.][^`]*)`", kept.partition(AS)[2]))) else line
        for line in new.split("\n")
        for kept in [known.get(line.partition(AS)[0], line)]
    )


def _insights(insights: Insights | None, room: int, is_signed: bool = False) -> str:
    """What git says that changes what somebody does, as far as there is room for it."""
    if insights is None:
        return ""
    lines = []
    habits = [_plain(habit, 200) for habit in insights.habits if not (is_signed and "signed off" in habit)]
    if habits:
        lines.append(f"- Commits: {' '.join(habits)}")
    lines += [f"- {_code(one)} and {_code(other)} change together" for one, other in _pairs(insights)]
    for date, commit, said in insights.decisions[:MOST_DECISIONS]:
        lines.append(f"- Decided: {_text(said)} ({_plain(date, 20)}, {_plain(commit, 16)})")
    kept: list[str] = []
    for line in lines:
        if sum(map(len, kept)) + len(line) <= room:
            kept.append(line)
    return "\n".join(kept)


def _pairs(insights: Insights) -> list[tuple[str, str]]:
    """Files of two folders that change together, a pair of each; no tests, which is no news, and no
    migrations, which nobody changes."""
    seen: set[str] = set()
    pairs = []
    for one, other, _ in insights.together:
        folders = {os.path.dirname(one), os.path.dirname(other)}
        is_source = all(
            language_of(path) and not is_test(path) and "migrations" not in path.split("/")
            for path in (one, other)
        )
        if len(folders) == 2 and seen.isdisjoint(folders) and is_source:
            pairs.append((one, other))
            seen |= folders
    return sorted(pairs[:MOST_TOGETHER])


# Text from a repository, as Markdown that is nothing but that text.


def _text(text: str) -> str:
    return _plain(text, 200)


def _plain(text: str, most: int) -> str:
    """One line, without secrets. A comment that is never closed would hide what comes after it."""
    readable = sections.redacted(text.encode("utf-8", "backslashreplace").decode())
    words = " ".join(readable.split()).replace("<!--", "&lt;!--")
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"


def _code(text: str) -> str:
    text = _text(text)
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (max(len(run) for run in re.findall("`+", text)) + 1)
    return f"{fence} {text} {fence}"


def _and(things: Sequence[str]) -> str:
    return " and ".join([*([", ".join(things[:-1])] if len(things) > 1 else []), *things[-1:]])
