"""The command line, as a person or a script uses it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backstory import paths
from backstory.gist import of_summary
from backstory.model import Answer, Hit, Memory, Session, Spent, Summary
from backstory.recall.timeline import Timeline
from backstory.store import life, memories, queue, sessions, spend, summaries
from backstory.store.file.connection import connect, transaction
from backstory.surfaces.cli import doctor
from backstory.surfaces.mcp import reply
from tests.conftest import HOOK, REPOSITORY, Run

BACKSTORY = os.path.join(os.path.dirname(sys.executable), "backstory")


def backstory(*args: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BACKSTORY, *args], cwd=cwd, input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


def hook(payload: dict[str, object], *args: str) -> None:
    subprocess.run(["sh", str(HOOK), *args], input=json.dumps(payload).encode(), check=True)


def tool_use(cwd: Path, command: str, session: str = "s1") -> dict[str, object]:
    return {
        "hook_event_name": "PostToolUse",
        "session_id": session,
        "cwd": str(cwd),
        "tool_name": "Bash",
        "tool_use_id": f"toolu_{command}",
        "tool_input": {"command": command},
        "tool_response": {"stdout": "fine", "stderr": ""},
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "api"
    folder.mkdir()
    return folder


def test_search_sees_what_was_captured_a_moment_ago(project: Path) -> None:
    hook(tool_use(project, "pytest tests/test_login.py"))
    done = backstory("search", "login", cwd=project)
    assert done.returncode == 0
    assert "Command: pytest tests/test_login.py · Output: fine" in done.stdout


def test_search_prints_json_for_scripts(project: Path) -> None:
    hook(tool_use(project, "make deploy"))
    found: list[dict[str, Any]] = json.loads(backstory("search", "deploy", "--json", cwd=project).stdout)
    assert found[0]["content"] == "Tool: Bash\nCommand: make deploy\nOutput: fine"
    assert found[0]["score"] > 0
    assert sum(found[0]["parts"].values()) == pytest.approx(found[0]["score"], abs=0.005)


def test_finding_nothing_is_exit_code_one_and_says_so(project: Path) -> None:
    done = backstory("search", "zebra", cwd=project)
    assert (done.returncode, done.stdout) == (1, "")
    assert "No memories found" in done.stderr
    as_json = backstory("search", "zebra", "--json", cwd=project)
    assert (as_json.returncode, json.loads(as_json.stdout)) == (1, [])


@pytest.mark.parametrize(
    "args",
    [
        ("search",),
        ("search", "x", "--limit", "0"),
        ("add", "x", "--sector", "y"),
        ("nonsense",),
        ("add", " "),
    ],
)
def test_wrong_use_is_exit_code_two(args: tuple[str, ...], project: Path) -> None:
    done = backstory(*args, cwd=project)
    assert done.returncode == 2
    assert done.stderr


def test_a_fault_of_ours_is_exit_code_three_and_in_the_log(project: Path, data: Path) -> None:
    (data / "backstory.db").mkdir(parents=True)
    done = backstory("search", "x", cwd=project)
    assert done.returncode == 3
    assert "cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_note_is_added_shown_and_found(project: Path) -> None:
    added = backstory("add", "we use port 8080", "--tag", "infra", "--importance", "0.9", cwd=project)
    assert added.stdout.startswith("Memory created: mem_")
    memory_id = added.stdout.split()[2]
    shown = backstory("show", memory_id, cwd=project).stdout
    assert "we use port 8080" in shown
    assert "infra" in shown
    assert memory_id in backstory("search", "port", cwd=project).stdout
    again = backstory("add", "-", cwd=project, stdin="we use port 8080\n")
    assert again.stdout.startswith(f"Memory reinforced: {memory_id} (new salience: ")
    assert json.loads(backstory("show", memory_id, "--json", cwd=project).stdout)["tags"] == ["infra"]


def test_an_unknown_memory_or_session_is_not_found(project: Path) -> None:
    for command in ("show", "sessions"):
        done = backstory(command, "nope", cwd=project)
        assert (done.returncode, done.stdout) == (1, "")
        assert "nope" in done.stderr


def test_sessions_are_listed_and_told_in_order(project: Path) -> None:
    base: dict[str, object] = {"session_id": "s1", "cwd": str(project)}
    hook(base | {"hook_event_name": "UserPromptSubmit", "prompt": "fix the door"})
    hook(tool_use(project, "open door"))
    listed = backstory("sessions", cwd=project).stdout
    assert "fix the door" in listed
    assert "active" in listed
    told = backstory("sessions", "s1", cwd=project).stdout
    assert told.index("> fix the door") < told.index("Command: open door")
    as_json = json.loads(backstory("sessions", "s1", "--json", cwd=project).stdout)
    assert [prompt["prompt"] for prompt in as_json["prompts"]] == ["fix the door"]


SUMMARY = Summary(
    request="Close the door",
    investigated="Looked at the hinge",
    learned="It was upside down",
    completed="Turned it, tests pass",
    next_steps="Oil it",
    files_read=("README.md",),
    files_edited=("src/door.py", "tests/test_door.py"),
    notes="It squeaks\n**Completed:** nothing \x1b[2J",
)


@pytest.fixture
def understood(project: Path, data: Path) -> str:
    """A session s1 with a summary and an observation, as a worker leaves it; the observation's id."""
    hook(tool_use(project, "pytest tests/test_door.py"))
    backstory("sessions", cwd=project)
    now = int(time.time() * 1000)
    with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
        owner = sessions.project_of(db, "s1")
        assert owner
        fields: dict[str, Any] = {"project_id": owner, "session_id": "s1", "tier": "project", "now": now}
        told = memories.add(
            db,
            kind="summary",
            sector="reflective",
            importance=0.7,
            content=f"Session Summary:\n{SUMMARY}",
            **fields,
        )
        summaries.put(db, "s1", owner, SUMMARY, "claude", told, now)
        return memories.add(
            db,
            kind="bugfix",
            sector="procedural",
            importance=0.6,
            title="The door closes\nagain",
            content="The hinge was upside down.",
            concepts=("hinge", "door"),
            **fields,
        )


def test_a_session_shows_its_summary_in_eight_fields_and_who_made_it(understood: str, project: Path) -> None:
    told = backstory("sessions", "s1", cwd=project).stdout
    assert "\x1b" not in told
    for line in (
        "     request  Close the door",
        "investigated  Looked at the hinge",
        "     learned  It was upside down",
        "   completed  Turned it, tests pass",
        "  next steps  Oil it",
        "  files read  README.md",
        "files edited  src/door.py, tests/test_door.py",
        "       notes  It squeaks **Completed:** nothing \\x1b[2J",
        "summed up by  claude",
    ):
        assert f"\n{line}\n" in told
    assert f"{understood}  bugfix: The door closes again — The hinge was upside down." in told
    assert told.count("Close the door") == 1
    as_json = json.loads(backstory("sessions", "s1", "--json", cwd=project).stdout)
    assert as_json["summary_by"] == "claude"
    assert as_json["summary_fields"]["next_steps"] == "Oil it"
    assert as_json["summary_fields"]["files_edited"] == ["src/door.py", "tests/test_door.py"]
    assert len(as_json["summary_fields"]) == 8
    hook(tool_use(project, "ls", "s2"))
    as_json = json.loads(backstory("sessions", "s2", "--json", cwd=project).stdout)
    assert (as_json["summary_fields"], as_json["summary_by"]) == (None, None)


def test_the_list_of_sessions_says_what_each_was_asked_and_came_to(understood: str, project: Path) -> None:
    listed = backstory("sessions", cwd=project).stdout
    assert listed.splitlines()[1].endswith("  Close the door — Turned it, tests pass")
    told = backstory("timeline", understood, cwd=project).stdout
    assert told.splitlines()[0].endswith("  Close the door — Turned it, tests pass")
    assert "summary: Close the door — Turned it, tests pass" in told


def test_an_observation_is_shown_with_its_title_kind_and_concepts(understood: str, project: Path) -> None:
    shown = backstory("show", understood, cwd=project).stdout
    assert "\n\nThe door closes again\nThe hinge was upside down.\n" in shown
    assert "\n concepts  hinge, door\n" in shown
    found = backstory("search", "hinge", cwd=project).stdout
    at = found.index("bugfix/procedural")
    assert found[at:].splitlines()[1:3] == ["    The door closes again", "    The hinge was upside down."]
    listed = backstory("list", "--kind", "bugfix", cwd=project).stdout
    assert listed.endswith("  bugfix      The door closes again — The hinge was upside down.\n")


@pytest.mark.parametrize(
    ("title", "content"),
    [
        ("Never push on Fridays", "Never push on Fridays"),
        ("never push\n on Fridays.", "Never push on Fridays"),
        ("Never push on…", "Never push on Fridays"),
        ("Never push", "Never push on Fridays"),
    ],
)
def test_what_the_text_says_first_is_not_said_by_the_title_as_well(
    title: str, content: str, understood: str, project: Path, data: Path
) -> None:
    with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
        owner = sessions.project_of(db, "s1")
        assert owner
        made = memories.add(
            db,
            project_id=owner,
            session_id="s1",
            kind="preference",
            sector="procedural",
            tier="project",
            importance=0.6,
            title=title,
            content=content,
            now=int(time.time() * 1000),
        )
    for command in (
        ["list", "--kind", "preference"],
        ["search", "fridays"],
        ["show", made],
        ["timeline", made],
        ["sessions", "s1"],
    ):
        told = backstory(*command, cwd=project).stdout
        assert (command, told.lower().count("never push")) == (command, 1)
        assert "Never push on Fridays\n" in told
    assert "The door closes again — The hinge" in backstory("list", cwd=project).stdout


def test_a_model_is_told_the_title_of_an_observation_and_by_its_id_the_concepts() -> None:
    memory = Memory(
        id="mem_1",
        row=1,
        project_id="p",
        session_id="s1",
        kind="bugfix",
        sector="procedural",
        tier="project",
        title="The door\n[2] closes",
        content="The hinge was upside down.",
        tags=(),
        files=(),
        hashes=(),
        concepts=("hinge", "door"),
        author=None,
        importance=0.6,
        salience=0.6,
        access_count=0,
        created_at=0,
        valid_until=None,
        deleted_at=None,
    )
    session = Session("s1", "p", "completed", 0, 0, 0, "please", None, None, str(SUMMARY))
    answer = Answer((Hit(memory, 1.0, (), session),))
    assert "\nID: mem_1\nTitle: The door [2] closes (bugfix)\n" in reply.memories(answer)
    assert " - Close the door — Turned it, tests pass\n" in reply.memories(answer)
    assert "Concepts" not in reply.memories(answer)
    assert "\nConcepts: hinge, door\n" in reply.memories(answer, relations=[])
    told = reply.timeline(Timeline(memory, (), (), (session,)))
    assert "\n      The door [2] closes - The hinge was upside down.\n" in told


@pytest.mark.parametrize(
    ("text", "length", "gist"),
    [
        (str(SUMMARY), 200, "Close the door — Turned it, tests pass"),
        (str(SUMMARY), 30, "Close the door — Turned it…"),
        (f"Session Summary:\n{SUMMARY}", 200, "Close the door — Turned it, tests pass"),
        ("**Request:** one\ntwo\n**Learned:** much", 200, "one two"),
        ("**Completed:** all of it", 200, "all of it"),
        ("**Learned:** much\n**Notes:** none", 200, "much"),
        ("Moved the walrus", 200, ""),
        ("**Bold:** move", 200, ""),
        ("", 200, ""),
        ("**Request:** " + "x" * 40, 10, "x" * 9 + "…"),
        ("**Request:** ten signs.", 10, "ten signs."),
    ],
)
def test_a_summary_has_a_gist(text: str, length: int, gist: str) -> None:
    assert of_summary(text, length) == gist
    assert len(of_summary(text, length)) <= length


def test_the_beginning_of_an_id_names_a_session_unless_it_fits_two(project: Path) -> None:
    for session in ("abc-1", "abc-2", "xyz"):
        hook(tool_use(project, f"echo {session}", session))
    assert "Command: echo xyz" in backstory("sessions", "x", cwd=project).stdout
    assert "Command: echo abc-2" in backstory("sessions", "abc-2", cwd=project).stdout
    vague = backstory("sessions", "abc", cwd=project)
    assert vague.returncode == 2
    assert "abc-1, abc-2" in vague.stderr


def test_a_pipe_gets_plain_text_and_a_terminal_gets_colours(project: Path) -> None:
    backstory("add", "colour me", cwd=project)
    assert "\x1b" not in backstory("search", "colour", cwd=project).stdout
    script = ["script", "-qec", f"{BACKSTORY} search colour", "/dev/null"]
    seen = subprocess.run(
        script,
        cwd=project,
        env=os.environ | {"TERM": "xterm-256color"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "\x1b[" in seen.stdout


def test_nothing_that_was_captured_can_drive_the_terminal(project: Path) -> None:
    evil = "evil \x1b[2J\x1b]0;title\x07 [red]markup[/red] \x9b31m"
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/\x1b[2Jbranch\n")
    backstory("add", "-", cwd=project, stdin=evil)
    hook(tool_use(project, evil, f"session {evil}"))
    hook(
        {
            "hook_event_name": "UserPromptSubmit",
            "session_id": f"session {evil}",
            "cwd": str(project),
            "prompt": evil,
        }
    )
    memory_id = backstory("search", "evil", cwd=project).stdout.split()[1]
    commands = [
        ["search", "evil"],
        ["show", memory_id],
        ["sessions"],
        ["sessions", "session"],
        ["show", evil[5:]],
    ]
    for command in [*commands, *([*command, "--json"] for command in commands)]:
        ran = backstory(*command, cwd=project)
        assert "\x1b" not in ran.stdout + ran.stderr
        assert "\x9b" not in ran.stdout + ran.stderr
    assert "[red]markup[/red]" in backstory("show", memory_id, cwd=project).stdout


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_narrow_terminal_shortens_what_was_asked_and_never_the_id(columns: int, project: Path) -> None:
    base: dict[str, object] = {"session_id": "0123456789", "cwd": str(project)}
    hook(base | {"hook_event_name": "UserPromptSubmit", "prompt": "make it so " * 20})
    script = ["script", "-qec", f"stty cols {columns}; {BACKSTORY} sessions", "/dev/null"]
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"}
    seen = subprocess.run(script, cwd=project, env=env, capture_output=True, text=True, check=False).stdout
    plain = re.sub(r"\x1b\[[0-9;]*m", "", seen).splitlines()
    assert plain[1].startswith("01234567  20")
    assert [line for line in plain if len(line) > columns] == []
    assert len(plain[1][plain[0].index("about") :]) >= 20
    assert "make it so make" in plain[1]


@pytest.mark.parametrize("columns", [50, 60, 80])
def test_a_narrow_terminal_never_cuts_a_score_or_the_name_of_a_backup(columns: int, project: Path) -> None:
    guide = f"# {'The long guide to ' * 5}\n\n## {'feeding ' * 9}\n\nfeed the walrus"
    (project / "guide.md").write_text(guide)
    backstory("docs", "ingest", "guide.md", cwd=project)
    backstory("add", "the walrus likes fish", cwd=project)
    backstory("backup", "now", cwd=project)

    def seen(command: str) -> list[str]:
        script = ["script", "-qec", f"stty cols {columns}; {BACKSTORY} {command}", "/dev/null"]
        env = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"}
        ran = subprocess.run(script, cwd=project, env=env, capture_output=True, text=True, check=True)
        lines = re.sub(r"\x1b\[[0-9;]*m", "", ran.stdout).splitlines()
        assert [line for line in lines if len(line) > columns] == []
        return lines

    assert re.match(r" 1\. mem_\w{12}  20.*  score \d\.\d\d$", seen("search walrus")[-2])
    (head,) = [line for line in seen("docs search walrus") if line.startswith(" 1. ")]
    assert re.search(r"  score \d\.\d\d$", head)
    names, row = seen("backup list")
    assert re.match(r"backstory-\d{8}T\d{6}Z-manual\.db($|  20\d\d-\d\d-\d\d \d\d:\d\d)", row)
    assert ("size" in names) == (columns == 80)


def test_a_reader_that_has_had_enough_is_no_error(project: Path, run: Run) -> None:
    for number in range(30):
        run("add", f"walrus number {number}")
    command = f"{BACKSTORY} search walrus --limit 30 | head -1; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", command], cwd=project, capture_output=True, text=True, check=False)
    assert (ran.stdout.splitlines()[-1], ran.stderr) == ("0", "")


def test_a_disk_too_full_to_print_on_is_one_sentence(project: Path) -> None:
    backstory("add", "walrus", cwd=project)
    ran = subprocess.run(
        ["sh", "-c", f"{BACKSTORY} search walrus >/dev/full"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 3
    assert ran.stderr.splitlines() == [ran.stderr.strip()]
    assert "No space left" in ran.stderr
    assert "folder" not in ran.stderr


def test_with_everything_closed_a_note_is_still_kept(project: Path) -> None:
    closed = ["sh", "-c", f"{BACKSTORY} add the walrus >&- 2>&- <&-"]
    assert subprocess.run(closed, cwd=project, check=False).returncode == 0
    assert backstory("search", "walrus", cwd=project).returncode == 0


def test_a_folder_that_is_gone_is_said_so(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = ["sh", "-c", f"rmdir '{gone}'; {BACKSTORY} sessions"]
    ran = subprocess.run(script, cwd=gone, capture_output=True, text=True, check=False)
    assert (ran.returncode, "the current folder is gone" in ran.stderr) == (2, True)


def test_words_and_folders_that_are_not_utf8_are_no_crash(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(odd)
    for args in (["add", "a walrus"], ["search", "walrus"], ["sessions"]):
        ran = subprocess.run([BACKSTORY, *args], cwd=odd, capture_output=True, text=True, check=False)
        assert ran.returncode in (0, 1)
        assert "fault of backstory" not in ran.stderr
    named = subprocess.run(
        [BACKSTORY, "search", "walrus", "--project", odd], capture_output=True, check=False
    )
    assert named.returncode == 0
    shown = subprocess.run([BACKSTORY, "show", b"\xff"], cwd=odd, capture_output=True, text=True, check=False)
    assert (shown.returncode, "There is no memory" in shown.stderr) == (1, True)


def test_a_locale_too_small_for_our_signs_still_gets_an_answer(project: Path) -> None:
    env = os.environ | {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = subprocess.run(
        [BACKSTORY, "doctor"], cwd=project, env=env, capture_output=True, text=True, check=False
    )
    assert "canary" in ran.stdout
    assert "Error" not in ran.stderr


def test_a_folder_that_cannot_be_used_is_not_called_our_fault(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_HOME", "/dev/null/nowhere")
    ran = backstory("search", "x", cwd=project)
    assert ran.returncode == 3
    assert "set BACKSTORY_HOME to a folder of yours" in ran.stderr
    line = next(
        line for line in backstory("doctor", cwd=project).stdout.splitlines() if "data folder" in line
    )
    assert line.startswith("✗")


def bound(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """As somebody whom permissions bind; root has to give up the right to ignore them first."""
    command = [BACKSTORY, *args]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("running as root, and setpriv is not installed")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


COMMANDS_THAT_WRITE = (
    ["config", "log.level", "debug"],
    ["worker"],
    ["worker", "--status"],
    ["add", "a walrus"],
    ["search", "walrus"],
    ["backup", "now"],
    ["backup", "restore", "latest", "--yes"],
)


def test_a_data_folder_that_cannot_be_written_is_named_with_what_to_do(project: Path, data: Path) -> None:
    backstory("add", "a walrus", cwd=project)
    backstory("backup", "now", cwd=project)
    data.chmod(0o500)
    try:
        for command in COMMANDS_THAT_WRITE:
            ran = bound(*command, cwd=project)
            assert (command, ran.returncode, ran.stdout) == (command, 3, "")
            assert ran.stderr.startswith(f"backstory: {data} cannot be used (")
            assert ran.stderr.endswith("; make it writable, or set BACKSTORY_HOME to a folder of yours\n")
            assert "Errno" not in ran.stderr
        told = bound("doctor", cwd=project).stdout
    finally:
        data.chmod(0o700)
    assert "`backstory doctor`" not in told
    assert "Error" not in told


def test_a_database_that_cannot_be_written_is_named_and_not_its_folder(project: Path, data: Path) -> None:
    backstory("add", "a walrus", cwd=project)
    (data / "backstory.db").chmod(0o400)
    ran = bound("add", "another", cwd=project)
    assert ran.returncode == 3
    assert f"{data}/backstory.db cannot be used (attempt to write a readonly database); make" in ran.stderr


def test_what_is_no_folder_is_named_by_every_command(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_HOME", "/dev/null/nowhere")
    for command in (*COMMANDS_THAT_WRITE, ["config"], ["backup", "list"]):
        ran = backstory(*command, cwd=project)
        if command[:2] != ["backup", "restore"]:  # there is none
            assert (command, ran.returncode, ran.stdout) == (command, 3, "")
            assert "/dev/null" in ran.stderr
            assert "set BACKSTORY_HOME to a folder of yours" in ran.stderr
        assert "Errno" not in ran.stderr
    told = backstory("doctor", cwd=project).stdout
    assert "Errno" not in told
    assert "Error" not in told


def test_standard_input_that_is_closed_is_an_empty_note(project: Path) -> None:
    command = ["sh", "-c", f"{BACKSTORY} add - <&-"]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert (ran.returncode, "empty" in ran.stderr) == (2, True)


def test_paths_are_shown_as_seen_from_the_project(project: Path) -> None:
    payload = tool_use(project, "x") | {
        "tool_name": "Read",
        "tool_input": {"file_path": f"{project}/src/auth.py"},
    }
    hook(payload | {"tool_response": {}})
    assert "Read file: src/auth.py" in backstory("search", "auth", cwd=project).stdout


# --- one command after the other, in this process: starting one takes longer than what it does -------------


def test_search_takes_every_filter(run: Run, project: Path) -> None:
    (project / "auth.py").write_text("x")
    hook(tool_use(project, "feed walrus", "abc-session"))
    run("add", "the walrus lives in auth.py", "--tag", "sea", "--tag", "north", "--sector", "semantic")
    note, trace = "the walrus lives in auth.py", "Tool: Bash\nCommand: feed walrus\nOutput: fine"

    def found(*filters: str) -> list[str]:
        ran = run("search", "walrus", "--json", *filters)
        assert ran.code == (0 if ran.json else 1)
        return sorted(hit["content"] for hit in ran.json)

    both = sorted([note, trace])
    assert found() == found("--mode", "hybrid") == found("--mode", "keyword") == both
    assert note in found("--mode", "semantic")
    assert found("--sector", "semantic") == found("--kind", "note") == found("--tier", "project") == [note]
    assert found("--sector", "episodic") == found("--kind", "tool") == found("--tier", "session") == [trace]
    assert found("--tag", "sea") == found("--tag", "NORTH", "--tag", "sea") == [note]
    assert found("--tag", "south") == []
    assert found("--file", "auth.py") == [note]
    assert found("--session", "abc") == [trace]  # the beginning of its id is enough
    assert found("--since", "1h") == found("--since", "2020-01-01") == both
    assert found("--until", "2020-01-01") == found("--until", "2d") == []
    assert len(found("--limit", "1")) == 1
    assert found("--project", str(project)) == both
    assert found("--superseded") == both


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--since", "last spring"), "7d for seven days ago"),
        (("--until", "99999999999w"), "is no time"),
        (("--limit", "101"), "between 1 and 100"),
        (("--kind", "idea"), "'idea' is not one of"),
        (("--mode", "psychic"), "'psychic' is not one of"),
        (("--project", "/nowhere/at/all"), "does not exist"),
    ],
)
def test_a_filter_that_makes_no_sense_is_wrong_use(run: Run, args: tuple[str, ...], says: str) -> None:
    ran = run("search", "walrus", *args)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_a_session_that_is_not_there_is_not_found(run: Run) -> None:
    ran = run("search", "walrus", "--session", "nope")
    assert (ran.code, "There is no session nope" in ran.err) == (1, True)


def test_a_search_explains_its_scores_when_asked(run: Run) -> None:
    run("add", "the walrus sleeps")
    assert "words +" not in run("search", "walrus").out
    explained = run("search", "walrus", "--explain").out
    for part in ("words +", "salience +", "recency +", "sector +"):
        assert part in explained
    hit = run("search", "walrus", "--json").json[0]
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=0.005)
    assert {"superseded_by", "related", "stale", "id", "content", "salience"} <= set(hit)


def test_a_search_says_when_files_changed_since(run: Run, project: Path) -> None:
    (project / "auth.py").write_text("one")
    memory_id = run("add", "the walrus lives in auth.py").id
    (project / "auth.py").write_text("two")
    assert "auth.py changed since" in run("search", "walrus").out
    assert "auth.py changed since" in run("show", memory_id).out
    assert run("show", memory_id, "--json").json["stale"] == ["auth.py changed since"]


def test_a_search_without_an_embedder_says_so_beside_the_answer(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_EMBEDDER", "off")
    run("add", "the walrus sleeps")
    ran = run("search", "walrus", "--json")
    assert (ran.code, len(ran.json)) == (0, 1)
    assert ran.err.startswith("Searched by words only: the embedder is switched off")
    refused = run("reindex")
    assert refused.code != 0
    assert "switched off" in refused.err
    monkeypatch.setenv("BACKSTORY_EMBEDDER", "crystal-ball")
    refused = run("search", "walrus")
    assert (refused.code, "it is one of static, off" in refused.err) == (2, True)


def test_the_beginning_of_an_id_is_enough_with_or_without_its_prefix(run: Run) -> None:
    memory_id = run("add", "the walrus sleeps").id
    for short in (memory_id, memory_id[:10], memory_id[4:10]):
        assert run("show", short, "--json").json["id"] == memory_id
    run("add", "the heron stands")
    vague = run("show", "mem_")
    assert vague.code == 2
    assert "more than one memory starts with mem_" in vague.err
    for nothing in ("", "mem_zzzzzzzzzzzz", "%", "nope"):
        ran = run("show", nothing)
        assert (ran.code, ran.out) == (1, "")
        assert "`backstory search` shows ids" in ran.err


def test_a_note_for_all_projects_is_found_in_all(run: Run, tmp_path: Path) -> None:
    made = run("add", "I prefer short walrus names", "--global", "--json").json
    assert (made["created"], made["tier"], made["project_id"]) == (True, "global", "global")
    (tmp_path / "web").mkdir()
    elsewhere = run("search", "walrus", "--project", str(tmp_path / "web"), "--json").json
    assert [hit["id"] for hit in elsewhere] == [made["id"]]
    again = run("add", "I prefer short walrus names", "--global", "--json").json
    assert (again["created"], again["id"]) == (False, made["id"])


def test_a_memory_is_reinforced_and_deemphasized(run: Run) -> None:
    memory_id = run("add", "the walrus sleeps").id
    up = run("reinforce", memory_id)
    assert up.out.startswith(f"Memory reinforced: {memory_id} (salience: 0.5")
    more = run("reinforce", memory_id[:12], "--amount", "1", "--json").json
    assert (more["done"], more["id"], more["access_count"]) == ("reinforced", memory_id, 2)
    assert more["salience"] == pytest.approx(0.99)
    fresh = run("add", "the heron stands").id
    down = run("deemphasize", fresh, "--json").json
    assert (down["done"], down["salience"]) == ("de-emphasized", pytest.approx(0.3, abs=0.001))
    assert run("deemphasize", fresh, "--amount", "1").out.endswith("(salience: 0.05)\n")


@pytest.mark.parametrize("command", ["reinforce", "deemphasize"])
@pytest.mark.parametrize("amount", ["0", "-1", "1.5", "nan", "much"])
def test_an_amount_that_makes_no_sense_is_wrong_use(run: Run, command: str, amount: str) -> None:
    memory_id = run("add", "the walrus sleeps").id
    ran = run(command, memory_id, "--amount", amount)
    assert (ran.code, ran.out) == (2, "")
    assert "must be above 0 and at most 1" in ran.err or "is not a valid float" in ran.err


def test_a_memory_is_forgotten_and_restored(run: Run) -> None:
    memory_id = run("add", "the walrus sleeps").id
    assert run("forget", memory_id).out.startswith(f"Memory forgotten: {memory_id}")
    assert run("search", "walrus").code == 1
    assert "forgotten" in run("show", memory_id).out
    assert run("restore", memory_id).out.startswith(f"Memory restored: {memory_id}")
    assert run("search", "walrus").code == 0
    assert run("forget", memory_id, "--json").json["deleted_at"] is not None
    assert run("restore", memory_id, "--json").json["deleted_at"] is None


def test_a_memory_is_removed_for_good_only_after_asking(run: Run) -> None:
    memory_id = run("add", "the walrus sleeps").id
    for answer in ("n\n", ""):
        asked = run("forget", memory_id, "--hard", stdin=answer)
        assert (asked.code, asked.out) == (1, "")
        assert f"Remove {memory_id} for good?" in asked.err
    assert run("search", "walrus").code == 0
    assert run("forget", memory_id, "--hard", stdin="y\n").out == f"Memory erased: {memory_id}\n"
    assert run("show", memory_id).code == 1
    other = run("add", "the heron stands").id
    assert run("forget", other, "--hard", "--yes", "--json").json == {"id": other, "done": "erased"}
    assert run("restore", other).code == 1
    assert run("search", "heron").code == 1


@pytest.mark.parametrize("command", ["show", "timeline", "reinforce", "deemphasize", "forget", "restore"])
def test_an_id_that_is_not_there_is_not_found_by_any_command(run: Run, command: str) -> None:
    ran = run(command, "mem_nothing")
    assert (ran.code, ran.out) == (1, "")
    assert "There is no memory mem_nothing; `backstory search` shows ids." in ran.err
    assert run(command).code == 2


def test_one_memory_supersedes_another(run: Run) -> None:
    old, new = run("add", "the walrus port is 8080").id, run("add", "the walrus port is 8081").id
    assert run("supersede", old, new).out == f"Memory {old} superseded by {new}\n"
    assert [hit["id"] for hit in run("search", "walrus", "--json").json] == [new]
    shown = run("search", "walrus", "--superseded").out
    assert f"superseded by {new}" in shown
    relations = run("show", old, "--json").json["relations"]
    assert relations == [{"source": new, "relation": "SUPERSEDES", "target": old}]
    assert f"{new} SUPERSEDES {old}" in run("show", old).out
    cycle = run("supersede", new, old)
    assert (cycle.code, f"restore {old} first" in cycle.err) == (2, True)
    assert run("supersede", old, old).code == 2
    assert run("supersede", old, "nope").code == 1
    assert run("supersede", old).code == 2
    assert run("supersede", old, new, "--json").json == {"superseded": old, "by": new}
    run("restore", old)
    assert run("search", "8080", "--json").json[0]["superseded_by"] is None


def test_the_timeline_marks_the_memory_and_names_the_sessions(run: Run, project: Path) -> None:
    for number in range(3):
        hook(tool_use(project, f"step {number}", f"s{number}"))
    hook(
        {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(project), "prompt": "why not"}
    )
    memory_id = run("search", "step 1", "--json").json[0]["id"]
    lines = run("timeline", memory_id).out.splitlines()
    assert [line.strip()[:4] for line in lines if "Command: step 1" in line] == [">>> "]
    assert sum(line.startswith("session s") for line in lines) == 3
    assert "why not" in next(line for line in lines if line.startswith("session s1"))
    told = run("timeline", memory_id[:12], "--before", "1", "--after", "0", "--json").json
    assert told["anchor"]["id"] == memory_id
    assert (len(told["before"]), len(told["after"])) == (1, 0)
    assert {session["id"] for session in told["sessions"]} == {"s0", "s1"}
    too_long = run("timeline", memory_id, "--before", "51")
    assert (too_long.code, "between 0 and 50" in too_long.err) == (2, True)


@pytest.fixture
def faded(run: Run, project: Path, data: Path) -> str:
    """The id of a trace that nobody came back to for years."""
    hook(tool_use(project, "feed walrus"))
    memory_id: str = run("search", "walrus", "--json").json[0]["id"]
    db = connect(str(data / "backstory.db"))
    db.execute("UPDATE memories SET created_at = 1000, last_accessed = 1000, files = '[\"a.py\"]'")
    db.close()
    return memory_id


def test_faded_traces_are_archived_and_can_be_restored(run: Run, faded: str) -> None:
    kept = run("add", "a walrus note").id
    assert run("prune", "--dry-run").out == "1 trace would be archived\n"
    assert run("prune", "--dry-run", "--json").json == {"archived": 0, "faded": 1}
    assert run("prune").out == "1 trace archived\n"
    assert run("prune", "--json").json == {"archived": 0, "faded": 0}
    assert [hit["id"] for hit in run("search", "walrus", "--json").json] == [kept]
    shown = run("show", faded)
    assert "archived" in shown.out
    assert f"backstory restore {faded}" in shown.out
    assert "feed walrus" in shown.out
    refused = run("reinforce", faded)
    assert (refused.code, f"backstory restore {faded}" in refused.err) == (1, True)
    assert run("restore", faded[:12]).out.startswith(f"Memory restored: {faded}")
    assert {hit["id"] for hit in run("search", "walrus", "--json").json} == {faded, kept}


def test_an_archived_memory_has_the_same_types_in_json(run: Run, faded: str) -> None:
    before = run("show", faded, "--json").json
    run("prune")
    archived = run("show", faded[4:10], "--json").json
    assert archived["id"] == faded
    assert archived["archived_at"] > 0
    same = {name for name in ("tags", "files", "hashes", "content", "kind") if archived[name] == before[name]}
    assert same == {"tags", "files", "hashes", "content", "kind"}


def test_an_archived_memory_is_removed_for_good_like_any_other(run: Run, faded: str, data: Path) -> None:
    run("prune")
    removed = run("forget", faded, "--hard", "--yes")
    db = connect(str(data / "backstory.db"))
    still_there = life.archived(db, faded)
    db.close()
    assert (removed.code, still_there) == (0, None)


def test_reindex_makes_the_vectors_that_are_missing_and_only_those(run: Run, project: Path) -> None:
    run("add", "the walrus sleeps")
    run("add", "I prefer short names", "--global")
    (project / "guide.md").write_text("# Guide\n\nfeed the walrus")
    run("docs", "ingest", "guide.md")
    made = run("reindex", "--json").json
    assert made["made"] == 3
    assert made["model"].startswith("static:")
    assert run("reindex").out.startswith("0 vectors made by static:")


def test_documents_are_taken_in_found_listed_shown_and_removed(run: Run, project: Path) -> None:
    nothing = run("docs", "list")
    assert (nothing.code, nothing.out, "backstory docs ingest PATH" in nothing.err) == (1, "", True)
    assert (run("docs", "list", "--json").json, run("docs", "search", "x", "--json").json) == ([], [])
    (project / "guide.md").write_text("# Guide\n\nfeed the walrus\n\n## Install\n\nrun the otter\n")
    assert run("docs", "ingest", "guide.md").out == "Document ingested: Guide (2 chunks)\n"
    assert run("docs", "ingest", "guide.md").out == "Document ingested: Guide (unchanged, 2 chunks)\n"
    (listed,) = run("docs", "list", "--json").json
    assert (listed["title"], listed["chunks"], listed["source_path"]) == (
        "Guide",
        2,
        str(project / "guide.md"),
    )
    assert f"{listed['id']}" in run("docs", "list").out
    (hit, *_) = run("docs", "search", "otter", "--json").json
    assert (hit["heading"], hit["text"]) == ("Guide > Install", "run the otter")
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=0.005)
    explained = run("docs", "search", "otter", "--explain", "--mode", "keyword", "--limit", "1").out
    assert "Guide > Install" in explained
    assert "words +" in explained
    short = listed["id"][:9]
    shown = run("docs", "show", short).out
    assert shown.index("feed the walrus") < shown.index("Guide > Install") < shown.index("run the otter")
    assert run("docs", "show", short, "--json").json[1] == {
        "heading": "Guide > Install",
        "text": "run the otter",
    }
    assert run("docs", "search", "zebra").code == 1
    assert run("docs", "search", "x", "--limit", "0").code == 2
    assert run("docs", "remove", short, "--json").json == {"removed": listed["id"]}
    for command in ("show", "remove"):
        gone = run("docs", command, short)
        assert (gone.code, "`backstory docs list` shows ids" in gone.err) == (1, True)
    assert run("docs", "search", "otter").code == 1
    assert (project / "guide.md").exists()


def test_documents_come_from_standard_input_too(run: Run) -> None:
    told = run("docs", "ingest", "-", "--title", "Animals", "--json", stdin="the walrus sleeps").json
    assert [(one["title"], one["source"]) for one in told["documents"]] == [("Animals", "inline")]
    assert run("docs", "ingest", "-", "--title", "Animals", stdin="the walrus wakes").out.startswith(
        "Document ingested: Animals (replaced"
    )


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("gone.md", "there is no file"),
        ("/etc/hostname", "lies outside of"),
        ("picture.png", "no kind of document"),
        ("empty.md", "no text"),
        ("binary.md", "is not text"),
        ("http://localhost/x", "localhost"),
    ],
)
def test_what_cannot_be_taken_in_is_said_with_the_reason(
    run: Run, project: Path, source: str, says: str
) -> None:
    (project / "picture.png").write_text("x")
    (project / "empty.md").write_text("")
    (project / "binary.md").write_bytes(b"\0\0")
    ran = run("docs", "ingest", source)
    assert (ran.code, ran.out) == (1, "")
    assert source in ran.err
    assert says in ran.err
    assert "1 of 1 could not be ingested" in ran.err
    told = run("docs", "ingest", source, "--json")
    assert (told.code, told.json["documents"], len(told.json["problems"])) == (1, [], 1)


def test_what_can_be_taken_in_is_even_if_other_things_cannot(run: Run, project: Path) -> None:
    (project / "guide.md").write_text("# Guide\n\nfeed the walrus")
    ran = run("docs", "ingest", "gone.md", "guide.md")
    assert (ran.code, ran.out) == (1, "Document ingested: Guide (1 chunk)\n")
    assert "gone.md: there is no file" in ran.err
    assert run("docs", "ingest", "guide.md", "gone.md", "--title", "x").code == 2


def test_a_folder_without_documents_is_not_passed_over_in_silence(run: Run, project: Path) -> None:
    (project / "empty").mkdir()
    ran = run("docs", "ingest", "empty")
    assert (ran.out + ran.err).strip()


@pytest.mark.parametrize("command", ["docs ingest -", "add -"])
def test_a_standard_input_that_is_closed_or_not_utf8_is_no_fault_of_ours(command: str, project: Path) -> None:
    closed = ["sh", "-c", f"{BACKSTORY} {command} <&-"]
    ran = subprocess.run(closed, cwd=project, capture_output=True, text=True, check=False)
    assert (ran.returncode in (1, 2), "fault of backstory" in ran.stderr) == (True, False)
    odd = [BACKSTORY, *command.split()]
    other = subprocess.run(odd, cwd=project, input=b"caf\xe9 walrus", capture_output=True, check=False)
    assert b"fault of backstory" not in other.stderr


def test_nothing_in_a_document_or_an_archive_can_drive_the_terminal(
    run: Run, project: Path, data: Path, tmp_path: Path
) -> None:
    evil = "evil \x1b[2J\x1b]0;title\x07 [red]markup[/red] \x9b31m \u202e"
    name = "evil \x1b[2J.md"
    (project / name).write_text(f"# {evil}\n\n## {evil}\n\n{evil}\n")
    hook(tool_use(project, evil, "s\x1b[2J"))
    note, newer = run("add", "-", stdin=evil).id, run("add", "evil, but newer").id
    trace = next(hit["id"] for hit in run("search", "evil", "--kind", "tool", "--json").json)
    run("supersede", note, newer)
    commands = [
        ["docs", "ingest", name],
        ["docs", "ingest", "gone \x1b[2J.md"],
        ["docs", "list"],
        ["docs", "search", "evil"],
        ["docs", "show", "doc_"],
        ["docs", "show", "\x1b[2J"],
        ["docs", "remove", "\x1b[2J"],
        ["search", "evil", "--explain", "--superseded"],
        ["search", "evil", "--session", "\x1b[2J"],
        ["search", "evil", "--since", "\x1b[2J"],
        ["timeline", trace],
        ["show", note],
        ["reinforce", trace],
        ["supersede", note, "\x1b[2J"],
        ["reindex"],
    ]
    for command in [*commands, *([*command, "--json"] for command in commands)]:
        ran = run(*command)
        for sign in "\x1b\x9b\x07\u202e" if "--json" not in command else "\x1b\x9b\x07":
            assert sign not in ran.out + ran.err, command
    db = connect(str(data / "backstory.db"))
    life.archive(db, [trace], 1)
    db.close()
    for command in (["show", trace], ["show", trace, "--json"], ["restore", trace]):
        ran = run(*command)
        assert "\x1b" not in ran.out + ran.err


def test_no_command_writes_colours_or_progress_into_a_pipe(project: Path) -> None:
    (project / "guide.md").write_text("# Guide\n\nfeed the walrus")
    memory_id = backstory("add", "the walrus sleeps", cwd=project).stdout.split()[2]
    for command in (
        ["docs", "ingest", "guide.md"],
        ["docs", "list"],
        ["docs", "show", "doc_"],
        ["docs", "search", "walrus", "--explain"],
        ["search", "walrus", "--explain"],
        ["timeline", memory_id],
        ["show", memory_id],
        ["reindex"],
    ):
        ran = backstory(*command, cwd=project)
        assert (ran.returncode, ran.stderr) == (0, ""), command
        assert "\x1b" not in ran.stdout
        assert "\r" not in ran.stdout


def test_every_command_explains_itself(project: Path) -> None:
    commands = (
        "search show timeline add reinforce deemphasize forget restore supersede prune docs reindex"
        " sessions backup install uninstall doctor mcp"
    ).split()
    overview = backstory("--help", cwd=project).stdout
    for command in commands:
        assert command in overview
        assert backstory(command, "--help", cwd=project).returncode == 0
    for command in ("ingest", "search", "list", "show", "remove"):
        assert backstory("docs", command, "--help", cwd=project).returncode == 0


def test_every_command_that_prints_is_known_to_capture() -> None:
    """What our own commands print in a shell must not be remembered again."""
    from backstory.intake.trace import PRINTING_COMMANDS
    from backstory.surfaces.cli.main import cli

    prints_none = {"install", "uninstall", "mcp", "worker", "config"}
    assert set(cli.commands) - prints_none == PRINTING_COMMANDS


def test_the_docs_name_every_command() -> None:
    text = (REPOSITORY / "docs" / "cli.md").read_text()
    overview = backstory("--help", cwd=REPOSITORY).stdout.split("Commands:")[1]
    for line in overview.strip().splitlines():
        assert f"backstory {line.split()[0]}" in text


def test_doctor_finds_everything_in_order_but_the_missing_client(project: Path, data: Path) -> None:
    done = backstory("doctor", "--json", cwd=project)
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    ours = "python,data folder,disk,settings,canary,database,backup,search,spool,worker,synthesis".split(",")
    assert list(checks) == [*ours, "Claude Code", "plugin"]
    good = [name for name, check in checks.items() if check["level"] == "ok"]
    assert good == ours
    assert "not on PATH" in checks["Claude Code"]["finding"]
    assert done.returncode == 1


def test_the_canary_leaves_nothing_behind(project: Path) -> None:
    backstory("add", "stays", cwd=project)
    backstory("doctor", cwd=project)
    assert backstory("search", "canary echo", cwd=project).returncode == 1
    assert backstory("search", "stays", cwd=project).returncode == 0


def test_the_canary_does_not_take_a_real_project_with_it(
    project: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data folder may lie inside a repository; the memories of that repository are not the canary's."""
    monkeypatch.setenv("BACKSTORY_HOME", str(project / "data"))
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    backstory("add", "precious", cwd=project)
    backstory("doctor", cwd=project)
    assert backstory("search", "precious", cwd=project).returncode == 0


def test_the_canary_does_not_take_the_documents_of_a_project_with_it(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_HOME", str(project / "data"))
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / "guide.md").write_text("# Guide\n\nfeed the walrus")
    run("docs", "ingest", "guide.md")
    backstory("doctor", cwd=project)
    assert len(run("docs", "list", "--json").json) == 1


def test_doctor_says_what_to_do_about_a_payload_that_failed(project: Path, data: Path) -> None:
    subprocess.run(["sh", str(HOOK)], input=b"{broken", check=True)
    line = next(line for line in backstory("doctor", cwd=project).stdout.splitlines() if "spool  " in line)
    assert "1 payload could not be stored; the last: not JSON" in line
    assert f"look at {data}/spool/failed" in line


def test_doctor_sees_a_hook_that_cannot_write(project: Path, data: Path) -> None:
    data.mkdir(parents=True)
    (data / "spool").write_text("a file where the folder should be")
    done = backstory("doctor", "--json", cwd=project)
    canary = next(check for check in json.loads(done.stdout) if check["name"] == "canary")
    assert canary["level"] == "bad"
    assert done.returncode == 1


def test_doctor_names_a_setting_that_nobody_reads(project: Path, data: Path) -> None:
    data.mkdir(parents=True)
    (data / "config.toml").write_text('[log]\nlevell = "debug"\n')
    line = next(line for line in backstory("doctor", cwd=project).stdout.splitlines() if "settings" in line)
    assert "log.levell" in line


def test_doctor_reports_a_bad_setting(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_LOG_LEVEL", "loud")
    line = next(line for line in backstory("doctor", cwd=project).stdout.splitlines() if "settings" in line)
    assert "one of debug, info, warning, error" in line


def test_doctor_names_every_bad_setting_once_wherever_it_comes_from(
    project: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BACKSTORY_SYNTHESIZER")
    monkeypatch.setenv("BACKSTORY_BRIEF_TOKENS", "x")
    data.mkdir(parents=True)
    (data / "config.toml").write_text(
        'synthesizer = "psychic"\nembedder = "crystal-ball"\n'
        '[log]\nlevel = "loud"\nlevell = 1\n[spend]\ndaily_usd = "much"\n'
    )
    told = backstory("doctor", cwd=project).stdout
    (line,) = [line for line in told.splitlines() if line.startswith("✗ settings")]
    assert "brief.tokens is 'x'; it should be a number like 1500, 0 or more (it comes from BACKSTORY_" in line
    for bad in ("'psychic'", "'crystal-ball'", "'loud'", "'much'", "log.levell"):
        assert (bad, told.count(bad), bad in line) == (bad, 1, True)
    (data / "config.toml").write_text("[log\n")
    assert backstory("doctor", cwd=project).stdout.count("correct it or move it away") == 1


def test_doctor_warns_when_others_can_read_the_data(project: Path, data: Path) -> None:
    data.mkdir(parents=True, mode=0o755)
    data.chmod(0o755)
    line = next(
        line for line in backstory("doctor", cwd=project).stdout.splitlines() if "data folder" in line
    )
    assert "chmod 700" in line


def check_of(name: str) -> tuple[str, str]:
    """What doctor says about one part: (level, finding → advice)."""
    folder = paths.data_folder(os.environ)
    assert folder
    (found,) = [check for check in doctor.examine(folder, os.environ) if check.name == name]
    return found.level, f"{found.finding} → {found.advice}"


@pytest.fixture
def queued(project: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """A session s1 with four items in the queue, two days old."""
    hook(tool_use(project, "echo 1"))
    monkeypatch.chdir(project)
    backstory("sessions", cwd=project)
    db = connect(str(data / "backstory.db"))
    with transaction(db):
        db.execute("DELETE FROM observation_queue")
        for _ in range(4):
            queue.put(db, "s1", "Bash", "{}", "{}", int(time.time() * 1000) - 2 * 86_400_000, None)
    yield db
    db.close()


def ids_in(db: sqlite3.Connection) -> list[int]:
    return [row["id"] for row in db.execute("SELECT id FROM observation_queue ORDER BY id")]


def test_doctor_warns_when_something_due_has_waited_for_over_a_day(queued: sqlite3.Connection) -> None:
    level, told = check_of("worker")
    assert (level, "4 items wait since" in told, "none is due yet" in told) == ("ok", True, True)
    with transaction(queued):
        queue.put(queued, "s1", queue.FINALIZE, "{}", "{}", int(time.time() * 1000), None)
    level, told = check_of("worker")
    assert (level, "5 items wait since" in told) == ("warn", True)
    assert told.endswith("1 session is due now, after more than a day → backstory worker")


def test_doctor_warns_when_the_model_has_been_away_for_over_a_day(queued: sqlite3.Connection) -> None:
    with transaction(queued):
        queue.defer(queued, ids_in(queued), "no network; it is asked again later", int(time.time() * 1000))
    level, told = check_of("worker")
    assert (level, "after more than a day: no network" in told) == ("warn", True)


def test_doctor_lets_items_wait_where_synthesis_is_off(
    queued: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "off")
    with transaction(queued):
        queue.put(queued, "s1", queue.FINALIZE, "{}", "{}", int(time.time() * 1000), None)
    level, told = check_of("worker")
    assert (level, "synthesis is off" in told) == ("ok", True)
    assert check_of("synthesis") == ("ok", "synthesizer off: nothing is observed → ")


def test_doctor_names_what_was_skipped_and_why(queued: sqlite3.Connection) -> None:
    now = int(time.time() * 1000)
    with transaction(queued):
        first, *others = ids_in(queued)
        queue.skip(queued, others, "the reply could not be used", now)
        queue.done(queued, [first], "local", now)
    level, told = check_of("worker")
    assert (level, "3 items skipped, 3 because: the reply could not be used" in told) == ("warn", True)


def test_doctor_says_who_observes_and_what_was_spent(
    queued: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_of("synthesis") == ("ok", "synthesizer local: by rules, at no cost → ")
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "claude")
    now = int(time.time() * 1000)
    level, told = check_of("synthesis")
    assert (level, told) == (
        "ok",
        f"synthesizer claude: claude, model haiku by {program}; $0.00 of $1.00 spent today → ",
    )
    with transaction(queued):
        queue.done(queued, ids_in(queued)[:1], "local", now, "there is no model 'walrus'; set claude.model")
    level, told = check_of("synthesis")
    assert level == "warn"
    assert "1 item were observed by local" not in told
    clock = time.strftime("%H:%M", time.localtime(now / 1000))
    reason = "there is no model 'walrus'; set claude.model"
    assert f"1 item was observed by local, last today {clock}: {reason}" in told
    with transaction(queued):
        spend.add(queued, "s1", Spent("claude-haiku", 1, 1, 1, 1, 1, 1.25), now)
    level, told = check_of("synthesis")
    assert (level, "$1.25 of $1.00 spent today, the cap is reached" in told) == ("warn", True)
    assert told.endswith("rules observe until midnight; `backstory config spend.daily_usd 2` raises it")
    monkeypatch.setenv("BACKSTORY_SPEND_DAILY_USD", "0")
    level, told = check_of("synthesis")
    assert (level, "midnight" in told) == ("warn", False)
    assert "with spend.daily_usd 0 the model is never asked" in told


def test_doctor_tells_no_trouble_that_is_over_for_more_than_a_day(
    queued: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "claude")
    now, (first, second, *waiting) = int(time.time() * 1000), ids_in(queued)
    with transaction(queued):
        queue.done(queued, [first], "local", now - 25 * 3_600_000, "no login")
    assert check_of("synthesis")[0] == "ok"
    with transaction(queued):
        queue.done(queued, [second], "local", now - 3_600_000, "no network")
    level, told = check_of("synthesis")
    assert (level, "no network" in told, "no login" in told) == ("warn", True, False)
    with transaction(queued):  # they came two days ago, but they wait still
        queue.defer(queued, waiting, "the model is busy", now)
    assert "2 items wait since 20" in check_of("synthesis")[1]


def test_doctor_tells_a_missing_model_from_one_that_nobody_needs(
    project: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backstory.synthesis.claude.find_cli", lambda env: None)
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "auto")
    level, told = check_of("synthesis")
    assert (level, "by rules, because there is no claude on PATH" in told) == ("ok", True)
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "claude")
    level, told = check_of("synthesis")
    assert (level, "install Claude Code" in told) == ("warn", True)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("BACKSTORY_SYNTHESIZER", "psychic", "one of auto, claude, local, off"),
        ("BACKSTORY_SPEND_DAILY_USD", "much", "a number like 1"),
    ],
)
def test_doctor_reports_settings_of_synthesis_that_make_no_sense(
    project: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv(variable, value)
    level, told = check_of("settings")
    assert (level, says in told) == ("bad", True)


def test_without_any_home_the_cli_says_what_to_set(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    done = backstory("sessions", cwd=project)
    assert done.returncode == 2
    assert "set HOME, or BACKSTORY_HOME" in done.stderr


def demo(*args: str) -> str:
    command = [sys.executable, str(REPOSITORY / "demo" / "run.py"), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_the_demo_shows_a_search_that_finds_what_was_captured() -> None:
    shown = demo()
    assert "13 events captured" in shown
    assert "Bearer [redacted:token]" in shown
    answer = shown.split("$ backstory search")[1]
    assert "KeyError" in answer or "Sign in ignores the case" in answer


def test_nothing_in_the_demo_is_canned(tmp_path: Path) -> None:
    """Edit the sample session, and the demo tells the other story."""
    sample = (REPOSITORY / "demo" / "session.jsonl").read_text()
    changed = tmp_path / "session.jsonl"
    changed.write_text(sample.replace("Sign in ignores the case", "Pelicans ignore the weather"))
    shown = demo("--sample", str(changed), "--query", "pelicans")
    assert "Pelicans ignore the weather" in shown.split("$ backstory search")[1]
    assert "Sign in ignores the case" not in shown
    assert "No memories found" not in shown


def test_memories_are_listed_newest_first_and_forgotten_ones_on_request(run: Run) -> None:
    first = run("add", "the walrus sleeps", "--tag", "sea").id
    second = run("add", "the heron stands").id
    assert [one["id"] for one in run("list", "--json").json] == [second, first]
    assert run("list", "--tag", "sea").out.split()[0] == first
    run("forget", first)
    assert [one["id"] for one in run("list", "--json").json] == [second]
    assert [one["id"] for one in run("list", "--forgotten", "--json").json] == [first]
    empty = run("list", "--kind", "summary")
    assert (empty.code, empty.out) == (1, "")


def test_a_list_says_that_there_are_more(run: Run) -> None:
    for number in range(4):
        run("add", f"walrus {'abcd'[number] * 9} number {number}")
    assert run("list").err == ""
    assert run("list", "--limit", "4").err == ""
    for options in ((), ("--json",)):
        ran = run("list", "--limit", "3", *options)
        assert (ran.code, ran.err) == (0, "3 of 4; --limit shows more\n")
        assert ran.out.count("mem_") >= 3
    assert run("list", "--limit", "1", "--kind", "prompt").err.startswith("backstory: No memories")


def test_an_id_of_another_project_is_not_touched_from_here(run: Run, project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    theirs = run("add", "the walrus sleeps", "--project", str(other)).id
    ours = run("add", "the heron stands").id
    for command in (("forget", theirs), ("show", theirs[:10]), ("supersede", theirs, ours)):
        ran = run(*command)
        assert (ran.code, f"add --project {other}" in ran.err) == (1, True)
    assert run("forget", theirs, "--project", str(other)).code == 0
