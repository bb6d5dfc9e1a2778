"""pyproject.toml, setup.cfg, setup.py, requirements, Pipfile, tox, nox, and the tools set up beside them."""

from __future__ import annotations

from typing import Any

from backstory.claude_md.read.manifests import python_code, python_requires, python_tox
from backstory.claude_md.read.manifests.folder import Folder, dig, table, word, words
from backstory.claude_md.read.manifests.manifest import Manifest
from backstory.model import Command

# What a file or a table of pyproject.toml stands for; where there is none of them, it is pip.
MANAGERS = (
    ("poetry", ("poetry.lock",), ("poetry",)),
    ("pdm", ("pdm.lock",), ("pdm",)),
    ("uv", ("uv.lock", "uv.toml"), ("uv",)),
    ("pipenv", ("Pipfile", "Pipfile.lock"), ()),
    ("hatch", ("hatch.toml",), ("hatch", "envs")),
)
# A tool is set up by a file of its own, a table of pyproject.toml, or sections of setup.cfg and tox.ini.
TOOLS = (
    ("test", "pytest", ("pytest.ini", ".pytest.ini"), "pytest", ("tool:pytest", "pytest")),
    ("lint", "ruff check", ("ruff.toml", ".ruff.toml"), "ruff", ()),
    ("lint", "mypy", ("mypy.ini", ".mypy.ini"), "mypy", ("mypy",)),
    ("lint", "flake8", (".flake8",), "", ("flake8",)),
    ("lint", "black .", (), "black", ()),
    ("lint", "pre-commit run --all-files", (".pre-commit-config.yaml",), "", ()),
)
LINT_ENVS = ("lint", "style", "pre-commit", "typing", "mypy", "flake8")


def read(folder: Folder) -> Manifest:
    project = folder.toml("pyproject.toml")
    setup_cfg = folder.ini("setup.cfg")
    setup_py = python_code.setup(folder.python("setup.py"))
    tox = python_tox.read(folder, project, setup_cfg)
    sessions, installed = python_code.sessions(folder.python("noxfile.py"))
    referring = [*(tox.requires if tox else ()), *(f"-r {word}" for word in installed)]
    requirements = python_requires.files(folder, referring)
    lists = [  # in the order in which one would name the source of a dependency
        ("pyproject.toml", list(python_requires.from_pyproject(project))),
        ("setup.cfg", python_requires.from_setup_cfg(setup_cfg)),
        ("setup.py", [line for key in python_requires.IN_SETUP for line in setup_py.get(key, ())]),
        ("Pipfile", _pipfile(folder)),
        *((path, python_requires.from_file(folder.text(path))) for path in requirements),
        (tox.source, list(tox.requires)) if tox else ("", []),
        ("noxfile.py", installed),
    ]
    needed = [(source, python_requires.names(lines)) for source, lines in lists]
    found = _tools(folder, project, {"setup.cfg": setup_cfg, "tox.ini": folder.ini("tox.ini")})
    named = next((source for source, names in needed if "pytest" in names), None)
    if named and not any(command.line == "pytest" for command in found):
        found.insert(0, Command("test", "pytest", named))
    if tox:
        found.append(Command("test", "tox", tox.source))
        found += [Command("lint", f"tox -e {env}", tox.source) for env in LINT_ENVS if env in tox.envs]
    for role, names in (("test", ("test", "tests")), ("lint", ("lint",))):
        found += [Command(role, f"nox -s {name}", "noxfile.py") for name in names if name in sessions]
    if "django" in folder.text("manage.py"):
        found.append(Command("run", "python manage.py runserver", "manage.py"))
        if not any(command.line == "pytest" for command in found):
            found.append(Command("test", "python manage.py test", "manage.py"))
    builds = "pyproject.toml" if "build-system" in project else folder.first("setup.py")
    if builds:
        found.insert(0, Command("build", "python -m build", builds))
    packaged = builds or requirements or "project" in project or "metadata" in setup_cfg
    managers = _managers(folder, project) or (("pip",) if packaged else ())
    about = _about(project, setup_cfg, setup_py)
    return Manifest(
        ecosystem="pypi",
        language="Python",
        name=about[0],
        description=about[1],
        own=frozenset([python_requires.normal(about[0])]),
        dependencies=frozenset().union(*(names for _, names in needed)),
        configured=frozenset("pytest" for command in found if command.line == "pytest"),
        managers=managers,
        commands=tuple(found),
        members=_members(project),
        manifests=("pyproject.toml",),
    )


def _about(
    project: dict[str, Any], setup_cfg: dict[str, dict[str, str]], setup_py: dict[str, list[str]]
) -> tuple[str, str]:
    places = (project.get("project"), dig(project, "tool", "poetry"), setup_cfg.get("metadata"))
    said = [table(place) for place in places] + [{key: "".join(text) for key, text in setup_py.items()}]
    name, description = (
        next((text for place in said if (text := word(place.get(key)))), "")
        for key in ("name", "description")
    )
    return name, description


def _managers(folder: Folder, project: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        manager
        for manager, files, keys in MANAGERS
        if folder.first(*files) or (keys and dig(project, "tool", *keys) is not None)
    )


def _tools(
    folder: Folder, project: dict[str, Any], configs: dict[str, dict[str, dict[str, str]]]
) -> list[Command]:
    found = []
    for role, line, files, key, sections in TOOLS:
        source = folder.first(*files)
        if not source and key and dig(project, "tool", key) is not None:
            source = "pyproject.toml"
        for name, config in configs.items():
            source = source or (name if any(section in config for section in sections) else None)
        if source:
            found.append(Command(role, line, source))
    return found


def _pipfile(folder: Folder) -> list[str]:
    pipfile = folder.toml("Pipfile")
    return [*table(pipfile.get("packages")), *table(pipfile.get("dev-packages"))]


def _members(project: dict[str, Any]) -> tuple[str, ...]:
    workspace = dig(project, "tool", "uv", "workspace")
    taken_out = ("!" + path for path in words(dig(workspace, "exclude")))
    return (*words(dig(workspace, "members")), *taken_out)
