"""pyproject.toml, setup.cfg, setup.py, requirements, Pipfile, tox, nox, and the tools set up beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from backstory.claude_md.read.manifests import python_code, python_requires, python_tox
from backstory.claude_md.read.manifests.folder import Folder, dig, table, word, words
from backstory.claude_md.read.manifests.manifest import Manifest, Task, task
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
    ("format", "black .", (), "black", ()),
    ("lint", "pre-commit run --all-files", (".pre-commit-config.yaml",), "", ()),
)
# How a manager runs a program in the environment that it keeps.
RUNS = {"uv": "uv run ", "poetry": "poetry run ", "pdm": "pdm run ", "pipenv": "pipenv run "}
INSTALLS = {
    "uv": "uv sync",
    "poetry": "poetry install",
    "pdm": "pdm install",
    "pipenv": "pipenv install --dev",
}
LOCKS = {"uv": "uv.lock", "poetry": "poetry.lock", "pdm": "pdm.lock", "pipenv": "Pipfile.lock"}
FOR_DEVELOPERS = (
    "requirements-dev.txt",
    "requirements_dev.txt",
    "dev-requirements.txt",
    "requirements/dev.txt",
)
EXTRAS = ("dev", "develop", "development", "test", "tests", "testing", "all")


def read(folder: Folder) -> Manifest:
    project = folder.toml("pyproject.toml")
    setup_cfg = folder.ini("setup.cfg")
    setup_py = python_code.setup(folder.python("setup.py"))
    tox = python_tox.read(folder, project, setup_cfg)
    sessions, installed = python_code.sessions(folder.python("noxfile.py"))
    referring = [*(tox.requires if tox else ()), *(f"-r {word}" for word in installed)]
    requirements = python_requires.files(folder, referring)
    # Where a project says itself what it needs, these are what a tool made of that.
    declared = bool(_pipfile(folder)) or bool(list(python_requires.from_pyproject(project)))
    lists = [  # in the order in which one would name the source of a dependency
        ("pyproject.toml", list(python_requires.from_pyproject(project))),
        ("setup.cfg", python_requires.from_setup_cfg(setup_cfg)),
        ("setup.py", [line for key in python_requires.IN_SETUP for line in setup_py.get(key, ())]),
        ("Pipfile", _pipfile(folder)),
        *((path, python_requires.from_file(folder.text(path))) for path in requirements if not declared),
        (tox.source, list(tox.requires)) if tox else ("", []),
        ("noxfile.py", installed),
    ]
    needed = [(source, python_requires.names(lines)) for source, lines in lists]
    managers = _managers(folder, project)
    manager = next((name for name in managers if name in RUNS), "")
    run = RUNS.get(manager, "")
    found = _tools(folder, project, {"setup.cfg": setup_cfg, "tox.ini": folder.ini("tox.ini")})
    known = frozenset().union(*(names for _, names in needed))
    if run:  # it has what the project asks for, and nothing else
        found = [one for one in found if any(name.startswith(one.line.split()[0]) for name in known)]
    named = next((source for source, names in needed if "pytest" in names), None)
    configured = any(command.line == "pytest" for command in found)
    if named and not configured:
        found.insert(0, Command("test", "pytest", named))
        configured = True
    if "DJANGO_SETTINGS_MODULE" in folder.text("manage.py"):  # else it does not run as it is
        found.append(Command("run", "python manage.py runserver", "manage.py"))
        if not configured:
            found.append(Command("test", "python manage.py test", "manage.py"))
    if tox:
        found.append(Command("test", "tox", tox.source))
    found = [replace(command, line=run + command.line) for command in found]
    by_setup = "setup(" in folder.text("setup.py")  # a view of Django may be called so
    builds = "pyproject.toml" if "build-system" in project else "setup.py" if by_setup else ""
    packaged = builds or requirements or "project" in project or "metadata" in setup_cfg
    tasks = _tasks(project, tox, sessions)
    if install := _install(folder, project, manager, bool(builds), requirements):
        found.append(install)
    managers = managers or (("pip",) if packaged else ())
    about = _about(project, setup_cfg, setup_py)
    return Manifest(
        ecosystem="pypi",
        language="Python",
        name=about[0],
        description=about[1],
        own=frozenset([python_requires.normal(about[0])]),
        dependencies=known,
        configured=frozenset(["pytest"] if configured else []),
        managers=managers,
        commands=tuple(found),
        tasks=tuple(tasks[:300]),
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
        if source and (line != "mypy" or _has_files(folder, project, configs, source)):
            found.append(Command(role, line, source))
    return found


def _has_files(
    folder: Folder, project: dict[str, Any], configs: dict[str, dict[str, dict[str, str]]], source: str
) -> bool:
    """Whether the settings of mypy say what to look at; without that, `mypy` alone refuses."""
    in_ini = {**configs, source: folder.ini(source)}.get(source, {}).get("mypy", {})
    given = {**table(dig(project, "tool", "mypy")), **in_ini}
    return not {"files", "packages", "modules"}.isdisjoint(given)


def _tasks(
    project: dict[str, Any], tox: python_tox.Tox | None, sessions: list[tuple[str, str]]
) -> list[Task]:
    found = []
    for name, recipe in tox.recipes if tox else ():
        found += task("tox", name, "tox -e {}", recipe, tox.source if tox else "")
    for env in tox.envs if tox else ():
        if not any(each.name == env for each in found):
            found += task("tox", env, "tox -e {}", dict(tox.recipes).get("", "") if tox else "", "tox.ini")
    for name, recipe in sessions:
        found += task("nox", name, "nox -s {}", recipe, "noxfile.py")
    tables = {
        "pdm": ("pdm run {}", dig(project, "tool", "pdm", "scripts")),
        "poe": ("poe {}", dig(project, "tool", "poe", "tasks")),
        "pixi": ("pixi run {}", dig(project, "tool", "pixi", "tasks")),
        "hatch": ("hatch run {}", dig(project, "tool", "hatch", "envs", "default", "scripts")),
    }
    for program, (line, scripts) in tables.items():
        for name, said in table(scripts).items():
            recipe = "\n".join(words(said) or words(dig(said, "cmd")) or words(dig(said, "shell")))
            found += task(program, name, line, recipe, "pyproject.toml")
    return found


def _install(
    folder: Folder, project: dict[str, Any], manager: str, builds: bool, requirements: list[str]
) -> Command | None:
    """The manager's own command where there is a lock; else what pip needs."""
    if manager and folder.first(LOCKS[manager], *(["Pipfile"] if manager == "pipenv" else [])):
        return Command("install", INSTALLS[manager], folder.first(LOCKS[manager]) or "Pipfile")
    if listed := next((path for path in FOR_DEVELOPERS if path in requirements), None):
        return Command("install", f"pip install -r {listed}", listed)
    if builds:
        source = folder.first("pyproject.toml", "setup.py") or ""
        extras = table(dig(project, "project", "optional-dependencies"))
        extra = next((name for name in EXTRAS if name in extras), None)
        return Command("install", f"pip install -e '.[{extra}]'" if extra else "pip install -e .", source)
    if "requirements.txt" in requirements:
        return Command("install", "pip install -r requirements.txt", "requirements.txt")
    if manager:
        return Command("install", INSTALLS[manager], "pyproject.toml")
    return None


def _pipfile(folder: Folder) -> list[str]:
    pipfile = folder.toml("Pipfile")
    return [*table(pipfile.get("packages")), *table(pipfile.get("dev-packages"))]


def _members(project: dict[str, Any]) -> tuple[str, ...]:
    workspace = dig(project, "tool", "uv", "workspace")
    taken_out = ("!" + path for path in words(dig(workspace, "exclude")))
    return (*words(dig(workspace, "members")), *taken_out)
