"""A module that grew too large is split; in between the conversation is compacted, and something has to stay."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, compact, edit, read, say, turn, write

ROOT = "/home/dev/paperclip"

APP = '''
"""Notes on the command line."""

import html
import json
import os
import sys
from dataclasses import asdict, dataclass


@dataclass
class Note:
    title: str
    body: str
    pinned: bool = False


def folder():
    return os.environ.get("PAPERCLIP", os.path.expanduser("~/.paperclip"))


def load():
    path = os.path.join(folder(), "notes.json")
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [Note(**each) for each in json.load(file)]


def save(notes):
    os.makedirs(folder(), exist_ok=True)
    path = os.path.join(folder(), "notes.json")
    with open(path + ".new", "w") as file:
        json.dump([asdict(note) for note in notes], file)
    os.replace(path + ".new", path)


def as_text(notes):
    ordered = sorted(notes, key=lambda note: not note.pinned)
    return "\\n".join(f"{'*' if note.pinned else '-'} {note.title}" for note in ordered)


def as_html(notes):
    items = "".join(f"<li><b>{html.escape(n.title)}</b> {html.escape(n.body)}</li>" for n in notes)
    return f"<ul>{items}</ul>"


def main(args=None):
    args = sys.argv[1:] if args is None else args
    notes = load()
    if args[:1] == ["add"]:
        save([*notes, Note(args[1], " ".join(args[2:]))])
    elif args[:1] == ["html"]:
        print(as_html(notes))
    else:
        print(as_text(notes))
'''
PLUGIN = '''
"""Loaded by name from the user's configuration: paperclip.plugins.markdown"""

from paperclip.app import load


def export():
    return "\\n".join(f"## {note.title}\\n\\n{note.body}\\n" for note in load())
'''
TESTS = """
import importlib

import pytest

from paperclip import app


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPERCLIP", str(tmp_path))


def test_a_note_is_listed(capsys):
    app.main(["add", "milk", "two", "bottles"])
    app.main([])
    assert capsys.readouterr().out == "- milk\\n"


def test_html_is_escaped(capsys):
    app.main(["add", "<b>"])
    app.main(["html"])
    assert "&lt;b&gt;" in capsys.readouterr().out


def test_plugins_still_load():
    app.main(["add", "milk", "two"])
    plugin = importlib.import_module("paperclip.plugins.markdown")
    assert plugin.export() == "## milk\\n\\ntwo\\n"
"""
STORAGE = '''
"""Where notes are kept."""

import json
import os
from dataclasses import asdict

from paperclip.app import Note


def folder():
    return os.environ.get("PAPERCLIP", os.path.expanduser("~/.paperclip"))


def load():
    path = os.path.join(folder(), "notes.json")
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [Note(**each) for each in json.load(file)]


def save(notes):
    os.makedirs(folder(), exist_ok=True)
    path = os.path.join(folder(), "notes.json")
    with open(path + ".new", "w") as file:
        json.dump([asdict(note) for note in notes], file)
    os.replace(path + ".new", path)
'''
MODELS = '''
"""What a note is."""

from dataclasses import dataclass


@dataclass
class Note:
    title: str
    body: str
    pinned: bool = False
'''
RENDER = '''
"""How notes are shown."""

import html


def as_text(notes):
    ordered = sorted(notes, key=lambda note: not note.pinned)
    return "\\n".join(f"{'*' if note.pinned else '-'} {note.title}" for note in ordered)


def as_html(notes):
    items = "".join(f"<li><b>{html.escape(n.title)}</b> {html.escape(n.body)}</li>" for n in notes)
    return f"<ul>{items}</ul>"
'''
ON_DISK = APP[APP.index("def folder") : APP.index("def as_text")]
SHOWN = APP[APP.index("def as_text") : APP.index("def main")]
NOTE = APP[APP.index("@dataclass\n") : APP.index("def folder")]

SCENARIO = Scenario(
    project="paperclip",
    began="2026-03-09T15:05:00",
    first_commit="paperclip",
    files={
        "paperclip/__init__.py": "",
        "paperclip/app.py": APP,
        "paperclip/plugins/__init__.py": "",
        "paperclip/plugins/markdown.py": PLUGIN,
        "tests/test_app.py": TESTS,
        ".gitignore": "__pycache__/\n.pytest_cache/\n.hypothesis/\n",
    },
    turns=(
        turn(
            "app.py has become a bit of a kitchen sink. First step: move everthing that touches the disk into a module "
            "of its own. no change in behaviour pls",
            read(f"{ROOT}/paperclip/app.py"),
            bash(
                "python -m pytest -q 2>&1 | tail -5; wc -l paperclip/*.py",
                "Baseline before touching anything",
            ),
            write(f"{ROOT}/paperclip/storage.py", STORAGE.lstrip()),
            edit(f"{ROOT}/paperclip/app.py", ON_DISK, ""),
            edit(
                f"{ROOT}/paperclip/app.py",
                "from dataclasses import asdict, dataclass\n",
                "from dataclasses import dataclass\n\nfrom paperclip.storage import load, save\n",
            ),
            bash("python -m pytest -q", "Run the tests"),
            write(f"{ROOT}/paperclip/models.py", MODELS.lstrip()),
            edit(f"{ROOT}/paperclip/app.py", NOTE, ""),
            edit(
                f"{ROOT}/paperclip/app.py",
                "from dataclasses import dataclass\n\nfrom paperclip.storage",
                "\nfrom paperclip.models import Note\nfrom paperclip.storage",
            ),
            edit(
                f"{ROOT}/paperclip/storage.py",
                "from paperclip.app import Note",
                "from paperclip.models import Note",
            ),
            bash("python -m pytest -q && python -m ruff check paperclip", "Run the tests and the linter"),
            edit(f"{ROOT}/paperclip/app.py", "import json\nimport os\nimport sys", "import sys"),
            bash("python -m pytest -q", "Run the tests"),
            say(
                "Loading and saving live in `paperclip/storage.py` now. `Note` had to move to `models.py`, otherwise app and "
                "storage would import each other. Same three tests, all green. Not committed yet, I suppose you want "
                "to see the rendering moved as well."
            ),
        ),
        compact(
            "1. Primary request: split paperclip/app.py without changing behaviour; disk access first.\n"
            "2. Done: paperclip/storage.py (folder, load, save) and paperclip/models.py (Note); app.py imports from both.\n"
            "3. Errors: circular import between app and storage, solved by models.py.\n"
            "4. Pending: rendering (as_text, as_html) is still in app.py; nothing is committed."
        ),
        turn(
            "right, now the rendering too. and get rid of the leftovers in app.py, it should only be the command line",
            read(f"{ROOT}/paperclip/app.py"),
            write(f"{ROOT}/paperclip/render.py", RENDER.lstrip()),
            edit(f"{ROOT}/paperclip/app.py", SHOWN, ""),
            edit(
                f"{ROOT}/paperclip/app.py",
                "import html\nimport sys\n\nfrom paperclip.models import Note\nfrom paperclip.storage import load, save\n",
                "import sys\n\nfrom paperclip import render, storage\nfrom paperclip.models import Note\n",
            ),
            edit(f"{ROOT}/paperclip/app.py", "notes = load()", "notes = storage.load()"),
            edit(f"{ROOT}/paperclip/app.py", "        save([", "        storage.save(["),
            edit(f"{ROOT}/paperclip/app.py", "print(as_", "print(render.as_", everywhere=True),
            bash("python -m pytest -q 2>&1 | tail -20", "Run the tests"),
            edit(
                f"{ROOT}/paperclip/app.py",
                "from paperclip.models import Note\n",
                "from paperclip.models import Note\nfrom paperclip.storage import load, save  # noqa: F401  for plugins\n",
            ),
            bash("python -m pytest -q", "Run the tests"),
            bash(
                "git add -A && git diff --cached --stat && git commit -q -m 'Split app.py into models, storage and render'"
            ),
            say(
                "app.py is down to `main()`; rendering is in `paperclip/render.py`. Three tests, green, committed.\n\n"
                "One thing I did not remove: `app.py` still re-exports `load` and `save`. Plugins are loaded by name from "
                "the user's configuration and import them from `paperclip.app`, so dropping the names would break plugins "
                "we can't see. I'd remove them in the next major version, with a note in the changelog."
            ),
        ),
        turn(
            "agreed, keep them until 2.0",
            say("Good, they stay until 2.0 then."),
        ),
    ),
)
