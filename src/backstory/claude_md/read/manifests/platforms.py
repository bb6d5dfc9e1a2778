"""Elixir, .NET, Swift, Dart and Flutter, Haskell, Deno, Conda: one manifest each, and its usual commands."""

from __future__ import annotations

import re
import shlex

from backstory.claude_md.read.manifests.folder import Folder, dig, table, word, words
from backstory.claude_md.read.manifests.manifest import Manifest, Task, task
from backstory.model import Command

ALIAS = re.compile(
    r"""^[ \t]*+(?:"([\w.:-]{1,60})"|([a-z][\w.]{0,60})):[ \t]*+(\[[^\[\]]{0,2000}\]|"[^"\n]{1,200}")""",
    re.MULTILINE,
)
APP = re.compile(r"\bapp:[ \t]*+:(\w{1,80})")
DEPENDENCY = re.compile(r"\{:(\w{1,80}),")
STRING = re.compile(r'"([^"\n]{1,300})"')
SWIFT_NAME = re.compile(r"\bPackage\([ \t\n]*+name:[ \t]*+\"([\w .+-]{1,80})\"")
SWIFT_TESTS = re.compile(r"\.testTarget\(")
SWIFT_PROGRAM = re.compile(r"\.executable(?:Target)?\([ \t\n]*+name:[ \t]*+\"([\w.+-]{1,60})\"")
DOTNET_TESTS = ("Tests.csproj", "Test.csproj", "Tests.fsproj")
CABAL_NAME = re.compile(r"^name:[ \t]*+([\w-]{1,80})", re.MULTILINE | re.IGNORECASE)
CABAL_TESTS = re.compile(r"^test-suite\b", re.MULTILINE | re.IGNORECASE)


def read(folder: Folder) -> Manifest | None:
    for reader in (_elixir, _dotnet, _swift, _dart, _haskell, _deno, _conda):
        if found := reader(folder):
            return found
    return None


def _elixir(folder: Folder) -> Manifest | None:
    if "mix.exs" not in folder.names:
        return None
    text = folder.text("mix.exs")
    aliases = text[text.find("aliases do") :] if "aliases do" in text else ""
    tasks: list[Task] = []
    for quoted, bare, steps in ALIAS.findall(aliases)[:100]:
        recipe = "\n".join(f"mix {step}" for step in STRING.findall(steps))
        tasks += task("mix", quoted or bare, "mix {}", recipe, "mix.exs")
    needed = frozenset(DEPENDENCY.findall(text))
    found = [Command("install", "mix deps.get", "mix.exs"), Command("test", "mix test", "mix.exs")]
    if "phoenix" in needed:
        found.append(Command("run", "mix phx.server", "mix.exs"))
    if "inputs:" in folder.text(".formatter.exs"):  # without them it refuses
        found.append(Command("format", "mix format", ".formatter.exs"))
    if "credo" in needed:
        found.append(Command("lint", "mix credo", "mix.exs"))
    name = (APP.search(text) or [""] * 2)[1]
    return Manifest(
        ecosystem="hex",
        language="Elixir",
        name=name,
        own=frozenset([name]),
        dependencies=needed,
        managers=("mix",),
        commands=tuple(found),
        tasks=tuple(tasks),
    )


def _dotnet(folder: Folder) -> Manifest | None:
    solutions = [name for name in sorted(folder.names) if name.endswith((".sln", ".slnx"))]
    projects = [name for name in sorted(folder.names) if name.endswith((".csproj", ".fsproj", ".vbproj"))]
    if not solutions and not projects:
        return None
    source = (solutions or projects)[0]
    found = [Command("build", "dotnet build", source)]
    tests = sorted(path for ending in DOTNET_TESTS for path in folder.below("", ending))
    real = [path for path in tests if "BenchmarkDotNet" not in folder.text(path)]
    if real == tests:
        found += [Command("test", "dotnet test", source)] if tests else []
    else:  # the whole solution would measure as well
        places = (shlex.quote(path.rpartition("/")[0] or path) for path in real)
        found += (Command("test", f"dotnet test {place}", source) for place in places)
    return Manifest(
        ecosystem="nuget",
        language="C#",
        name=source.rpartition(".")[0] if solutions else "",
        managers=("nuget",),
        commands=tuple(found),
    )


def _swift(folder: Folder) -> Manifest | None:
    if "Package.swift" not in folder.names:
        return None
    text = folder.text("Package.swift")
    found = [Command("build", "swift build", "Package.swift")]
    if SWIFT_TESTS.search(text):
        found.append(Command("test", "swift test", "Package.swift"))
    programs = list(dict.fromkeys(SWIFT_PROGRAM.findall(text)))
    if len(programs) == 1:
        found.append(Command("run", f"swift run {programs[0]}", "Package.swift"))
    if ".swiftlint.yml" in folder.names:
        found.append(Command("lint", "swiftlint", ".swiftlint.yml"))
    if ".swift-format" in folder.names:
        found.append(Command("format", "swift format -i -r .", ".swift-format"))
    name = (SWIFT_NAME.search(text) or [""] * 2)[1]
    return Manifest(
        ecosystem="swift", language="Swift", name=name, managers=("swift",), commands=tuple(found)
    )


def _dart(folder: Folder) -> Manifest | None:
    if "pubspec.yaml" not in folder.names:
        return None
    pubspec = table(folder.yaml("pubspec.yaml"))
    needed = {name for kind in ("dependencies", "dev_dependencies") for name in table(pubspec.get(kind))}
    tool = "flutter" if "flutter" in needed else "dart"
    lines = [("install", f"{tool} pub get"), ("lint", f"{tool} analyze"), ("format", "dart format .")]
    if tool == "flutter" and folder.has("lib/main.dart"):
        lines.append(("run", "flutter run"))
    if folder.any_below("test", "_test.dart"):
        lines.append(("test", f"{tool} test"))
    return Manifest(
        ecosystem="pub",
        language="Dart",
        name=word(pubspec.get("name")),
        description=word(pubspec.get("description")),
        dependencies=frozenset(needed),
        managers=("pub",),
        commands=tuple(Command(role, line, "pubspec.yaml") for role, line in lines),
        members=tuple(words(pubspec.get("workspace"))),
        manifests=("pubspec.yaml",),
    )


def _haskell(folder: Folder) -> Manifest | None:
    cabal = next((name for name in sorted(folder.names) if name.endswith(".cabal")), None)
    source = folder.first("stack.yaml", "cabal.project") or cabal
    if not source:
        return None
    tool = "stack" if source == "stack.yaml" else "cabal"
    everything = " all" if tool == "cabal" else ""
    text = folder.text(cabal) if cabal else folder.text("package.yaml")
    found = [Command("build", f"{tool} build{everything}", source)]
    if CABAL_TESTS.search(text) or dig(folder.yaml("package.yaml"), "tests"):
        found.append(Command("test", f"{tool} test{everything}", source))
    name = (CABAL_NAME.search(text) or [""] * 2)[1]
    return Manifest(
        ecosystem="hackage", language="Haskell", name=name, managers=(tool,), commands=tuple(found)
    )


def _deno(folder: Folder) -> Manifest | None:
    source = folder.first("deno.json", "deno.jsonc")
    if not source or "package.json" in folder.names:
        return None
    said = folder.json(source)
    tasks = [
        each
        for name, line in table(said.get("tasks")).items()
        for each in task("deno", name, "deno task {}", word(line) or word(dig(line, "command")), source)
    ]
    found = []
    if any(folder.any_below("", ending) for ending in ("_test.ts", ".test.ts")):
        found.append(Command("test", "deno test", source))
    if said.get("lint") is not None:
        found.append(Command("lint", "deno lint", source))
    if said.get("fmt") is not None:
        found.append(Command("format", "deno fmt", source))
    return Manifest(
        ecosystem="deno",
        language="JavaScript",
        name=word(said.get("name")),
        managers=("deno",),
        commands=tuple(found),
        tasks=tuple(tasks[:300]),
        members=tuple(words(said.get("workspace"))),
        manifests=("deno.json", "deno.jsonc"),
    )


def _conda(folder: Folder) -> Manifest | None:
    source = folder.first("environment.yml", "environment.yaml")
    if not source or not dig(folder.yaml(source), "dependencies"):
        return None
    install = Command("install", f"conda env create -f {source}", source)
    return Manifest(language="Python", managers=("conda",), commands=(install,))
