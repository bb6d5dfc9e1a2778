"""What must be there before the first command works: versions of tools, services, settings, submodules."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from backstory.claude_md.read.documents import for_developers
from backstory.claude_md.read.files import ProjectFiles
from backstory.claude_md.read.ignore import Rules
from backstory.claude_md.read.manifests.folder import Folder, Index, dig, table, word
from backstory.model import Fact

TOOL = re.compile(r"[\w.-]{1,40}")
VERSION = re.compile(r"[\w.^~<>=|* ,+-]{1,40}")
MOST_SUBMODULES = 4
MOST_EXAMPLES = 2

# Line of a file -> what it asks for. The first group is the version.
LINES = (
    ("go.mod", "Go", r"^toolchain go(\S+)"),
    ("go.mod", "Go", r"^go (\d\S*)"),
    (".nvmrc", "Node", r"^v?(\d[\w.]*)$"),
    (".node-version", "Node", r"^v?(\d[\w.]*)$"),
    (".python-version", "Python", r"^(\d[\w.]*)$"),
    (".ruby-version", "Ruby", r"^(?:ruby-)?(\d[\w.]*)$"),
    (".java-version", "Java", r"^(\d[\w.]*)$"),
    (".swift-version", "Swift", r"^(\d[\w.]*)$"),
    ("Package.swift", "Swift", r"^// *swift-tools-version: *(\d[\w.]*)"),
    ("mix.exs", "Elixir", r"^\s*(?:elixir:|@\w*elixir\w*) *\"([^\"]+)\""),
    ("build.zig.zon", "Zig", r"\.minimum_zig_version *= *\"([^\"]+)\""),
    ("rust-toolchain", "Rust", r"^([a-z0-9][\w.-]*)$"),
    ("CMakeLists.txt", "CMake", r"^\s*cmake_minimum_required\s*\(\s*VERSION\s+(\d+(?:\.\d+)*)"),
    ("CMakeLists.txt", "C++", r"^\w[^#\n]*\bCMAKE_CXX_STANDARD\s+(\d+)|^\w[^#\n]*\bcxx_std_(\d+)"),
    ("CMakeLists.txt", "C", r"^\w[^#\n]*\bCMAKE_C_STANDARD\s+(\d+)"),
    ("meson.build", "Meson", r"meson_version *: *'([^']+)'"),
    ("pubspec.yaml", "Dart", r"^\s+sdk: *['\"]?([\^>=<\d][^'\"\n]*)"),
    ("stack.yaml", "Stackage", r"^resolver: *(\S+)"),
    (".bazelversion", "Bazel", r"^(\d\S*)$"),
)
STANDARDS = frozenset(("C", "C++"))  # where they are not set in a condition, whose lines are indented
# What .tool-versions and mise call a tool that others call so; one that is not here is called alike.
NAMES = {
    "node": "Node",
    "nodejs": "Node",
    "go": "Go",
    "golang": "Go",
    "python": "Python",
    "ruby": "Ruby",
    "rust": "Rust",
    "java": "Java",
    "swift": "Swift",
    "elixir": "Elixir",
    "erlang": "Erlang/OTP",
    "zig": "Zig",
    "php": "PHP",
    "dotnet": ".NET SDK",
    "dotnet-core": ".NET SDK",
    "dart": "Dart",
    "cmake": "CMake",
    "meson": "Meson",
    "bazel": "Bazel",
}
SERVICES = {
    "postgres": "PostgreSQL",
    "postgis": "PostgreSQL with PostGIS",
    "timescaledb": "TimescaleDB",
    "pgvector": "PostgreSQL with pgvector",
    "mysql": "MySQL",
    "mariadb": "MariaDB",
    "redis": "Redis",
    "valkey": "Valkey",
    "mongo": "MongoDB",
    "memcached": "memcached",
    "elasticsearch": "Elasticsearch",
    "opensearch": "OpenSearch",
    "rabbitmq": "RabbitMQ",
    "kafka": "Kafka",
    "nats": "NATS",
    "minio": "MinIO",
    "clickhouse-server": "ClickHouse",
    "clickhouse": "ClickHouse",
    "cockroach": "CockroachDB",
    "cassandra": "Cassandra",
    "neo4j": "Neo4j",
    "etcd": "etcd",
    "localstack": "LocalStack",
    "meilisearch": "Meilisearch",
    "typesense": "Typesense",
    "tika": "Tika",
    "gotenberg": "Gotenberg",
    "mailhog": "MailHog",
    "mailpit": "Mailpit",
    "openldap": "OpenLDAP",
    "keycloak": "Keycloak",
    "temporal": "Temporal",
    "mssql/server": "SQL Server",
}
IMAGE = re.compile(
    r"[ \t]*(?:-[ \t]*)?image:[ \t]+[\"']?(?:[\w.:-]{1,99}/){0,4}?"
    r"(mssql/server|[\w.-]{1,99}?)(?::([\w.-]{1,99}))?(?:[@\"'\s].*)?"
)
LONGEST_LINE = 400
COMPOSE = re.compile(
    r"(?:(?:dev|\.devcontainer|\.docker)/)?(?:docker-)?compose(?:[.-](?:dev|development|local|test|override))?\.ya?ml"
)
WORKFLOW = re.compile(r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.ya?ml")
SETTINGS_EXAMPLE = re.compile(
    r"(?:[\w.-]+/)?(?P<name>\.env(?:\.\w+)?|env)[._-](?:example|sample|template|dist|tmpl)"
    r"|(?:[\w.-]+/)?(?:example|sample)\.(?P<env>env)"
)
SUBMODULE = re.compile(r"[ \t]*path[ \t]*=[ \t]*(\S.*)")


def prerequisites(project: ProjectFiles, folders: Index, parts: Sequence[str], name: str) -> tuple[Fact, ...]:
    """Of the project of that name, and of its parts that have manifests of their own."""
    found: dict[str, Fact] = {}
    for path in ("", *parts):
        for tool, fact in _versions(Folder(project, folders, path), path):
            found.setdefault(tool, fact)
    return (
        *found.values(),
        *_services(project, name),
        *islice(_settings(project), MOST_EXAMPLES),
        *_submodules(project),
    )


def _versions(folder: Folder, path: str) -> Iterator[tuple[str, Fact]]:
    above = f"{path}/" if path else ""
    for tool, version, file in _in_manifests(folder):
        if version and VERSION.fullmatch(version):
            yield tool, Fact(f"{tool} {version}", above + file, _kind(file))
    for file, tool, pattern in LINES:
        lines = _lines(folder.text(file)) if file in folder.names else ()
        if file == "Package.swift" and any(
            name.startswith(("Package@swift", ".swift-version")) for name in folder.names
        ):
            continue  # there is a manifest for older ones, or somebody chose another
        if file == "Package.swift" and any(
            folder.any_below("", ending) for ending in (".cpp", ".hpp", ".cc")
        ):
            continue  # it serves those who use a library of another language
        match = next((found for line in lines if (found := re.search(pattern, line))), None)
        version = next((group for group in match.groups() if group), "") if match else ""
        if tool == "CMake" and version:
            version = f"{version} or newer"
        if version and VERSION.fullmatch(version) and not (path and tool in STANDARDS):
            said = f"{tool}{version}" if tool in STANDARDS else f"{tool} {version}"
            yield tool, Fact(said, above + file, _kind(file))


def _kind(file: str) -> str:
    """What a version manager installs is the version that somebody chose, and not what the project needs."""
    return "pinned" if file.startswith(".") or "mise" in file else ""


def _in_manifests(folder: Folder) -> Iterator[tuple[str, str, str]]:
    package = folder.json("package.json")
    yield "Node", word(dig(package, "engines", "node")), "package.json"
    manager, _, version = word(package.get("packageManager")).partition("@")
    if manager in ("pnpm", "yarn", "bun", "npm"):
        yield manager, version.partition("+")[0], "package.json"
    project = folder.toml("pyproject.toml")
    stated = word(dig(project, "project", "requires-python"))
    yield "Python", stated or word(dig(project, "tool", "poetry", "dependencies", "python")), "pyproject.toml"
    setup = folder.ini("setup.cfg").get("options", {})
    yield "Python", setup.get("python_requires", ""), "setup.cfg"
    channel = word(dig(folder.toml("rust-toolchain.toml"), "toolchain", "channel"))
    yield "Rust", "" if channel == "stable" else channel, "rust-toolchain.toml"
    cargo = folder.toml("Cargo.toml")
    for place in (cargo.get("package"), dig(cargo, "workspace", "package")):
        if version := word(table(place).get("rust-version")):
            yield "Rust", f"{version} or newer", "Cargo.toml"
    yield ".NET SDK", word(dig(folder.json("global.json"), "sdk", "version")), "global.json"
    yield "PHP", word(dig(folder.json("composer.json"), "require", "php")), "composer.json"
    for tool, version, file in _of_version_managers(folder):
        if TOOL.fullmatch(tool):
            yield NAMES.get(tool, tool), version, file


def _of_version_managers(folder: Folder) -> Iterator[tuple[str, str, str]]:
    for line in folder.text(".tool-versions").splitlines()[:50]:
        tool, *versions = line.split()[:2] or ("",)
        yield tool, "".join(versions), ".tool-versions"
    for file in ("mise.toml", ".mise.toml"):
        for tool, asked in table(dig(folder.toml(file), "tools")).items():
            yield str(tool), word(asked), file


def _services(project: ProjectFiles, name: str) -> Iterator[Fact]:
    """What compose files and CI start beside the project."""
    paths = [file.path for file in project.files if COMPOSE.fullmatch(file.path)]
    paths += [file.path for file in project.files if WORKFLOW.fullmatch(file.path)]
    found: dict[str, tuple[str, str]] = {}
    # A checkout may be called anything, and so may a package.
    published = {os.path.basename(path).lower() for path in (name, project.root)}
    for path in paths[:40]:
        images = [image for line in _lines(project.text(path, 200_000)) if (image := IMAGE.fullmatch(line))]
        if any(image[1].lower() in published for image in images):
            continue  # it starts what was released, for those who use it
        for image in images:
            service = SERVICES.get(image[1].lower())
            version = re.match(r"v?(\d+(?:\.\d+)?)", image[2] or "")
            if service and service not in found:
                found[service] = (f"{service} {version[1]}" if version else service, path)
    by_source: dict[str, list[str]] = {}
    for said, path in found.values():
        by_source.setdefault(path, []).append(said)
    for path, said_there in by_source.items():
        yield Fact(", ".join(said_there), path, "service")


def _settings(project: ProjectFiles) -> Iterator[Fact]:
    examples = [
        (file.path, found) for file in project.files if (found := SETTINGS_EXAMPLE.fullmatch(file.path))
    ]
    examples.sort(key=lambda one: (one[0].count("/"), not one[1]["name"], one[0]))
    made: dict[str, str] = {}
    for path, found in examples:
        folder = path.rpartition("/")[0]
        name = found["name"] or f".{found['env']}"
        made.setdefault(f"{folder}/{name}" if folder else name, path)
    # What git ignores is what somebody is to make of the example.
    rules = Rules((project.text(".gitignore", 64_000) or "").encode("utf-8", "replace"))
    said = "\n".join(block.text for document in for_developers(project) for block in document.blocks)
    for target, path in made.items():
        if rules and rules.ignored(target.encode(), os.path.basename(target).encode(), folder=False):
            # The example does not say which file the code reads: .env or .env.local.
            name = re.escape(os.path.basename(path))
            copied = re.search(
                rf"\b(?:cp|mv|copy) [^\n]{{0,60}}{name}`? (?:to )?`?([\w./-]{{0,60}}env[\w.]*)", said
            )
            yield Fact(
                posixpath.join(os.path.dirname(path), os.path.basename(copied[1])) if copied else "",
                path,
                "settings",
            )


def _is_folder(root: str, path: str) -> bool:
    """Is it a folder of the project's? What lies elsewhere is not looked at."""
    if os.path.isabs(path) or ".." in path.split("/"):
        return False
    top, real = os.path.realpath(root), os.path.realpath(os.path.join(root, path))
    return real.startswith(f"{top}/") and os.path.isdir(real)


def _submodules(project: ProjectFiles) -> Iterator[Fact]:
    lines = (SUBMODULE.fullmatch(line) for line in _lines(project.text(".gitmodules", 100_000)))
    paths = [line[1].strip() for line in lines if line and "`" not in line[1] and line[1].isprintable()]
    # A clone has a folder for each that is in the tree; lines may be left of those that are gone.
    paths = [path for path in paths if _is_folder(project.root, path)]
    if paths:
        more = " and others" if len(paths) > MOST_SUBMODULES else ""
        yield Fact(
            ", ".join(f"`{path}`" for path in paths[:MOST_SUBMODULES]) + more,
            ".gitmodules",
            "submodules",
        )
    if "filter=lfs" in (project.text(".gitattributes", 100_000) or ""):
        yield Fact("Git LFS", ".gitattributes")


def _lines(text: str | None) -> Iterator[str]:
    """Those that a person may have written."""
    return (line for line in (text or "").splitlines() if len(line) <= LONGEST_LINE)
