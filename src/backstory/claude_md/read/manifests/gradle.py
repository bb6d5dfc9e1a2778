"""build.gradle and settings.gradle in both of their languages, and the catalog of versions."""

from __future__ import annotations

import re

from backstory.claude_md.read.manifests.folder import Folder, dig, table, word
from backstory.claude_md.read.manifests.manifest import Manifest
from backstory.model import Command

BUILD = ("build.gradle", "build.gradle.kts")
SETTINGS = ("settings.gradle", "settings.gradle.kts")
SCRIPTS = (".gradle", ".gradle.kts")
CATALOG = "gradle/libs.versions.toml"

# Blanks are never given back: two runs of them with nothing between could be shared out in many ways.
COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|(?<![:\w\"'])//.*")
COORDINATE = re.compile(r"""["']([\w.-]{1,200}):([\w.-]{1,200})(?::[^"'\n]*)?["']""")
IN_PARTS = re.compile(r"""\bgroup\s*+[:=]\s*+["']([\w.-]+)["']\s*+,\s*+name\s*+[:=]\s*+["']([\w.-]+)["']""")
PLUGIN = re.compile(r"""\b(?:id\b\s*+\(?|apply\s*+\(?\s*+plugin\s*+[:=])\s*+["']([\w.-]+)["']""")
ALIAS = re.compile(r"\blibs\.plugins\.([\w.]+)")
INCLUDE = re.compile(r"""\binclude\b\s*+\(?((?:\s*+,?\s*+["'][^"'\n]*["'])++)""")
QUOTED = re.compile(r"""["']([^"'\n]*)["']""")
MOVED = re.compile(
    r"""\bproject\s*+\(\s*+["']([^"'\n]+)["']\s*+\)\s*+\.\s*+projectDir\s*+=\s*+
    (?:new\s++File|file)?\s*+\(?\s*+(?:(?:rootDir|settingsDir|rootProject\.projectDir)\s*+,\s*+)?
    ["']([^"'\n]+)["']""",
    re.VERBOSE,
)
# A loop over all that are included: `projectDir = file("subprojects/${project.name}")`
MOVED_ALL = re.compile(r"""["']([\w./-]{1,200})/\$\{?(?:\w{1,50}\.)?name\}?["']""")
SPOTLESS = ("com.diffplug.spotless", "com.diffplug.gradle.spotless")


def read(folder: Folder) -> Manifest | None:
    scripts = [path for path in sorted(folder.names) if path.endswith(SCRIPTS)]  # or core/core.gradle
    if not scripts:
        return None
    source = folder.first(*BUILD, *SETTINGS) or scripts[0]
    text = _code(folder, *(script for script in scripts if script not in SETTINGS))
    settings = _code(folder, *SETTINGS)
    catalog = folder.toml(CATALOG)
    shared = [path for path in folder.inside("gradle") if path.endswith(SCRIPTS)]
    plugins = _plugins(text, catalog)
    gradle = "./gradlew" if "gradlew" in folder.names else "gradle"
    tasks = [("build", "build"), ("test", "test")]
    if "org.springframework.boot" in plugins:
        tasks.append(("run", "bootRun"))
    if plugins & {*SPOTLESS}:
        tasks += [("lint", "spotlessCheck"), ("format", "spotlessApply")]
    name = _assigned(settings, r"rootProject\.name")
    group = _assigned(text, r"(?<![.\w])(?:project\.)?group")
    needed = _coordinates(text + _code(folder, *shared)) | _catalog(catalog)
    return Manifest(
        ecosystem="maven",
        language="Java",
        name=name,
        description=_assigned(text, r"(?<![.\w])(?:project\.)?description"),
        own=frozenset([f"{group}:{name}"] if group else []),
        dependencies=frozenset(needed | {f"{plugin}:" for plugin in plugins}),
        managers=("gradle",),
        commands=tuple(Command(role, f"{gradle} {task}", source) for role, task in tasks),
        members=tuple(_members(settings)),
    )


def _code(folder: Folder, *paths: str) -> str:
    return "\n".join(COMMENT.sub("", folder.text(path)) for path in paths)


def _coordinates(text: str) -> set[str]:
    return {f"{group}:{name}" for found in (COORDINATE, IN_PARTS) for group, name in found.findall(text)}


def _catalog(catalog: dict[str, object]) -> set[str]:
    found = set()
    for library in table(catalog.get("libraries")).values():
        stated = word(library) or word(dig(library, "module"))
        found.add(stated or f"{word(dig(library, 'group'))}:{word(dig(library, 'name'))}")
    return found


def _plugins(text: str, catalog: dict[str, object]) -> set[str]:
    """The ids of plugins, also those that are named by the catalog."""
    known = {}
    for alias, plugin in table(catalog.get("plugins")).items():
        stated = word(plugin).partition(":")[0] or word(dig(plugin, "id"))
        known[re.sub(r"[-_]", ".", alias)] = stated
    return {*PLUGIN.findall(text), *(known.get(alias, "") for alias in ALIAS.findall(text))}


def _assigned(text: str, name: str) -> str:
    found = re.search(rf"""{name}\s*+=?\s*+["']([^"'\n]*)["']""", text)
    return found[1] if found else ""


def _members(settings: str) -> list[str]:
    """Where they may lie; what is no folder is left out later."""
    moved = dict(MOVED.findall(settings))
    names = [name for group in INCLUDE.findall(settings) for name in QUOTED.findall(group)]
    above = MOVED_ALL.findall(settings) if "projectDir" in settings else []
    found = []
    for name in names:
        path = name.strip(":").replace(":", "/")
        found += [moved[name]] if name in moved else [*(f"{folder}/{path}" for folder in above), path]
    return found
