"""What a project's code does the same way nearly everywhere: counted, and judged.

Only strong evidence counts: at least 80 % of at least 10 cases agree (5 for imports and tests). Of a large
project a part is read; which files is decided by a digest of their paths, so that a file more or less changes
little, here and in the examples shown.
"""

from __future__ import annotations

import os
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from backstory.claude_md.read import imports, parse_pool, path_patterns
from backstory.claude_md.read.files import File, ProjectFiles
from backstory.claude_md.read.imports import Own
from backstory.claude_md.read.languages import sources
from backstory.claude_md.read.parse_pool import Job
from backstory.model import Pattern

if TYPE_CHECKING:
    from backstory.claude_md.read.grammars import Found

LANGUAGES = {name.lower(): name for name in ("Python", "JavaScript", "TypeScript", "Go", "Rust", "Java")}
AGREE = 0.8
CASES, FEW_CASES = 10, 5
EXAMPLES = 3
BYTES, FILES = 1_500_000, 300  # read at most, of all languages together

STYLES = tuple(
    (style, re.compile(pattern))
    for style, pattern in (
        ("snake_case", r"[a-z0-9]+(_+[a-z0-9]+)+"),
        ("kebab-case", r"[a-z0-9]+(-+[a-z0-9]+)+"),
        ("camelCase", r"[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*"),
        ("PascalCase", r"[A-Z][A-Za-z0-9]*"),
        ("UPPER_SNAKE_CASE", r"[A-Z][A-Z0-9]*(_+[A-Z0-9]+)*"),
    )
)
UNDECIDED = re.compile(r"[a-z0-9]*|[A-Z][0-9]*")
# kind -> the style that a name which fits several is taken for, if all else is equal
USUAL = {"constants": "UPPER_SNAKE_CASE", **dict.fromkeys(("classes", "files", "functions"), "PascalCase")}
# Given by the language, not chosen.
FIXED = frozenset(("main", "serialVersionUID"))
GO_TESTS = ("Test", "Benchmark", "Example", "Fuzz")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was read of a project: enough to judge all of it, or one of its folders."""

    files: tuple[str, ...]  # all that count, of whatever kind
    source: Mapping[str, tuple[str, ...]]  # of each language of the project
    found: Mapping[str, Mapping[str, Found]]  # language -> path -> what the file shows
    own: Own
    unread: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of languages without a parser


def read(project: ProjectFiles, languages: Sequence[str]) -> Evidence:
    """Of a project whose source is of these languages, as a survey names them."""
    source = {
        language: [file for file in sources(project).get(name, ()) if path_patterns.counts(file.path)]
        for language, name in LANGUAGES.items()
        if name in languages
    }
    jobs = [Job(language, path) for language in source for path in chosen(source[language], len(source))]
    found: dict[str, dict[str, Found]] = {language: {} for language in source}
    for job, shown in parse_pool.read(project, jobs):
        found[job.language][job.path] = shown
    return Evidence(
        tuple(file.path for file in project.files if path_patterns.counts(file.path)),
        {language: tuple(file.path for file in files) for language, files in source.items()},
        found,
        imports.own(project),
        {
            name.lower(): tuple(file.path for file in sources(project).get(name, ()))
            for name in languages
            if name.lower() not in LANGUAGES and name.lower() in path_patterns.NAMED
        },
    )


def judge(evidence: Evidence, workspaces: Sequence[str] = (), folder: str = "") -> tuple[Pattern, ...]:
    """The patterns of a project, or of a folder in it; the paths of examples are from there."""
    above = f"{folder}/" if folder else ""
    result: list[Pattern] = []
    for language, paths in evidence.source.items():
        inside = [path for path in paths if path.startswith(above)]
        found = {path: shown for path, shown in evidence.found[language].items() if path.startswith(above)}
        result += _of_language(language, inside, found, evidence.own)
    for language, paths in evidence.unread.items():  # of these the paths alone tell
        tests = path_patterns.tests(language, [path for path in paths if path.startswith(above)])
        result += [_pattern("test", language, tests)] if tests else []
    files = [path.removeprefix(above) for path in evidence.files if path.startswith(above)]
    result += [_pattern("architecture", "", each) for each in path_patterns.architecture(files, workspaces)]
    return tuple(
        replace(pattern, examples=tuple(example.removeprefix(above) for example in pattern.examples))
        for pattern in result
    )


def chosen(files: Iterable[File], languages: int = 1) -> list[str]:
    """The paths that are read, the same ones as long as they are there."""
    result: list[str] = []
    left = BYTES // languages
    for file in sorted(files, key=lambda file: (_digest(file.path), file.path)):
        if 0 < file.size <= parse_pool.LARGEST:
            left -= file.size
            if left < 0 or len(result) >= FILES // languages:
                break
            result.append(file.path)
    return result


def _of_language(language: str, paths: Sequence[str], found: Mapping[str, Found], own: Own) -> list[Pattern]:
    """The patterns of one language: from all its paths, and what the files that were read show."""
    names: dict[str, list[tuple[str, str]]] = defaultdict(list)  # kind -> name, example
    tallies = {
        subject: _Tally() for subject in ("imports", "import order", "quotes", "indentation", "semicolons")
    }
    for path, file in found.items():
        names["functions"] += [
            (name, name) for name in file["functions"] if not _is_test(language, path, name)
        ]
        names["classes"] += [(name, name) for name in file["classes"]]
        names["constants"] += [(name, name) for name in file["constants"]]
        for style, said in _import_styles(language, path, file, own):
            tallies["imports"].add(style, said)
        ordered = imports.in_order(language, path, file["imports"], file["modules"], own)
        if ordered is not None:
            tallies["import order"].add(imports.ORDER if ordered else "", path)
        tallies["quotes"].add_all(file["quotes"], path)
        tallies["indentation"].add_all(file["indentation"], path)
        tallies["semicolons"].add_all(file["semicolons"], path)
    names["files"] = [(name, path) for path in paths if (name := path_patterns.stem(path))]

    kinds = ("functions", "classes", "constants", "files")
    result: list[Pattern | None] = [_naming(language, kind, names[kind]) for kind in kinds]
    for subject, tally in tallies.items():
        kind, least = ("import", FEW_CASES) if subject.startswith("import") else ("style", CASES)
        result.append(tally.judge(kind, f"{subject} {language}", least))
    tests = (
        path_patterns.rust_tests({path: file["tests"] for path, file in found.items()})
        if language == "rust"
        else [path_patterns.tests(language, paths)]
    )
    result += [_pattern("test", language, each) for each in tests if each]
    return [pattern for pattern in result if pattern]


def shape(patterns: Iterable[Pattern]) -> dict[str, Any]:
    """The patterns as one table. Where there is more than one language, each part is a table by language."""
    parts: dict[str, dict[str, dict[str, str]]] = {
        name: {} for name in ("naming", "imports", "style", "tests")
    }
    architectures: list[str] = []
    layers: list[str] = []
    for pattern in patterns:
        if pattern.type == "architecture":
            architectures.append(pattern.value)
            layers += [path.rpartition("/")[2] for path in pattern.examples if pattern.value != "monorepo"]
            continue
        if pattern.type == "naming":
            language, _, subject = pattern.subject.partition(" ")
        else:
            subject, _, language = pattern.subject.rpartition(" ")
        part = {"import": "imports", "test": "tests"}.get(pattern.type, pattern.type)
        key = {"imports": "style", "import order": "ordering", "": "layout"}.get(subject, subject)
        value = pattern.value.replace(", ", " → ") if key == "ordering" else pattern.value
        table = parts[part].setdefault(language, {})
        table[key] = f"{table[key]}; {value}" if key in table else value
    several = len({language for tables in parts.values() for language in tables}) > 1
    result: dict[str, Any] = {
        part: tables if several else next(iter(tables.values()), {}) for part, tables in parts.items()
    }
    result["architecture"] = {"pattern": ", ".join(architectures), "layers": list(dict.fromkeys(layers))}
    return result


def styles(name: str) -> tuple[str, ...]:
    """The styles of a name, empty for one that decides nothing: a lower-case word, a single letter."""
    name = name.strip("_#$")
    if not name.isascii() or UNDECIDED.fullmatch(name):
        return ()
    return tuple(style for style, pattern in STYLES if pattern.fullmatch(name)) or ("",)


class _Tally:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, set[str]] = defaultdict(set)
        self.cases = 0

    def add(self, value: str, example: str, number: int = 1) -> None:
        self.counts[value] += number
        self.cases += number
        if example:
            self.examples[value].add(example)

    def add_all(self, counts: Mapping[str, int], example: str) -> None:
        for value, number in counts.items():
            self.add(value, example, number)

    def judge(self, type: str, subject: str, least: int, usual: str = "") -> Pattern | None:
        if self.cases < least or not self.counts:
            return None
        value, number = max(self.counts.items(), key=lambda each: (each[1], each[0] == usual, each[0]))
        if not value or value == "mixed" or number < AGREE * self.cases:
            return None
        found = path_patterns.Agreement(value, number / self.cases, self.cases, tuple(self.examples[value]))
        return _pattern(type, subject, found)


def _naming(language: str, kind: str, names: Iterable[tuple[str, str]]) -> Pattern | None:
    tally = _Tally()
    words = 0  # in lower case: of any style but that of classes
    for name, example in names:
        if name in FIXED or (name.startswith("__") and name.endswith("__")):
            continue
        fitting = styles(name)
        if not fitting:
            words += name.islower()
            continue
        if language == "go" and kind != "files":
            fitting = ("MixedCaps",) if "_" not in name.strip("_") else fitting[:1]
        for style in fitting:
            tally.add(style, example)
        tally.cases -= len(fitting) - 1  # one name, even if it fits two styles
    pattern = tally.judge("naming", f"{language} {kind}", CASES, USUAL[kind])
    is_capital = pattern is not None and pattern.value == "PascalCase"
    return None if is_capital and words > (1 - AGREE) * (tally.cases + words) else pattern


def _is_test(language: str, path: str, name: str) -> bool:
    return name.startswith("test_") or (
        language == "go" and path.endswith("_test.go") and name.startswith(GO_TESTS)
    )


def _import_styles(language: str, path: str, file: Found, own: Own) -> list[tuple[str, str]]:
    if language == "python":
        return imports.python_style(path, file["imports"], own)
    if language in ("javascript", "typescript"):
        how = {"import": "ES modules", "require": "CommonJS"}
        return [(how[each["how"]], each["said"]) for each in file["imports"]]
    return []


def _pattern(type: str, subject: str, found: path_patterns.Agreement) -> Pattern:
    """Confidence in steps, never rounded up; examples by digest: neither changes with every commit."""
    shown = [example for example in found.examples if example.isprintable()]
    if type != "architecture":
        shown = nsmallest(EXAMPLES, set(shown), key=lambda example: (_digest(example), example))
    sure = 0.99 if 0.99 <= found.confidence < 1 else int(found.confidence * 20 + 1e-9) / 20
    return Pattern(type, subject, found.value, sure, found.cases, tuple(shown))


def _digest(text: str) -> int:
    return zlib.crc32(os.fsencode(text))
