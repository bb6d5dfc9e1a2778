"""What compiles without a package manager of its own: CMake, Meson, autotools, Zig, Bazel."""

from __future__ import annotations

import re

from backstory.claude_md.read.manifests.folder import Folder, table, word
from backstory.claude_md.read.manifests.manifest import NAME, Manifest
from backstory.model import Command

UNIT_OPTION = re.compile(r"AC_ARG_ENABLE\(\s*\[?(unit|tests?|unit-tests?|testing)\]?\s*,")
CMAKE, PRESETS, MESON, AUTOCONF = "CMakeLists.txt", "CMakePresets.json", "meson.build", "configure.ac"
BAZEL = ("MODULE.bazel", "WORKSPACE.bazel", "WORKSPACE")
CMAKE_NAME = re.compile(r"^[ \t]*+project[ \t]*+\([ \t\n]*+([\w.+-]{1,80})", re.MULTILINE | re.IGNORECASE)
CMAKE_TESTS = re.compile(
    r"^[ \t]*+(?:enable_testing[ \t]*+\(|include[ \t]*+\([ \t]*+CTest\b)", re.MULTILINE | re.IGNORECASE
)
CMAKE_ADDS_TESTS = re.compile(
    CMAKE_TESTS.pattern + r"|^[ \t]*+add_subdirectory[ \t]*+\([ \t]*+\"?tests?\b",
    re.MULTILINE | re.IGNORECASE,
)
CMAKE_IF = re.compile(r"[ \t]*+if[ \t]*+\(([^)\n]{0,300})", re.IGNORECASE)
CMAKE_ENDIF = re.compile(r"[ \t]*+endif[ \t]*+\(", re.IGNORECASE)
CMAKE_OFF = re.compile(
    r"^[ \t]*+\w{0,40}?option[ \t]*+\([ \t]*+(\w{1,80})\s++\"[^\"\n]*+\"\s++OFF\b",
    re.MULTILINE | re.IGNORECASE,
)
MESON_NAME = re.compile(r"^[ \t]*+project[ \t]*+\([ \t\n]*+'([\w.+-]{1,80})'", re.MULTILINE)
MESON_TESTS = re.compile(r"^[ \t]*+(?:test[ \t]*+\(|subdir[ \t]*+\([ \t]*+'tests?')", re.MULTILINE)
AUTOCONF_NAME = re.compile(r"AC_INIT[ \t]*+\([ \t\n]*+\[?([\w.+-]{1,80})")
AUTOMAKE_TESTS = re.compile(r"^TESTS[ \t]*+\+?=|^check(?:-local)?:", re.MULTILINE)
ZIG_STEP = re.compile(r"\.step\([ \t\n]*+\"(test|run)\"")


def read(folder: Folder) -> Manifest | None:
    """The first of them that is there: where a project has two, the others are for packagers."""
    readers = ((CMAKE, _cmake), (MESON, _meson), (AUTOCONF, _autotools), ("build.zig", _zig))
    for file, reader in readers:
        if file in folder.names:
            return reader(folder)
    if source := folder.first(*BAZEL):
        commands = (
            Command("build", "bazel build //...", source),
            Command("test", "bazel test //...", source),
        )
        return Manifest(ecosystem="bazel", managers=("bazel",), commands=commands)
    return None


def _cmake(folder: Folder) -> Manifest:
    text = folder.text(CMAKE)
    presets = {
        kind: [name for preset in _list(folder, f"{kind}Presets") if (name := _visible(preset))]
        for kind in ("configure", "build", "test")
    }
    if configured := presets["configure"][:1]:
        built = "--preset " + configured[0] if configured[0] in presets["build"] else "build"
        found = [Command("build", f"cmake --preset {configured[0]} && cmake --build {built}", PRESETS)]
        if built == "build":
            found = []  # where it builds is said in the preset, maybe by way of others
        if configured[0] in presets["test"]:
            found.append(Command("test", f"ctest --preset {configured[0]}", PRESETS))
    else:
        found = []
    if not found:
        found = [Command("build", "cmake -B build && cmake --build build", CMAKE)]
        tests = next((path for path in _tested(folder) if CMAKE_TESTS.search(folder.text(path))), None)
        if tests:
            on = _switched_on(text)
            configure = f"cmake -B build -D{on}=ON && cmake --build build" if on else ""
            found.append(Command("test", "ctest --test-dir build", tests, after=configure))
    return Manifest(ecosystem="cmake", language="C++", name=_name(CMAKE_NAME, text), commands=tuple(found))


def _switched_on(text: str) -> str:
    """The option around the tests that is off unless somebody sets it."""
    options = {found[1] for found in CMAKE_OFF.finditer(text)}
    around: list[str] = []
    for line in text.splitlines() if options else ():
        if CMAKE_ADDS_TESTS.match(line):
            asked = (re.findall(r"(?<!NOT )\b\w+", condition) for condition in reversed(around))
            if name := next((name for names in asked for name in names if name in options), ""):
                return name
        elif condition := CMAKE_IF.match(line):
            around.append(condition[1])
        elif CMAKE_ENDIF.match(line):
            del around[-1:]
    return ""


def _tested(folder: Folder) -> list[str]:
    return [path for path in (CMAKE, f"test/{CMAKE}", f"tests/{CMAKE}") if folder.has(path)]


def _list(folder: Folder, key: str) -> list[object]:
    found = folder.json(PRESETS).get(key)
    return found[:100] if isinstance(found, list) else []


def _visible(preset: object) -> str:
    name = word(table(preset).get("name"))
    return name if NAME.fullmatch(name) and not table(preset).get("hidden") else ""


def _meson(folder: Folder) -> Manifest:
    text = folder.text(MESON)
    found = [Command("build", "meson setup build && meson compile -C build", MESON)]
    if MESON_TESTS.search(text):
        found.append(Command("test", "meson test -C build", MESON))
    return Manifest(ecosystem="meson", language="C", name=_name(MESON_NAME, text), commands=tuple(found))


def _autotools(folder: Folder) -> Manifest:
    begin = next(
        (f"./{name}" for name in ("autogen.sh", "bootstrap.sh", "bootstrap") if name in folder.names), ""
    )
    begin = begin or "autoreconf -i"
    with_tests = UNIT_OPTION.search(folder.text(AUTOCONF))  # without it the tests are none, and pass
    enabled = f" --enable-{with_tests[1]}" if with_tests else ""
    found = [Command("build", f"{begin} && ./configure{enabled} && make", AUTOCONF)]
    if AUTOMAKE_TESTS.search(folder.text("Makefile.am")):
        found.append(Command("test", "make check", "Makefile.am"))
    name = _name(AUTOCONF_NAME, folder.text(AUTOCONF))
    return Manifest(ecosystem="autotools", language="C", name=name, commands=tuple(found))


def _zig(folder: Folder) -> Manifest:
    steps = dict.fromkeys(ZIG_STEP.findall(folder.text("build.zig")))
    found = [Command("build", "zig build", "build.zig")]
    found += (Command(step, f"zig build {step}", "build.zig") for step in steps)
    return Manifest(ecosystem="zig", language="Zig", managers=("zig",), commands=tuple(found))


def _name(expression: re.Pattern[str], text: str) -> str:
    found = expression.search(text)
    return found[1] if found else ""
