"""The writer is killed, or several write at once. These run in processes of their own."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from backstory.claude_md.write import writer
from backstory.claude_md.write.dynamic import END, HEADER, section
from tests.helpers.claude_md_writer import NOW, ONE, SOURCE, TEXT, Show, backups, on_linux, others

pytestmark = pytest.mark.slow

DYING = """
import json, os, signal, sys
sys.path.insert(0, sys.argv[1])
from backstory.claude_md.write import writer

writer.SETTLED = 0.001  # whoever edits the file here has done so
folder, data = sys.argv[2:4]
path = os.path.join(folder, "CLAUDE.md")
HARMLESS = {"stat", "lstat", "fstat", "listdir", "access", "fspath", "getpid", "read", "readline", "readlink"}

def show(text):
    assert writer.put_views(folder, data, [("ab12cd34", text)], 0)

def die_before(step):
    # Every call into the system is one into C: of a function in posix or fcntl, or of an open file.
    seen = 0
    def watch(frame, event, call):
        nonlocal seen
        if event == "c_call" and call.__name__ not in HARMLESS:
            origin = getattr(call, "__module__", None) or type(call.__self__).__module__
            seen += origin in ("posix", "fcntl", "_io")
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(watch)

def forked(run):
    child = os.fork()
    if not child:
        run()
        os._exit(0)
    return os.waitpid(child, 0)[1]

def state():
    with open(path) as file:
        return {"text": file.read(), "files": os.listdir(folder)}

def dying():
    die_before(step)
    show("after")
    sys.setprofile(None)

step, rounds = 0, []
while not rounds or rounds[-1]["status"]:
    step += 1
    show("before")
    with open(path, "a") as file:
        file.write("a person, before step %d\\n" % step)
    before = state()
    status = forked(dying)
    after = state()
    show("mended")
    rounds.append({"status": status, "before": before, "after": after, "mended": state()})
print(json.dumps(rounds))
"""


def test_a_kill_at_any_step_leaves_the_old_file_or_the_new_one(file: Path, data: Path) -> None:
    file.write_bytes(b"")
    program = [sys.executable, "-c", DYING, SOURCE, str(file.parent), str(data)]
    ran = subprocess.run(program, capture_output=True, timeout=120, check=True)
    rounds = json.loads(ran.stdout)
    written = ""
    for step, each in enumerate(rounds, 1):
        assert each["status"] == (0 if step == len(rounds) else signal.SIGKILL)
        old = f"{written}\n{shown('before')}a person, before step {step}\n"
        written += f"a person, before step {step}\n"
        assert each["before"] == {"text": old, "files": ["CLAUDE.md"]}
        assert each["after"]["text"] in (old, f"{written}\n{shown('after')}")
        assert len(each["after"]["files"]) <= 2
        assert each["mended"] == {"text": f"{written}\n{shown('mended')}", "files": ["CLAUDE.md"]}
    # The kills were where it matters: before and after the rename, and with a file beside it.
    assert len(rounds) > 15
    assert len({shown("after") in each["after"]["text"] for each in rounds[:-1]}) == 2
    assert any(len(each["after"]["files"]) == 2 for each in rounds)


def shown(text: str) -> str:
    return section([("ab12cd34", text)]).decode()


SAVING = """
exchange, times = writer._exchange, []
def meanwhile(*files):
    if not times:
        with open(path + ".swp", "wb") as file:
            file.write(b"A person's version.\\n")
        os.rename(path + ".swp", path)
    times.append(files)
    if len(times) > int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
    return exchange(*files)
writer._exchange = meanwhile
show("text")
"""


@pytest.mark.parametrize("lives", [1, 9])
def test_a_version_that_is_saved_at_the_last_moment_is_not_lost(
    show: Show, file: Path, data: Path, lives: int
) -> None:
    """Between the last look at the file and its replacement; with one life, the writer is killed before it
    can undo that."""
    program = [sys.executable, "-c", DYING.partition("step, rounds = ")[0] + SAVING, SOURCE]
    code = subprocess.run(
        [*program, str(file.parent), str(data), str(lives)], timeout=60, check=False
    ).returncode
    assert code == (0 if lives > 1 else -signal.SIGKILL)
    show(ONE)
    text = b"A person's version.\n"
    if lives > 1:
        assert file.read_bytes() == text + b"\n" + section(ONE)
    else:
        assert text in backups(data)
    assert others(file) == set()


def test_what_a_kill_has_left_beside_the_file_can_be_removed(show: Show, file: Path, data: Path) -> None:
    dying = DYING.partition("step, rounds = ")[0]
    dying += "writer._exchange = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\nshow('text')\n"
    program = [sys.executable, "-c", dying, SOURCE, str(file.parent), str(data)]
    assert subprocess.run(program, timeout=60, check=False).returncode == -signal.SIGKILL
    assert len(others(file)) == 1

    made = os.path.join(file.parent, others(file).pop())
    writer.remove_leftover(str(file.parent), str(data.parent / "another"), NOW)
    assert os.path.exists(made)
    writer.remove_leftover(str(file.parent), str(data), NOW)
    assert others(file) == set()
    assert file.read_bytes() == TEXT
    with writer.alone(str(file.parent), str(data), NOW):
        Path(made).write_bytes(b"somebody's")
        writer.remove_leftover(str(file.parent), str(data), NOW)
        assert Path(made).read_bytes() == b"somebody's"  # it is not a leftover while somebody writes
    assert show(ONE)
    writer.remove_leftover(str(file.parent), str(data), NOW)
    assert others(file) == set()


def test_without_a_leftover_nothing_is_made(project: str, data: Path) -> None:
    writer.remove_leftover(project, str(data), NOW)
    writer.remove_leftover(os.path.join(project, "gone"), str(data), NOW)
    assert not data.exists()


MAKING = """
def make():
    assert writer.rewrite(path, folder, data, lambda text: text + b"ours\\n", now=0, create=b"the first\\n")

def text():
    return open(path).read() if os.path.exists(path) else None

if sys.argv[4] == "link":
    writer._rename = lambda *_: False
step, rounds = 0, []
while not rounds or rounds[-1]["status"]:
    step += 1
    def dying():
        die_before(step)
        make()
        sys.setprofile(None)
    status = forked(dying)
    after = {"text": text(), "files": os.listdir(folder)}
    make()
    rounds.append({"status": status, "after": after, "mended": text(), "files": os.listdir(folder)})
    os.unlink(path)
print(json.dumps(rounds))
"""


@pytest.mark.parametrize("how", ["rename", "link"])
def test_a_kill_at_any_step_leaves_no_file_or_the_new_one(project: str, data: Path, how: str) -> None:
    program = [sys.executable, "-c", DYING.partition("step, rounds = ")[0] + MAKING, SOURCE]
    ran = subprocess.run([*program, project, str(data), how], capture_output=True, timeout=120, check=True)
    rounds = json.loads(ran.stdout)
    for step, each in enumerate(rounds, 1):
        assert each["status"] == (0 if step == len(rounds) else signal.SIGKILL)
        assert each["after"]["text"] in (None, "the first\nours\n")
        was_made = each["after"]["text"] is not None
        assert each["mended"] == "the first\n" + "ours\n" * (1 + was_made)
        assert each["files"] == ["CLAUDE.md"]
    assert len(rounds) > 5
    assert {each["after"]["text"] is None for each in rounds} == {True, False}
    assert any(len(each["after"]["files"]) == 2 for each in rounds) or how == "rename"
    assert set(backups(data)) <= {b"", b"the first\nours\n"}  # a leftover that is not noted may be anybody's


AT_ONCE = """
import sys, time
sys.path.insert(0, sys.argv[1])
from backstory.claude_md.write import writer

folder, data, name, at = sys.argv[2:]
time.sleep(max(0, float(at) - time.time()))
path, change = folder + "/CLAUDE.md", lambda text: text + name.encode() + b"\\n"
assert writer.rewrite(path, folder, data, change, now=0, create=b"the first\\n")
"""


def test_several_who_make_the_file_at_once_make_one(project: str, data: Path) -> None:
    names = ["a", "b", "c", "d"]
    at = str(time.time() + 0.5)
    makers = [
        subprocess.Popen([sys.executable, "-c", AT_ONCE, SOURCE, project, str(data), name, at])
        for name in names
    ]
    assert [one.wait(timeout=60) for one in makers] == [0] * 4
    found = Path(project, "CLAUDE.md").read_text().splitlines()
    assert found[0] == "the first"
    assert sorted(found[1:]) == names
    assert os.listdir(project) == ["CLAUDE.md"]


MANY = """
import sys, time
sys.path.insert(0, sys.argv[1])
from backstory.claude_md.write import writer

folder, data, name = sys.argv[2:]
for i in range(200):
    assert writer.put_views(folder, data, [(name, "%s %d\\n```\\n" % (name, i) * 50)], 0)
    time.sleep(0.002)
"""


def test_two_processes_with_two_hundred_writes_each_leave_the_file_intact(file: Path, data: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", MANY, SOURCE, str(file.parent), str(data), name])
        for name in ("aaaaaaaa", "bbbbbbbb")
    ]
    seen = [TEXT]
    while any(one.poll() is None for one in writers):
        time.sleep(0.002)
        text = file.read_bytes()
        if text != seen[-1]:
            seen.append(text)
            assert text.startswith(TEXT + b"\n" + HEADER + b"\n\n## ")
            assert text.endswith(b"\n" + END + b"\n")
            assert text.count(HEADER) == text.count(END) == 1
            assert len(set(re.findall(rb"[ab]{8} \d+", text))) == 1
    assert [one.wait() for one in writers] == [0, 0]
    assert others(file) == set()
    assert backups(data) == [TEXT]
    turns = [b"aaaaaaaa" in text for text in seen[1:]]
    assert sum(one != other for one, other in pairwise(turns)) > 3  # they took turns, and were seen to
    assert writer.put_views(str(file.parent), str(data), [], NOW)
    assert file.read_bytes() == TEXT


def test_no_version_of_a_person_is_lost_however_fast_they_save(
    show: Show, file: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second version comes out when ours comes in, the third when they change back."""
    versions = [b"the second\n", b"the third\n"]
    exchange = writer._exchange

    def meanwhile(one: str, other: str) -> bool:
        if versions:
            (file.parent / "saved").write_bytes(versions.pop(0))
            os.rename(file.parent / "saved", file)
        return exchange(one, other)

    monkeypatch.setattr(writer, "_exchange", meanwhile)
    show(ONE)
    assert file.read_bytes() == b"the second\n\n" + section(ONE)
    assert b"the third\n" in backups(data)
    assert others(file) == set()


def test_a_version_that_came_out_before_a_kill_is_kept_though_the_file_changed_since(
    show: Show, file: Path, data: Path
) -> None:
    show(ONE)
    Path(writer._beside(str(file), str(data))).write_bytes(b"a person's\n")
    file.write_bytes(b"newer\n")
    writer.remove_leftover(str(file.parent), str(data), NOW)
    assert backups(data)[-1] == b"a person's\n"
    assert others(file) == set()


def test_a_drive_that_gives_no_leases_is_written_all_the_same(
    show: Show, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = fcntl.fcntl

    def refuse(handle: int, what: int, how: int = 0) -> int:
        if what == getattr(fcntl, "F_SETLEASE", None):
            raise BlockingIOError
        return ask(handle, what, how)

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    show(ONE)
    assert file.read_bytes() == TEXT + b"\n" + section(ONE)
    assert others(file) == set()


WRITING = """
import select, sys
sys.path.insert(0, sys.argv[1])
from backstory.claude_md.write import writer
from backstory.errors import Conflict
number = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    number += 1
    if number == 2:
        print("writing", flush=True)
    try:
        writer.put_views(*sys.argv[2:], [("ab12cd34", f"text {number}")], 0)
    except Conflict:
        pass  # on a busy machine the file may not come to rest
"""


@on_linux
def test_a_person_who_saves_while_views_are_rewritten_without_a_pause_loses_nothing(
    file: Path, data: Path
) -> None:
    command = [sys.executable, "-c", WRITING, SOURCE, str(file.parent), str(data)]
    edits = 40
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writing:
        try:
            assert writing.stdout
            assert writing.stdout.readline() == b"writing\n"
            for number in range(edits):
                line = b"a person's edit %d\n" % number
                if number % 2:
                    with open(file, "ab") as opened:
                        opened.write(line)
                else:
                    saved = file.with_suffix(".swp")
                    saved.write_bytes(line + file.read_bytes())
                    os.rename(saved, file)
                time.sleep(0.03 + number % 7 / 200)
            writing.communicate(timeout=60)
            assert writing.returncode == 0
        finally:
            writing.kill()
    kept = re.findall(rb"^a person's edit (\d+)$", file.read_bytes(), re.MULTILINE)
    assert sorted(map(int, kept)) == list(range(edits))
