"""What a Python project depends on, from all the lists that it may keep."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Any

from backstory.claude_md.read.manifests.folder import Folder, dig, table, word, words

FILES = re.compile(r"requirements[\w.-]*\.(txt|in)|[\w.-]+[-_]requirements\.(txt|in)")
REFERENCE = re.compile(r"(?:-r|--requirement)[ =]?([\w./-]{1,200}\.(?:txt|in))\b", re.ASCII)
IN_SETUP = ("install_requires", "extras_require", "tests_require")
NAMED = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
VIA = re.compile(r"#\s*via\b")
OF_OUR_OWN = re.compile(r"-r\s|\.in\b|pyproject\.toml|setup\.(py|cfg)")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower().strip("-")


def names(lines: list[str]) -> set[str]:
    """The packages in lines as pip understands them; options, addresses and paths are none."""
    found = (NAMED.match(line.strip()) for line in lines if "://" not in line.partition("@")[0])
    return {normal(name[0]) for name in found if name}


def uv_groups(project: dict[str, Any]) -> tuple[dict[str, set[str]], set[str]]:
    """(what each group of dependencies has, what `uv run` has without naming one)"""
    said = table(project.get("dependency-groups"))
    groups: dict[str, set[str]] = {}
    for name in [*said][:100]:
        waiting, seen = [name], {name}
        groups[name] = set()
        while waiting:
            lines = said.get(waiting.pop())
            groups[name] |= names(words(lines))
            more = [word(dig(line, "include-group")) for line in lines] if isinstance(lines, list) else []
            waiting += [group for group in dict.fromkeys(more) if group in said and group not in seen]
            seen.update(more)
    uv = table(dig(project, "tool", "uv"))
    chosen = uv.get("default-groups", ["dev"])
    always = names(words(dig(project, "project", "dependencies")) + words(uv.get("dev-dependencies")))
    for name, inside in groups.items():
        always |= inside if chosen == "all" or name in words(chosen) else set()
    return groups, always


def files(folder: Folder, named: Iterable[str]) -> list[str]:
    """The requirements files: by their own names, and those that lines of others refer to."""
    found = [name for name in sorted(folder.names) if FILES.fullmatch(name)]
    found += [path for path in folder.inside("requirements") if path.endswith((".txt", ".in"))]
    found += _referred("", named)
    for path in found:  # which grows meanwhile
        if len(found) < 100:
            more = _referred(posixpath.dirname(path), folder.text(path).splitlines())
            found += [path for path in more if path not in found]
    return [path for path in dict.fromkeys(found) if folder.has(path)][:100]


def _referred(folder: str, lines: Iterable[str]) -> list[str]:
    found = (REFERENCE.match(line.replace("{toxinidir}/", "")) for line in lines)
    return [posixpath.normpath(posixpath.join(folder, path[1])) for path in found if path]


def from_file(text: str) -> list[str]:
    """The lines of a requirements file, without what a lock names only because another package needs it."""
    if "--hash=" in text and not VIA.search(text):
        return []  # a lock that does not say which of them the project wants itself
    blocks: list[list[str]] = []
    for line in text.splitlines():
        if line[:1] in ("", "#", "-"):
            blocks.append([])
        elif line[0] in " \t" and blocks:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return [block[0] for block in blocks if block and not _for_another("\n".join(block))]


def _for_another(block: str) -> bool:
    via = VIA.search(block)
    return via is not None and not OF_OUR_OWN.search(block, via.start())


def from_pyproject(project: dict[str, Any]) -> Iterator[str]:
    main, tool = table(project.get("project")), table(project.get("tool"))
    yield from words(main.get("dependencies"))
    poetry = table(tool.get("poetry"))
    groups = [main.get("optional-dependencies"), project.get("dependency-groups")]
    groups.append(table(tool.get("pdm")).get("dev-dependencies"))
    for group in groups:
        for listed in table(group).values():
            yield from words(listed)
    yield from words(table(tool.get("uv")).get("dev-dependencies"))
    for env in table(table(tool.get("hatch")).get("envs")).values():
        yield from words(table(env).get("dependencies"))
        yield from words(table(env).get("extra-dependencies"))
    for place in [poetry, *map(table, table(poetry.get("group")).values())]:
        yield from table(place.get("dependencies"))
        yield from table(place.get("dev-dependencies"))


def from_setup_cfg(sections: dict[str, dict[str, str]]) -> list[str]:
    options = sections.get("options", {})
    lists = [options.get(key, "") for key in ("install_requires", "tests_require")]
    lists += sections.get("options.extras_require", {}).values()
    return [line for listed in lists for line in listed.splitlines()]
