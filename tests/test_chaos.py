"""`make chaos` in short: the same kills, load and fuzz, fewer of them; and that it sees what it looks for.

What a session that ended leaves running is shown by tests/end_to_end/test_hooks_acceptance.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chaos import leftovers

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow


def chaos(folder: Path, *options: str, before: str = "") -> dict[str, Any]:
    """In a process of its own, because it forks; `before` is done to backstory first."""
    program = f"import sys\n{before}\nfrom chaos.__main__ import main\nsys.exit(main())"
    paths = f"{REPOSITORY}/src:{REPOSITORY}/bench"
    ran = subprocess.run(
        [sys.executable, "-c", program, "--dir", str(folder), "--json", "-", *options],
        env={**os.environ, "BACKSTORY_CHAOS": "short", "PYTHONPATH": paths},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not ran.stderr
    assert ran.returncode in (0, 1)  # 1: something was lost, or the machine is too busy
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_what_is_killed_overrun_or_fed_with_nonsense_loses_nothing(tmp_path: Path) -> None:
    found = chaos(tmp_path)

    assert [row["work"] for row in found["kills"]] == [
        "hook.sh",
        "drain",
        "worker",
        "backstory add",
        "memory_add",
        "migration",
        "backup",
        "CLAUDE.md",
        "docmem",
    ]
    for row in found["kills"]:
        assert (row["lost"], row["twice"], row["notes"]) == (0, 0, []), row
        assert row["kills"] > 0, "none came amid the work"
    assert sum(row["acknowledged"] for row in found["kills"]) > 300
    for row in found["load"]:
        assert (row["lost"], row["twice"], row["notes"]) == (0, 0, []), row
        assert row["events"] > 0 and row["ratio"] > 0, row
    assert len(found["fuzz"]) == 6
    for row in found["fuzz"]:
        assert (row["crashes"], row["slow"], row["notes"]) == (0, 0, []), row
        assert row["inputs"] >= 200


@pytest.mark.client
def test_a_session_whose_client_is_killed_leaves_nothing_running(tmp_path: Path) -> None:
    row = leftovers.run(tmp_path, 1, lambda _: None, [leftovers.killed_alone])
    assert row.seen >= 3, "hooks and servers were there"
    assert (row.killed, row.processes, row.ports, row.notes) == (1, 0, 0, [])


# Each is killed at work on a backstory that does one thing wrong.
SPOILT = """
import time
from backstory import shell
from backstory.capture import spool
from backstory.claude_md.write import writer
from backstory.intake import note
from backstory.store import events
from chaos import fuzz, kills

def spoilt(kill, *faults):
    def run(folder, wanted, seed):
        real = [(place, name, getattr(place, name)) for place, name, _ in faults]
        for place, name, wrong in faults:
            setattr(place, name, wrong)
        try:
            return kill(folder, 6, seed)
        finally:
            for place, name, right in real:
                setattr(place, name, right)
    run.__name__ = f"{kill.__name__}-{len(rows)}"
    rows.append((run, 1))

read, remove, transaction = spool.read, spool.remove, note.transaction

def read_and_remove(folder, name):
    raw = read(folder, name)
    remove(folder, name)
    return raw

class NeverCommitted(transaction):
    def __exit__(self, kind, error, trace):
        super().__exit__(kind, error, trace) if kind else None

def in_place(made, path):
    with open(made, "rb") as new, open(path, "r+b") as old:
        text = new.read()
        for at in range(0, len(text), 500):
            old.seek(at)
            old.write(text[at : at + 500])
            old.flush()
            time.sleep(0.0005)
        old.truncate(len(text))
    return True

rows = []
spoilt(kills.drains, (spool, "read", read_and_remove))
spoilt(kills.drains, (spool, "remove", lambda *_: None), (events, "first_time", lambda *_: True))
spoilt(kills.notes, (note, "transaction", NeverCommitted))
spoilt(kills.claude_files, (writer, "_exchange", in_place))
kills.ROWS = rows
fuzz.TARGETS = {name: fuzz.TARGETS[name] for name in ("shell reader", "chunker")}

read_command = shell.read
def trips(command):
    if "EOF" in command:
        raise IndexError
    return read_command(command)
shell.read = trips
"""


def test_a_backstory_that_loses_doubles_tears_or_trips_over_something_is_seen(tmp_path: Path) -> None:
    found = chaos(tmp_path, "--parts", "kills", "fuzz", before=SPOILT)
    deletes_before_its_commit, knows_no_event, says_an_id_without_a_commit, writes_in_place = found["kills"]

    assert deletes_before_its_commit["lost"] > 0
    assert knows_no_event["twice"] > 0
    assert says_an_id_without_a_commit["lost"] > 0
    assert (
        "lost: a whole file" in writes_in_place["notes"]
        or "lost: a person's text" in writes_in_place["notes"]
    )
    assert [row["target"] for row in found["fuzz"] if row["crashes"]] == ["shell reader"]
