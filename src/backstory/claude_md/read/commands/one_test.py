"""How to run a single test: the form that the project's runner takes, with a test file that is there."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence

from backstory.claude_md.read.commands.lines import typed_in
from backstory.claude_md.read.files import ProjectFiles
from backstory.claude_md.read.languages import is_test
from backstory.claude_md.read.manifests.folder import dig, toml, word
from backstory.model import Command

RUST_TEST = r"#\[(?:tokio::)?test\][ \t]*+\n(?:[ \t]*+#\[[^\n]*+\n)*+[ \t]*+(?:async )?fn (\w+)"
# What the runner is called -> (which files are its tests, what in them names one, the form of the command).
# `{run}` is the command up to the runner, `{file}` a path, `{name}` a test.
RUNNERS = {
    "pytest": (r"(?:test_\w+|\w+_test)\.py", r"^(?:async )?def (test_\w+)", "{run} {file}::{name}"),
    "manage.py test": (r"test\w*\.py", "", "{run} {module}"),
    "go test": (r"\w+_test\.go", r"^func (Test[A-Z]\w*)\(t ", "go test ./{folder} -run {name}"),
    "gotestsum": (r"\w+_test\.go", r"^func (Test[A-Z]\w*)\(t ", "go test ./{folder} -run {name}"),
    "cargo test": (r"\w+\.rs", RUST_TEST, "cargo test{package} {name}"),
    "cargo nextest": (r"\w+\.rs", RUST_TEST, "cargo nextest run{package} {name}"),
    "vitest": (r"[\w.-]+\.(?:test|spec)\.[cm]?[jt]sx?", "", "{exec} vitest run {file}"),
    "jest": (r"[\w.-]+\.(?:test|spec)\.[cm]?[jt]sx?", "", "{exec} jest {file}"),
    "mocha": (r"[\w.-]+\.[cm]?[jt]s", "", "{exec} mocha {file}"),
    "ava": (r"[\w.-]+\.[cm]?[jt]s", "", "{exec} ava {file}"),
    "playwright": (r"[\w.-]+\.(?:test|spec)\.[cm]?[jt]sx?", "", "{exec} playwright test {file}"),
    "bun test": (r"[\w.-]+[._](?:test|spec)\.[jt]sx?", "", "bun test {file}"),
    "deno test": (r"[\w.-]+[._]test\.[jt]sx?", "", "deno test {file}"),
    "rspec": (r"\w+_spec\.rb", "", "bundle exec rspec {file}"),
    "rails test": (r"\w+_test\.rb", "", "bin/rails test {file}"),
    "mix test": (r"\w+_test\.exs", "", "mix test {file}"),
    "phpunit": (r"\w+Test\.php", "", "vendor/bin/phpunit {file}"),
    "pest": (r"\w+Test\.php", "", "vendor/bin/pest {file}"),
    "artisan test": (r"\w+Test\.php", "", "php artisan test {file}"),
    "dotnet test": (
        r"\w+Tests?\.cs",
        r"^\s*public (?:sealed |partial |static )*class (\w+)",
        "dotnet test{project} --filter FullyQualifiedName~{name}",
    ),
    "swift test": (r"\w+Tests?\.swift", r"^(?:final )?(?:class|struct) (\w+)", "swift test --filter {name}"),
    "gradlew test": (r"\w+Test\.(?:java|kt)", "", "./gradlew {task}test{debug} --tests {stem}"),
    "gradle test": (r"\w+Test\.(?:java|kt)", "", "gradle {task}test{debug} --tests {stem}"),
    "mvn test": (r"\w+Test\.java", "", "mvn{module_option} test -Dtest={stem}"),
    "mvnw test": (r"\w+Test\.java", "", "./mvnw{module_option} test -Dtest={stem}"),
    "ctest": (
        r"CMakeLists\.txt",
        r"^[ \t]*+add_\w{0,40}test\([ \t]*+(?:NAME[ \t]++)?+([a-zA-Z][\w.-]{0,80})[ \t)\n]",
        "{whole} -R {name}",
    ),
    "flutter test": (r"\w+_test\.dart", "", "flutter test {file}"),
    "dart test": (r"\w+_test\.dart", "", "dart test {file}"),
}
PROJECTS = {
    "dotnet": (".csproj", ".fsproj"),
    "gradle": ("build.gradle", "build.gradle.kts"),
    "mvn": ("pom.xml",),
}
NEEDED = {  # by the program of a runner, in the folder in which one types it
    "phpunit": "composer.json",
    "pest": "composer.json",
    "artisan": "composer.json",
    "mix": "mix.exs",
    "swift": "Package.swift",
    "rspec": "Gemfile",
    "rails": "Gemfile",
}
OWN_ROOT = {
    "go": "go.mod",
    "gotestsum": "go.mod",
    "pytest": "pyproject.toml",
    **NEEDED,
}  # what is below another one is no part
EXEC = {"npm": "npx", "pnpm": "pnpm", "yarn": "yarn", "bun": "bunx"}
RUNNING = {"uv.lock": "uv run", "poetry.lock": "poetry run", "pdm.lock": "pdm run", "Pipfile": "pipenv run"}
PLAIN = re.compile(r"[\w./@+\[\]()][\w./@+\[\]()-]*", re.ASCII)
LONGEST_LINE = 200
LOOKED_AT = 30  # files, for one that names a test
# Of a test that needs more than the project: a browser, a container, the network.
NEEDS_MORE = re.compile(
    r"e2e|end.?to.?end|integration|docker|container|oidc|oauth|browser|playwright|selenium|cypress|network",
    re.IGNORECASE,
)


def one_test(
    project: ProjectFiles,
    part: str,
    tests: Sequence[tuple[Command, str, frozenset[tuple[str, str]]]],
    is_ours: Callable[[str], bool],
) -> Command | None:
    """Of the first of these commands whose runner is known. The set is what a task runs."""
    for command, key, inside in tests:
        below = command.folder
        found = [(below, key), *sorted(inside)]
        for folder, runner in found:
            if runner in RUNNERS and is_ours(runner) and (folder == below or not inside):
                line = _line(project, folder, runner, command.line, is_task=runner != key)
                if line:
                    return Command("one", typed_in(folder, line), command.source, part)
    return None


def _line(project: ProjectFiles, folder: str, runner: str, whole: str, *, is_task: bool) -> str | None:
    names, inside, form = RUNNERS[runner]
    files = _belonging(project, folder, runner, _files(project, folder, re.compile(names)))
    if runner == "playwright":
        files = _in_its_folder(project, folder, files)
    if not files:
        return None
    places = _places(project, folder, runner)
    if runner == "dotnet test":  # others are shared among projects
        files = [path for path in files if _place(places, path)] or files
    path = files[0]
    name = ""
    if inside:
        expression = re.compile(inside, re.MULTILINE)
        for path in files[:LOOKED_AT]:
            text = project.text("/".join(filter(None, (folder, path))), 200_000) or ""
            tests = (found[1] for found in expression.finditer(text) if not _is_fixture(text, found))
            if name := next(tests, ""):
                break
        else:
            if runner != "pytest":
                return None
            path, form = files[0], "{run} {file}"  # its tests are in classes
    manager = next((word for word in whole.split() if word in EXEC), "npm")
    # A task may have the runner's name, and takes no file.
    run = whole[: whole.index("pytest") + len("pytest")] if "pytest" in whole and not is_task else ""
    if "{run}" in form and not run:
        run = _pytest(project, folder) if runner == "pytest" else ""
        if runner == "manage.py test":
            run = whole.partition(" test")[0] + " test" if "manage.py test" in whole else ""
        if not run:
            return None
    stem = posixpath.basename(path).partition(".")[0]
    place = _place(places, path)
    return form.format(
        run=run,
        exec=EXEC[manager],
        file=_quoted(path),
        folder=_quoted(posixpath.dirname(path)),
        name=name,
        stem=_quoted(stem),
        package=_package(project, folder, path, whole) if runner.startswith("cargo") else "",
        module=_quoted(path.removesuffix(".py").replace("/", ".")),
        whole=whole,
        project=f" {_quoted(place)}" if place else "",
        task=_quoted(f":{place.replace('/', ':')}:") if place else "",
        debug=_android(project, folder, place),
        module_option=f" -pl {_quoted(place)}" if place else "",
    ).replace(" ./ ", " . ")


def _is_fixture(text: str, found: re.Match[str]) -> bool:
    """Whether what looks like a test of pytest is what tests are given."""
    above = text[max(0, found.start() - LONGEST_LINE) : found.start()]
    return "fixture" in above.rstrip().rpartition("\n")[2]


def _in_its_folder(project: ProjectFiles, folder: str, files: list[str]) -> list[str]:
    """Those in the folder that Playwright is told to look in."""
    paths = (
        "/".join(filter(None, (folder, f"playwright.config.{ending}"))) for ending in ("ts", "js", "mjs")
    )
    found = (re.search(r"\btestDir:\s*[\"']([^\"']+)", project.text(path, 100_000) or "") for path in paths)
    inside = next((posixpath.normpath(match[1]) for match in found if match), ".")
    return [path for path in files if inside == "." or path.startswith(f"{inside}/")]


def _quoted(path: str) -> str:
    return shlex.quote(path) if path else ""


def _android(project: ProjectFiles, folder: str, place: str) -> str:
    """Of an Android module `test` is several tasks, and only one of them can be told which test."""
    texts = (
        project.text("/".join(filter(None, (folder, place, name))), 100_000) or ""
        for name in PROJECTS["gradle"]
    )
    return "DebugUnitTest" if any("com.android." in text for text in texts) else ""


def _pytest(project: ProjectFiles, folder: str) -> str:
    """How pytest is started where a task hides it."""
    names = {file.path for file in project.files}
    locks = ((lock, "/".join(filter(None, (folder, lock)))) for lock in RUNNING)
    return next((f"{RUNNING[lock]} pytest" for lock, path in locks if path in names), "pytest")


def _belonging(project: ProjectFiles, folder: str, runner: str, files: list[str]) -> list[str]:
    """Those that the runner finds from the folder."""
    program = runner.split(maxsplit=1)[0]
    start = f"{folder}/" if folder else ""
    manifest = OWN_ROOT.get(program)
    if manifest is None or program == "mix":  # whose umbrella has others below
        below = set[str]()
    else:
        paths = (file.path for file in project.files if posixpath.basename(file.path) == manifest)
        below = {posixpath.dirname(path)[len(start) :] for path in paths if path.startswith(start)} - {""}
    is_there = program not in NEEDED or any(file.path == start + NEEDED[program] for file in project.files)
    found = [path for path in files if is_there and not (below and _place(below, path))]
    # The packages of a workspace of Python may all be tested from above.
    return found or (files if program == "pytest" else [])


def _package(project: ProjectFiles, folder: str, path: str, whole: str) -> str:
    """Which package of a workspace the test is in, with the features that the project is tested with."""
    features = " --all-features" if "--all-features" in whole else ""
    above = posixpath.dirname(path)
    while above:
        manifest = toml(project.text("/".join(filter(None, (folder, above, "Cargo.toml"))), 100_000) or "")
        if name := word(dig(manifest, "package", "name")):
            return f" -p {name}{features}" if PLAIN.fullmatch(name) else features
        above = posixpath.dirname(above)
    return features


def _places(project: ProjectFiles, folder: str, runner: str) -> set[str]:
    """The folders below with a project of their own, where a runner must be told which."""
    start = f"{folder}/" if folder else ""
    manifests = PROJECTS.get(runner.split(maxsplit=1)[0].removesuffix("w"), ())
    return {
        posixpath.dirname(file.path)[len(start) :]
        for file in project.files
        if manifests and file.path.startswith(start) and file.path.endswith(manifests)
    }


def _place(places: set[str], path: str) -> str:
    above = posixpath.dirname(path)
    while above and above not in places:
        above = posixpath.dirname(above)
    return above


def _files(project: ProjectFiles, folder: str, names: re.Pattern[str]) -> list[str]:
    """Paths from the folder: of the folder that has most of them (a number must double to count for more),
    where a test is like the others, the shortest first: one that is likely to stay."""
    start = f"{folder}/" if folder else ""
    found = []
    for file in project.files:
        path = file.path
        if path.startswith(start) and names.fullmatch(posixpath.basename(path)) and 0 < file.size < 200_000:
            inner = path[len(start) :]
            if PLAIN.fullmatch(inner) and (
                is_test(path) or path.endswith((".rs", ".cs", ".swift", "CMakeLists.txt"))
            ):
                found.append(inner)
    is_go = names.pattern.endswith(r"\.go")  # of a package, not of the whole
    is_named_so = re.search(r"est|spec", names.pattern) is not None  # else not each file has a test
    beside = Counter(map(posixpath.dirname, found if is_named_so else ()))
    return sorted(
        found,
        key=lambda path: (
            NEEDS_MORE.search(path) is not None,
            is_go and "/" not in path,
            -beside[posixpath.dirname(path)].bit_length(),
            len(path),
            path,
        ),
    )
