"""pom.xml."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from backstory.claude_md.read.manifests.folder import Folder
from backstory.claude_md.read.manifests.manifest import Manifest
from backstory.model import Command

# What a plugin lets one do.
PLUGINS = {
    "spring-boot-maven-plugin": ("run", "spring-boot:run"),
    "maven-checkstyle-plugin": ("lint", "checkstyle:check"),
    "spotless-maven-plugin": ("lint", "spotless:check"),
}


def read(folder: Folder) -> Manifest | None:
    if "pom.xml" not in folder.names:
        return None
    pom = folder.xml("pom.xml")
    project = pom if pom is not None else Element("project")
    mvn = "./mvnw" if "mvnw" in folder.names else "mvn"
    plugins = list(_all(project, "plugin"))
    goals = [("build", "package"), ("test", "test")]
    goals += (
        goal
        for name, goal in PLUGINS.items()
        if any(_said(plugin, "artifactId") == name for plugin in plugins)
    )
    parent = _child(project, "parent")
    group = _said(project, "groupId") or _said(parent, "groupId")
    name = _said(project, "artifactId")
    coordinates = {_coordinate(it, group) for it in [*_all(project, "dependency"), *plugins]}
    if _said(parent, "groupId") != group:
        coordinates.add(_coordinate(parent, group))
    modules = _child(project, "modules")
    return Manifest(
        ecosystem="maven",
        language="Java",
        name=name,
        description=_said(project, "description"),
        own=frozenset([f"{group}:{name}"]),
        dependencies=frozenset(coordinates),
        managers=("maven",),
        commands=tuple(Command(role, f"{mvn} {goal}", "pom.xml") for role, goal in goals),
        members=tuple((it.text or "").strip().removesuffix("/pom.xml") for it in _all(modules, "module")),
        manifests=("pom.xml",),
    )


def _coordinate(element: Element, own_group: str) -> str:
    group = _said(element, "groupId").replace("${project.groupId}", own_group)
    return f"{group}:{_said(element, 'artifactId')}"


def _all(element: Element, name: str) -> Iterator[Element]:
    return (it for it in element.iter() if _plain(it) == name)


def _child(element: Element, name: str) -> Element:
    return next((it for it in element if _plain(it) == name), Element(name))


def _said(element: Element, name: str) -> str:
    return (_child(element, name).text or "").strip()


def _plain(element: Element) -> str:
    """The name without its namespace; comments have none."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
