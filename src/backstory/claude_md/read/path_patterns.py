"""What the paths of a project alone say: where tests lie, how files are named, which architecture it has."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from backstory.claude_md.read.languages import TEST_DATA, language_of

# Not looked at for patterns: they are written for other readers, or in a hurry.
ASIDE = frozenset("docs examples bench benches benchmark benchmarks".split())
TEST_FOLDER = re.compile(
    r"_*(?:(?:unit|integration)[-_]?)?(?:tests?|specs?)_*|e2e|.+[._-](?:Unit)?Tests?|.+[._-]tests?",
    re.IGNORECASE,
)
NEARLY_ALL = 0.95
TEST_FOLDERS = frozenset(("test", "tests", "__tests__"))

NOT_A_NAME = frozenset("__init__ index mod main lib package-info module-info".split())

# language -> names that only tests have; what is in a test folder under another name may be a helper
NAMED = {
    "python": (("test_*.py", r"test_.+\.py"), ("*_test.py", r".+_test\.py")),
    "javascript": (("*.test", r".+\.test\.[cm]?jsx?"), ("*.spec", r".+\.spec\.[cm]?jsx?")),
    "typescript": (("*.test", r".+\.test\.[cm]?tsx?"), ("*.spec", r".+\.spec\.[cm]?tsx?")),
    "go": (("*_test.go", r".+_test\.go"),),
    "java": (
        ("*Test.java", r".+Test\.java"),
        ("Test*.java", r"Test[A-Z].*\.java"),
        ("", r".+(Tests|TestCase|IT)\.java"),
    ),
    "elixir": (("*_test.exs", r".+_test\.exs"),),
    "ruby": (("*_spec.rb", r".+_spec\.rb"), ("*_test.rb", r".+_test\.rb")),
    "c#": (("*Tests.cs", r".+Tests\.cs"), ("*Test.cs", r".+Test\.cs"), ("*Specs.cs", r".+Specs\.cs")),
    "swift": (("*Tests.swift", r".+Tests?\.swift"),),
    "kotlin": (("*Test.kt", r".+Test\.kt"),),
    "scala": (("*Spec.scala", r".+Spec\.scala"), ("*Test.scala", r".+(Test|Suite)\.scala")),
    "php": (("*Test.php", r".+Test\.php"),),
    "dart": (("*_test.dart", r".+_test\.dart"),),
    "c++": (
        ("*_test.cc", r".+_test\.cc"),
        ("*_test.cpp", r".+_test\.cpp"),
        ("*-test.cc", r".+-test\.cc"),
        ("test_*.cpp", r"test_.+\.cpp"),
    ),
    "c": (("test_*.c", r"test_.+\.c"), ("*_test.c", r".+_test\.c")),
    "haskell": (("*Spec.hs", r".+Spec\.hs"),),
    "lua": (("*_spec.lua", r".+_spec\.lua"),),
    "clojure": (("*_test.clj", r".+_test\.cljc?"),),
    "erlang": (("*_SUITE.erl", r".+_SUITE\.erl"), ("*_tests.erl", r".+_tests\.erl")),
}
HELPERS = frozenset("__init__ __main__ conftest index setup helper helpers util utils common support".split())
LAYERS = {
    name: layer
    for layer, names in enumerate(
        (
            "controllers controller handlers handler routes api",
            "services service usecases usecase",
            "models model entities entity domain",
            "repositories repository dao store db",
        )
    )
    for name in names.split()
}


@dataclass(frozen=True, slots=True)
class Agreement:
    value: str
    confidence: float
    cases: int
    examples: tuple[str, ...]


def counts(path: str) -> bool:
    """Whether patterns are looked for in a file."""
    return ASIDE.isdisjoint(path.split("/")[:-1])


def stem(path: str) -> str:
    """The name of a file as its author chose it; empty where a tool or a language did."""
    name = path.rpartition("/")[2].partition(".")[0]
    if name in NOT_A_NAME or (name.startswith("__") and name.endswith("__")):
        return ""
    return name.removeprefix("test_").removesuffix("_test")


def tests(language: str, paths: Iterable[str]) -> Agreement | None:
    """Where test files lie and what they are called, if nearly all agree."""
    kinds = [(kind, re.compile(pattern)) for kind, pattern in NAMED.get(language, ())]
    named: list[tuple[str, str, str]] = []  # where, what it is called, path
    others: list[tuple[str, str, str]] = []
    for path in paths:
        *folders, name = path.split("/")
        where = _where(folders)
        kind = next((kind for kind, pattern in kinds if pattern.fullmatch(name)), None)
        if kind is not None:
            named.append((where or "beside the source", kind, path))
        elif (
            where and not TEST_FOLDERS.isdisjoint(folders) and not HELPERS.intersection(name.split(".")[:-1])
        ):
            others.append((where, "", path))
    # Where most files of the test folders have a test's name, the rest helps them.
    cases = named if len(named) >= len(others) else named + others
    if len(cases) < 5:
        return None
    where, _ = Counter(where for where, _, _ in cases).most_common(1)[0]
    there = [(kind, path) for place, kind, path in cases if place == where]
    if len(there) < 0.8 * len(cases):
        return None
    kind, _ = Counter(kind for kind, _ in there).most_common(1)[0]
    agreeing = [path for each, path in there if each == kind]
    if not kind or len(agreeing) < 0.8 * len(cases):
        kind, agreeing = "any name", [path for _, path in there]
    elif kind in ("*.test", "*.spec"):
        ending, many = Counter(path.rpartition(".")[2] for path in agreeing).most_common(1)[0]
        kind = f"{kind}.{ending if many >= NEARLY_ALL * len(agreeing) else '*'}"
    return Agreement(f"{where}, {kind}", len(agreeing) / len(cases), len(cases), tuple(agreeing))


def _where(folders: Sequence[str]) -> str:
    """The uppermost folder for tests; empty where there is none."""
    for number, folder in enumerate(folders):
        if TEST_FOLDER.fullmatch(folder):
            is_standard = folders[number + 1 : number + 2] == ["java"]  # the layout of Maven and Gradle
            return f"src/{folder}/" if is_standard else f"{folder}/ folder"
        if folder == "main" and folders[number + 1 : number + 2] == ["java"]:
            return ""  # packages below may be called anything
    return ""


def rust_tests(functions: Mapping[str, int]) -> list[Agreement]:
    """Of Rust, where tests may lie inside a source file: by how many test functions each file has."""
    places: dict[str, dict[str, int]] = defaultdict(dict)
    for path, number in functions.items():
        folders = path.split("/")[:-1]
        apart = "tests" in folders and "src" not in folders[: folders.index("tests")]
        places["tests/ folder, any name" if apart else "inline #[cfg(test)]"][path] = number
    return [
        Agreement(place, 1.0, sum(files.values()), tuple(path for path, number in files.items() if number))
        for place, files in sorted(places.items())
        if sum(files.values()) >= 5
    ]


def architecture(paths: Sequence[str], workspaces: Sequence[str] = ()) -> list[Agreement]:
    """Each kind of architecture that the folders show."""
    coded = _children(path for path in paths if language_of(path))
    kinds = [_layered(coded), _features(coded), _mvc(_children(paths))]
    if len(workspaces) >= 2:
        kinds.append(Agreement("monorepo", 1.0, len(workspaces), tuple(workspaces)))
    return [kind for kind in kinds if kind]


def _layered(coded: Mapping[str, set[str]]) -> Agreement | None:
    best: tuple[int, tuple[str, ...]] = (0, ())
    for folder in sorted(coded):
        layers = [name for name in sorted(coded[folder]) if name in LAYERS and _below(folder, name) in coded]
        kinds = len({LAYERS[name] for name in layers})
        if kinds >= 2 and len(layers) >= 3 and kinds > best[0]:
            best = (kinds, tuple(_below(folder, name) for name in layers))
    kinds, places = best
    return Agreement("layered", kinds / len(set(LAYERS.values())), len(places), places) if kinds else None


def _features(coded: Mapping[str, set[str]]) -> Agreement | None:
    for folder in sorted(coded):
        if folder.rpartition("/")[2] in ("features", "modules"):
            places = [_below(folder, name) for name in sorted(coded[folder]) if _below(folder, name) in coded]
            if len(places) >= 3:
                return Agreement("feature folders", 1.0, len(places), tuple(places))
    return None


def _mvc(children: Mapping[str, set[str]]) -> Agreement | None:
    """Also a Django app, where models and views may be files and templates stand for controllers."""
    for folder in sorted(children):
        parts = {name.removesuffix(".py"): name for name in children[folder]}
        third = "controllers" if "controllers" in parts else "templates"
        if {"models", "views", third} <= parts.keys():
            places = tuple(_below(folder, parts[name]) for name in ("models", "views", third))
            return Agreement("MVC", 1.0, len(places), places)
    return None


def _children(paths: Iterable[str]) -> dict[str, set[str]]:
    """What lies in each folder; tests have an order of their own."""
    children: dict[str, set[str]] = defaultdict(set)
    seen: dict[str, bool] = {"": True}  # whether a folder counts
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder not in seen:
            parts = folder.split("/")
            seen[folder] = TEST_FOLDERS.isdisjoint(parts) and TEST_DATA.isdisjoint(parts)
        wanted = seen[folder]
        while wanted and name and name not in children[folder]:
            children[folder].add(name)
            folder, _, name = folder.rpartition("/")
    return children


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
