"""Sections after a lost store and kills, and with several processes at once."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backstory import paths
from backstory.claude_md.write import sections, writer
from backstory.errors import Conflict
from backstory.safety.clean import clean
from backstory.store import projects
from backstory.store.file import backup, recovery
from backstory.store.file.connection import connect
from tests.conftest import REPOSITORY
from tests.helpers.claude_md_project import TEMPLATE
from tests.helpers.managed_file import HOSTILE, NOW, Desk

pytestmark = pytest.mark.slow

SOURCE = str(REPOSITORY / "src")


# --- a lost store, kills, several processes -----------------------------------------------------------------


def test_to_a_new_store_our_sections_are_ours_and_a_persons_are_theirs(desk: Desk, tmp_path: Path) -> None:
    desk.put_many({"patterns": "Tests.", "build-commands": "make"})
    desk.write("make all", "build-commands")
    with closing(connect(str(tmp_path / "new" / "backstory.db"))) as db:
        there = Desk(db, tmp_path / "new", desk.file)
        assert there.facts() == ("program", False, None)
        assert there.put_many({"patterns": "Tests!", "build-commands": "make it"}) == {
            "patterns": "written",
            "build-commands": "offered",
        }
        assert (there.body(), there.body("build-commands")) == ("Tests!", "make all")
        assert there.put("Prose.") == "written"


@pytest.fixture
def stored(desk: Desk) -> Iterator[Desk]:
    """With its store in the data folder, and a backup of it from before anything was written."""
    with closing(connect(str(desk.data / "backstory.db"))) as db:
        projects.ensure(db, paths.place(str(desk.file.parent)), NOW)
        backup.make(str(desk.data), NOW)
        there = Desk(db, desk.data, desk.file)
        there.put("Ours.")
        there.put("make", "build-commands", author="program")
        there.write("make all", "build-commands")
        assert there.put("make it", "build-commands", author="program") == "offered"
    yield there
    there.db.close()


def damage(desk: Desk, table: str | None) -> None:
    """Spoil the first page of a table, or of the whole database; then it is recovered."""
    path = desk.data / "backstory.db"
    with closing(sqlite3.connect(path)) as db:
        size = db.execute("PRAGMA page_size").fetchone()[0]
        page = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    with path.open("r+b") as file:
        file.seek((page[0] - 1) * size if page else 0)
        file.write(os.urandom(size))
    assert recovery.verify(str(desk.data), NOW) is not None
    desk.db = connect(str(path))


@pytest.mark.parametrize("table", [None, "memories", "claude_files", "claude_sections", "claude_texts"])
def test_whatever_is_damaged_our_last_text_is_ours_and_a_persons_is_theirs(
    stored: Desk, table: str | None
) -> None:
    damage(stored, table)
    assert stored.facts() == ("model", False, None)
    assert stored.state("build-commands").is_edited
    if table in ("memories", "claude_texts"):  # else it is in no backup, and is made again
        assert stored.state("build-commands").offered == "make it"
    assert stored.put("make me", "build-commands", author="program") == "offered"
    assert stored.body("build-commands") == "make all"
    assert stored.put("New.") == "written"


def test_what_was_written_after_a_backup_that_is_restored_is_still_ours(stored: Desk) -> None:
    recovery.restore(str(stored.data), backup.listed(str(stored.data))[0].path, NOW)
    stored.db = connect(str(stored.data / "backstory.db"))
    assert stored.facts() == ("model", False, None)
    assert stored.put("New.") == "written"
    assert stored.put("make it", "build-commands", author="program") == "offered"
    assert stored.body("build-commands") == "make all"


DYING = """
import json, os, signal, sys
sys.path.insert(0, sys.argv[1])
from contextlib import closing
from backstory.claude_md.write import managed, sections, writer
from backstory.store.file.connection import connect

writer.SETTLED = 0.001  # whoever edits the file here has done so
path, data = sys.argv[2:4]
HARMLESS = {"stat", "lstat", "fstat", "listdir", "access", "fspath", "getpid", "read", "readline", "readlink",
            "fetchone", "fetchall", "scandir"}

def put(texts):
    with closing(connect(os.path.join(data, "backstory.db"))) as db:
        return managed.put_many(db, data, path, texts, author="program", now=0)

def accept():
    with closing(connect(os.path.join(data, "backstory.db"))) as db:
        managed.accept(db, data, path, "patterns", 0)

def states():
    with closing(connect(os.path.join(data, "backstory.db"))) as db:
        found = managed.state(db, path)
    return {one.name: [one.body, one.is_edited, one.offered] for one in found.sections}

def die_before(step):
    # Every call into the system is one into C: of a function in posix or fcntl, of a file or of SQLite.
    seen = 0
    def watch(frame, event, call):
        nonlocal seen
        if event == "c_call" and call.__name__ not in HARMLESS:
            origin = getattr(call, "__module__", None) or type(call.__self__).__module__
            seen += origin in ("posix", "fcntl", "_io", "sqlite3")
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(watch)

def forked(run, step):
    child = os.fork()
    if not child:
        die_before(step)
        run()
        sys.setprofile(None)
        os._exit(0)
    return os.waitpid(child, 0)[1]

def edit(body):
    with open(path, "rb") as file:
        text = file.read()
    found = next(one for one in sections.parse(text).sections if one.name == "patterns")
    with open(path, "wb") as file:
        file.write(text[: found.body_start] + body.encode() + b"\\n" + text[found.body_stop :])

step, rounds, status = 0, [], 1
while status:
    step += 1
    ROUND
print(json.dumps(rounds))
"""

WRITING = """
    before = put({"patterns": f"before {step}", "build-commands": f"make before {step}"})
    status = forked(lambda: put({"patterns": f"after {step}", "build-commands": f"make after {step}"}), step)
    rounds.append([status, before, states(), put({"patterns": f"mended {step}"}), states()])
"""

OFFERING = """
    put({"patterns": f"before {step}"})
    edit(f"by hand {step}")
    status = forked(lambda: put({"patterns": f"after {step}"}), step)
    was = states()
    edit(f"before {step}")
    rounds.append([status, was, put({"patterns": f"mended {step}"}), states()])
"""

ACCEPTING = """
    put({"patterns": f"before {step}"})
    edit(f"by hand {step}")
    put({"patterns": f"after {step}"})
    status = forked(accept, step)
    was = states()
    with open(path, "rb") as file:
        text = file.read()
    if b"by hand" in text:
        edit(f"before {step}")
    rounds.append([status, was, put({"patterns": f"mended {step}"})])
"""


def killed(desk: Desk, round_: str) -> list[list[object]]:
    program = DYING.replace("    ROUND\n", round_.strip("\n") + "\n")
    ran = subprocess.run(
        [sys.executable, "-c", program, SOURCE, str(desk.file), str(desk.data)],
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    rounds: list[list[object]] = json.loads(ran.stdout)
    statuses = [each[0] for each in rounds]
    assert statuses == [signal.SIGKILL] * (len(rounds) - 1) + [0]
    return rounds


def test_after_a_kill_at_any_step_our_text_is_ours(desk: Desk) -> None:
    rounds = killed(desk, WRITING)
    old, new = set[int](), set[int]()
    for step, (_, before, after, mended, then) in enumerate(rounds, 1):
        assert before == {"patterns": "written", "build-commands": "written"}
        assert isinstance(after, dict)
        body = after["patterns"][0]
        assert body in (f"before {step}", f"after {step}")
        assert after["build-commands"] == [f"make {body}", False, None]
        assert after["patterns"][1:] == [False, None]
        assert mended == {"patterns": "written"}
        assert isinstance(then, dict)
        assert then["patterns"] == [f"mended {step}", False, None]
        (new if body.startswith("after") else old).add(step)
    assert desk.file.read_text().endswith("<!-- MANUAL -->\nMine.\n<!-- END MANUAL -->\n")
    # The kills were before the file was written, and after it, before the store was.
    assert len(old) > 20
    assert len(new) > 5


def test_after_a_kill_at_any_step_a_persons_text_is_still_there(desk: Desk) -> None:
    offers = []
    for step, (_, was, mended, then) in enumerate(killed(desk, OFFERING), 1):
        assert isinstance(was, dict)
        body, is_edited, offered = was["patterns"]
        assert (body, is_edited) == (f"by hand {step}", True)
        assert offered in (None, f"after {step}")
        offers.append(offered)
        assert mended == {"patterns": "written"}
        assert isinstance(then, dict)
        assert then["patterns"] == [f"mended {step}", False, None]
    assert offers[0] is None
    assert offers[-1] is not None


def test_an_offer_whose_taking_was_killed_is_still_there_or_written(desk: Desk) -> None:
    bodies = set()
    for step, (_, was, mended) in enumerate(killed(desk, ACCEPTING), 1):
        assert isinstance(was, dict)
        assert was["patterns"] in (
            [f"by hand {step}", True, f"after {step}"],
            [f"after {step}", False, None],
        )
        bodies.add(was["patterns"][0].split()[0])
        assert mended == {"patterns": "written"}
    assert bodies == {"by", "after"}


RACING = """
import os, sys
sys.path.insert(0, sys.argv[1])
from contextlib import closing
from backstory.claude_md.write import managed
from backstory.store.file.connection import connect

path, data, who, name = sys.argv[2:6]
for number in range(15):
    with closing(connect(os.path.join(data, "backstory.db"))) as db:
        texts = {name: f"{who} {number}"}
        print(managed.put_many(db, data, path, texts, author=who, now=number)[name])
"""


def race(desk: Desk, *racers: tuple[str, str]) -> list[list[str]]:
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", RACING, SOURCE, str(desk.file), str(desk.data), who, name],
            stdout=subprocess.PIPE,
            text=True,
        )
        for who, name in racers
    ]
    said = [program.communicate(timeout=120)[0].split() for program in programs]
    assert [program.returncode for program in programs] == [0] * len(programs)
    return said


def test_two_processes_that_write_one_section_take_no_text_of_the_other_for_an_edit(desk: Desk) -> None:
    computed, set_ = race(desk, ("program", "patterns"), ("model", "patterns"))
    assert set_ == ["written"] * 15
    assert re.fullmatch("(?:written )*(?:skipped )*", " ".join([*computed, ""]))
    with closing(connect(str(desk.data / "backstory.db"))) as db:
        there = Desk(db, desk.data, desk.file)
        assert there.body() == "model 14"
        assert there.facts() == ("model", False, None)
        assert there.put("New.") == "written"
    assert TEMPLATE.partition("<!-- MANUAL")[2] in desk.file.read_text()


def test_two_processes_that_write_two_sections_both_get_there(desk: Desk) -> None:
    for said in race(desk, ("program", "patterns"), ("model", "build-commands")):
        assert said == ["written"] * 15
    assert (desk.body(), desk.body("build-commands")) == ("program 14", "model 14")


def test_nobody_waits_for_the_store_with_the_file_in_hand(desk: Desk) -> None:
    """A docmem server that ends has half a second to take its views out of the file."""
    outcomes = []

    def views() -> list[tuple[str, str]]:
        return [("ab12cd34", f"shown at {time.monotonic()}")]

    def put() -> None:
        with closing(connect(str(desk.data / "backstory.db"))) as db:
            outcomes.append(Desk(db, desk.data, desk.file).put("Ours."))

    with closing(connect(str(desk.data / "backstory.db"))) as busy:
        busy.execute("BEGIN IMMEDIATE")
        waiting = threading.Thread(target=put)
        waiting.start()
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            assert writer.put_views(str(desk.file.parent), str(desk.data), views(), NOW, seconds=0.2)
            time.sleep(0.05)
        assert outcomes == []
        busy.execute("ROLLBACK")
        waiting.join(timeout=30)
    assert outcomes == ["written"]
    assert b"shown at" in desk.file.read_bytes()


def test_a_file_that_is_open_for_writing_is_left_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PATIENCE", 0.1)
    with desk.file.open("a"), pytest.raises(Conflict, match="open for writing"):
        desk.put("New.")
    assert desk.put("New.") == "written"


# --- anything, in any order ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_no_text_of_a_persons_goes_but_by_their_own_decision(desk: Desk, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - steps, not secrets
    bodies = [
        "one",
        "two\n\n- three",
        "two\n\n- four",
        "```\ncode\n```",
        "  indented",
        "CRLF\r\nhere",
        *HOSTILE,
    ]
    ours: list[str] = [""]  # the last one is what we wrote last
    rest = desk.file.read_text()

    def by_hand() -> None:
        desk.write(f"by hand {chance.random()}")

    def added() -> None:
        desk.write(f"{desk.body()}\n\nby hand {chance.random()}")

    def back() -> None:
        desk.write(chance.choice(ours))

    def converted() -> None:
        text = desk.file.read_bytes().replace(b"\r\n", b"\n")
        desk.file.write_bytes(text.replace(b"\n", chance.choice([b"\n", b"\r\n", b" \n"])))

    def put() -> None:
        before, text, raw = desk.state(), chance.choice(bodies), desk.file.read_bytes()
        author = chance.choice(["program", "model"])
        outcome = desk.put(text, author=author)
        new = sections.canonical(sections.harmless(clean(text)))
        if before.is_edited and outcome in ("offered", "kept"):
            assert desk.file.read_bytes() == raw
        elif before.is_edited:
            kept = [line for line in before.body.split("\n") if "by hand" in line]
            assert all(line in desk.body() for line in kept)
            if author == "program" or outcome == "written":
                ours.append(new)
        elif (before.author, author) == ("model", "program"):
            assert outcome in ("skipped", "unchanged")
            assert desk.file.read_bytes() == raw
        else:
            assert outcome in ("written", "unchanged")
            assert sections.canonical(desk.body()) == new
            ours.append(new)

    def accept() -> None:
        if desk.state().offered is not None:
            desk.accept()
            ours.append(sections.canonical(desk.body()))

    def keep() -> None:
        if desk.state().offered is not None:
            desk.keep()

    steps: list[Callable[[], None]] = [put, put, put, put, by_hand, added, back, converted, accept, keep]
    for _ in range(60):
        chance.choice(steps)()
        one = desk.state()
        assert one.is_edited == (bool(one.body) and sections.canonical(one.body) != ours[-1])
    desk.write("")
    lines = desk.file.read_text().splitlines()
    plain = "\n".join(line.rstrip() for line in lines if "backstory: by" not in line) + "\n"
    assert plain.replace("patterns -->\n\n", "patterns -->\n") == rest
