"""A disk that is full and a data folder on a read-only one, real ones: every command and tool says what is
wrong in one sentence with what to do next, what only reads goes on where it can, and hooks stay silent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backstory.store.file import disk
from tests.conftest import REPOSITORY
from tests.helpers.commands import BACKSTORY

pytestmark = pytest.mark.slow

HELPER = REPOSITORY / "tests" / "helpers" / "disks.py"
UNTOUCHED = {
    "backup list",
    "claude-md section get",
    "help",
    "reindex",
    "statusline",
    "uninstall",
}  # nothing of theirs is written
CHECKS = {"doctor"}
READ = {  # nothing in the store changes
    *("claude-md section accept", "claude-md section diff", "claude-md section list"),  # nothing is offered
    *("docmem expand", "docmem export", "docmem list", "docmem search", "docmem show", "docmem tree"),
    *(
        "docs list",
        "docs search",
        "docs show",
        "export",
        "list",
        "open",
        "projects list",
        "prune",
        "redact",
        "search",
    ),
    *("sessions", "show", "slash", "spend", "stats", "status", "timeline", "why", "claude-md status"),
}
WRITE = {
    *(
        "add",
        "backfill",
        "backup now",
        "backup restore",
        "claude-md section keep",
        "claude-md section set",
        "config",
    ),
    *(
        "deemphasize",
        "docmem delete",
        "docmem import",
        "docs ingest",
        "docs remove",
        "erase",
        "forget",
        "import",
    ),
    *(
        "init",
        "install",
        "projects attach",
        "projects delete",
        "projects merge",
        "projects rename",
    ),
    *("pause", "projects split", "reinforce", "resume", "restore", "supersede", "sync", "worker"),
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed here, and only root mounts without it")
    folder = tmp_path_factory.mktemp("disks")
    (folder / "home").mkdir()
    (folder / "project").mkdir()
    local = {"BACKSTORY_SYNTHESIZER": "local", "BACKSTORY_WORKER_IDLE_SECONDS": "0"}
    env = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), **local}
    command = ["unshare", "-rm", sys.executable, str(HELPER), str(folder), str(folder / "project")]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    if ran.stderr.startswith("unshare:"):
        pytest.skip(f"the kernel gives us no mount namespace: {ran.stderr.strip()}")
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    if "refused" in found:
        pytest.skip(f"the kernel lets us mount no tmpfs: {found['refused'].strip()}")
    data = str(folder / "disk" / "data")
    found["full"]["sentence"] = f"the disk is full: {data} takes no more; make room and try again"
    found["read-only"]["sentence"] = (
        f"{data} cannot be written (Read-only file system);"
        " make it writable, or set BACKSTORY_HOME to a folder of yours"
    )
    return found


@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_every_command_names_the_disk_and_says_what_to_do(kind: str, seen: dict[str, Any]) -> None:
    commands = seen[kind]["commands"]
    assert set(commands) == {*UNTOUCHED, *CHECKS, *READ, *WRITE}
    told = [3, "", f"backstory: {seen[kind]['sentence']}\n"]
    expected = dict.fromkeys(WRITE | (READ if kind == "full" else set()), told)
    assert {name: commands[name] for name in expected} == expected
    assert [name for name in commands if "Traceback" in commands[name][2]] == []
    assert {commands[name][0] for name in UNTOUCHED} <= {0, 1}


def test_what_only_reads_answers_from_a_read_only_folder(seen: dict[str, Any]) -> None:
    commands = seen["read-only"]["commands"]
    assert {name: commands[name][0] for name in READ if commands[name][0] not in (0, 1)} == {}
    for name in ("search", "list", "show", "timeline", "docs search", "docmem tree"):
        assert "walrus" in commands[name][1]
    assert "Command: make · Output: fine" in commands["sessions"][1]


@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_doctor_says_it_of_every_part_that_needs_the_folder(kind: str, seen: dict[str, Any]) -> None:
    code, out, err = seen[kind]["commands"]["doctor"]
    assert code == 1 and err.startswith("backstory: to mend: ")
    for part, why in (("canary", seen[kind]["sentence"]), ("database", "for the reason of canary above")):
        (line,) = [line for line in out.splitlines() if line.startswith(f"✗ {part} ")]
        assert why in line
    assert "Error" not in out


@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_tools_answer_with_the_sentence_and_hooks_are_silent(kind: str, seen: dict[str, Any]) -> None:
    tools, sentence = seen[kind]["tools"], seen[kind]["sentence"]
    for name in ("memory_add", "docmem_create", "docmem_view"):
        assert tools[name].endswith(sentence)
    for name, answer in (("memory_search", "walrus"), ("docmem_list", "guide")):
        assert (answer if kind == "read-only" else sentence) in tools[name]
    assert set(map(tuple, seen[kind]["hooks"].values())) == {(0, "", "")}


def test_what_cannot_be_printed_is_not_taken_for_a_full_data_folder(tmp_path: Path) -> None:
    ran = subprocess.run(
        ["sh", "-c", f"{BACKSTORY} --help >/dev/full"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (3, "backstory: [Errno 28] No space left on device\n")


def test_a_quota_that_is_used_up_is_a_full_disk(tmp_path: Path) -> None:
    error = OSError(122, os.strerror(122), str(tmp_path / "data" / "x"))
    assert disk.unusable(error, str(tmp_path / "data")) == (
        f"the disk is full: {tmp_path / 'data'} takes no more; make room and try again"
    )
