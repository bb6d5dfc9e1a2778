"""The command line, as a person or a script uses it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import HOOK, REPOSITORY

RECOLLECT = os.path.join(os.path.dirname(sys.executable), "recollect")


def recollect(*args: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [RECOLLECT, *args], cwd=cwd, input=stdin, capture_output=True, text=True, timeout=60, check=False
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
    done = recollect("search", "login", cwd=project)
    assert done.returncode == 0
    assert "Command: pytest tests/test_login.py · Output: fine" in done.stdout


def test_search_prints_json_for_scripts(project: Path) -> None:
    hook(tool_use(project, "make deploy"))
    found: list[dict[str, Any]] = json.loads(recollect("search", "deploy", "--json", cwd=project).stdout)
    assert found[0]["content"] == "Tool: Bash\nCommand: make deploy\nOutput: fine"
    assert found[0]["score"] == 1.0


def test_finding_nothing_is_exit_code_one_and_says_so(project: Path) -> None:
    done = recollect("search", "zebra", cwd=project)
    assert (done.returncode, done.stdout) == (1, "")
    assert "No memories found" in done.stderr
    as_json = recollect("search", "zebra", "--json", cwd=project)
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
    done = recollect(*args, cwd=project)
    assert done.returncode == 2
    assert done.stderr


def test_a_fault_of_ours_is_exit_code_three_and_in_the_log(project: Path, data: Path) -> None:
    data.mkdir(parents=True)
    (data / "recollect.db").write_bytes(b"garbage" * 1000)
    done = recollect("search", "x", cwd=project)
    assert done.returncode == 3
    assert "is damaged" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_note_is_added_shown_and_found(project: Path) -> None:
    added = recollect("add", "we use port 8080", "--tag", "infra", "--importance", "0.9", cwd=project)
    assert added.stdout.startswith("Memory created: mem_")
    memory_id = added.stdout.split()[2]
    shown = recollect("show", memory_id, cwd=project).stdout
    assert "we use port 8080" in shown
    assert "infra" in shown
    assert memory_id in recollect("search", "port", cwd=project).stdout
    again = recollect("add", "-", cwd=project, stdin="we use port 8080\n")
    assert again.stdout.startswith(f"Memory reinforced: {memory_id} (new salience: ")
    assert json.loads(recollect("show", memory_id, "--json", cwd=project).stdout)["tags"] == ["infra"]


def test_an_unknown_memory_or_session_is_not_found(project: Path) -> None:
    for command in ("show", "sessions"):
        done = recollect(command, "nope", cwd=project)
        assert (done.returncode, done.stdout) == (1, "")
        assert "nope" in done.stderr


def test_sessions_are_listed_and_told_in_order(project: Path) -> None:
    base: dict[str, object] = {"session_id": "s1", "cwd": str(project)}
    hook(base | {"hook_event_name": "UserPromptSubmit", "prompt": "fix the door"})
    hook(tool_use(project, "open door"))
    listed = recollect("sessions", cwd=project).stdout
    assert "fix the door" in listed
    assert "active" in listed
    told = recollect("sessions", "s1", cwd=project).stdout
    assert told.index("> fix the door") < told.index("Command: open door")
    as_json = json.loads(recollect("sessions", "s1", "--json", cwd=project).stdout)
    assert [prompt["prompt"] for prompt in as_json["prompts"]] == ["fix the door"]


def test_the_beginning_of_an_id_names_a_session_unless_it_fits_two(project: Path) -> None:
    for session in ("abc-1", "abc-2", "xyz"):
        hook(tool_use(project, f"echo {session}", session))
    assert "Command: echo xyz" in recollect("sessions", "x", cwd=project).stdout
    assert "Command: echo abc-2" in recollect("sessions", "abc-2", cwd=project).stdout
    vague = recollect("sessions", "abc", cwd=project)
    assert vague.returncode == 2
    assert "abc-1, abc-2" in vague.stderr


def test_a_pipe_gets_plain_text_and_a_terminal_gets_colours(project: Path) -> None:
    recollect("add", "colour me", cwd=project)
    assert "\x1b" not in recollect("search", "colour", cwd=project).stdout
    script = ["script", "-qec", f"{RECOLLECT} search colour", "/dev/null"]
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
    recollect("add", "-", cwd=project, stdin=evil)
    hook(tool_use(project, evil, f"session {evil}"))
    hook(
        {
            "hook_event_name": "UserPromptSubmit",
            "session_id": f"session {evil}",
            "cwd": str(project),
            "prompt": evil,
        }
    )
    memory_id = recollect("search", "evil", cwd=project).stdout.split()[1]
    commands = [
        ["search", "evil"],
        ["show", memory_id],
        ["sessions"],
        ["sessions", "session"],
        ["show", evil[5:]],
    ]
    for command in [*commands, *([*command, "--json"] for command in commands)]:
        ran = recollect(*command, cwd=project)
        assert "\x1b" not in ran.stdout + ran.stderr
        assert "\x9b" not in ran.stdout + ran.stderr
    assert "[red]markup[/red]" in recollect("show", memory_id, cwd=project).stdout


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_narrow_terminal_shortens_what_was_asked_and_never_the_id(columns: int, project: Path) -> None:
    base: dict[str, object] = {"session_id": "0123456789", "cwd": str(project)}
    hook(base | {"hook_event_name": "UserPromptSubmit", "prompt": "make it so " * 20})
    script = ["script", "-qec", f"stty cols {columns}; {RECOLLECT} sessions", "/dev/null"]
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"}
    seen = subprocess.run(script, cwd=project, env=env, capture_output=True, text=True, check=False).stdout
    plain = re.sub(r"\x1b\[[0-9;]*m", "", seen).splitlines()
    assert plain[1].startswith("01234567  20")
    assert [line for line in plain if len(line) > columns] == []


def test_a_reader_that_has_had_enough_is_no_error(project: Path) -> None:
    for number in range(30):
        recollect("add", f"walrus number {number}", cwd=project)
    command = f"{RECOLLECT} search walrus --limit 30 | head -1; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", command], cwd=project, capture_output=True, text=True, check=False)
    assert (ran.stdout.splitlines()[-1], ran.stderr) == ("0", "")


def test_a_disk_too_full_to_print_on_is_one_sentence(project: Path) -> None:
    recollect("add", "walrus", cwd=project)
    ran = subprocess.run(
        ["sh", "-c", f"{RECOLLECT} search walrus >/dev/full"],
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
    closed = ["sh", "-c", f"{RECOLLECT} add the walrus >&- 2>&- <&-"]
    assert subprocess.run(closed, cwd=project, check=False).returncode == 0
    assert recollect("search", "walrus", cwd=project).returncode == 0


def test_a_folder_that_is_gone_is_said_so(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = ["sh", "-c", f"rmdir '{gone}'; {RECOLLECT} sessions"]
    ran = subprocess.run(script, cwd=gone, capture_output=True, text=True, check=False)
    assert (ran.returncode, "the current folder is gone" in ran.stderr) == (2, True)


def test_words_and_folders_that_are_not_utf8_are_no_crash(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(odd)
    for args in (["add", "a walrus"], ["search", "walrus"], ["sessions"]):
        ran = subprocess.run([RECOLLECT, *args], cwd=odd, capture_output=True, text=True, check=False)
        assert ran.returncode in (0, 1)
        assert "fault of recollect" not in ran.stderr
    named = subprocess.run(
        [RECOLLECT, "search", "walrus", "--project", odd], capture_output=True, check=False
    )
    assert named.returncode == 0
    shown = subprocess.run([RECOLLECT, "show", b"\xff"], cwd=odd, capture_output=True, text=True, check=False)
    assert (shown.returncode, "There is no memory" in shown.stderr) == (1, True)


def test_a_locale_too_small_for_our_signs_still_gets_an_answer(project: Path) -> None:
    env = os.environ | {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = subprocess.run(
        [RECOLLECT, "doctor"], cwd=project, env=env, capture_output=True, text=True, check=False
    )
    assert "canary" in ran.stdout
    assert "Error" not in ran.stderr


def test_a_folder_that_cannot_be_used_is_not_called_our_fault(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_HOME", "/dev/null/nowhere")
    ran = recollect("search", "x", cwd=project)
    assert ran.returncode == 3
    assert "set RECOLLECT_HOME to a folder of yours" in ran.stderr
    line = next(
        line for line in recollect("doctor", cwd=project).stdout.splitlines() if "data folder" in line
    )
    assert line.startswith("✗")


def test_standard_input_that_is_closed_is_an_empty_note(project: Path) -> None:
    command = ["sh", "-c", f"{RECOLLECT} add - <&-"]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert (ran.returncode, "empty" in ran.stderr) == (2, True)


def test_paths_are_shown_as_seen_from_the_project(project: Path) -> None:
    payload = tool_use(project, "x") | {
        "tool_name": "Read",
        "tool_input": {"file_path": f"{project}/src/auth.py"},
    }
    hook(payload | {"tool_response": {}})
    assert "Read file: src/auth.py" in recollect("search", "auth", cwd=project).stdout


def test_every_command_explains_itself(project: Path) -> None:
    commands = ["search", "show", "add", "sessions", "install", "uninstall", "doctor", "mcp"]
    overview = recollect("--help", cwd=project).stdout
    for command in commands:
        assert command in overview
        assert recollect(command, "--help", cwd=project).returncode == 0


def test_every_command_that_prints_is_known_to_capture() -> None:
    """What our own commands print in a shell must not be remembered again."""
    from recollect.intake.trace import PRINTING_COMMANDS
    from recollect.surfaces.cli.main import cli

    assert set(cli.commands) - {"install", "uninstall", "mcp"} == PRINTING_COMMANDS


def test_the_docs_name_every_command() -> None:
    text = (REPOSITORY / "docs" / "cli.md").read_text()
    overview = recollect("--help", cwd=REPOSITORY).stdout.split("Commands:")[1]
    for line in overview.strip().splitlines():
        assert f"recollect {line.split()[0]}" in text


def test_doctor_finds_everything_in_order_but_the_missing_client(project: Path, data: Path) -> None:
    done = recollect("doctor", "--json", cwd=project)
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    ours = ["python", "data folder", "disk", "settings", "canary", "database", "spool", "worker"]
    assert list(checks) == [*ours, "Claude Code", "plugin"]
    good = [name for name, check in checks.items() if check["level"] == "ok"]
    assert good == ours
    assert "not on PATH" in checks["Claude Code"]["finding"]
    assert done.returncode == 1


def test_the_canary_leaves_nothing_behind(project: Path) -> None:
    recollect("add", "stays", cwd=project)
    recollect("doctor", cwd=project)
    assert recollect("search", "canary echo", cwd=project).returncode == 1
    assert recollect("search", "stays", cwd=project).returncode == 0


def test_the_canary_does_not_take_a_real_project_with_it(
    project: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data folder may lie inside a repository; the memories of that repository are not the canary's."""
    monkeypatch.setenv("RECOLLECT_HOME", str(project / "data"))
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    recollect("add", "precious", cwd=project)
    recollect("doctor", cwd=project)
    assert recollect("search", "precious", cwd=project).returncode == 0


def test_doctor_says_what_to_do_about_a_payload_that_failed(project: Path, data: Path) -> None:
    subprocess.run(["sh", str(HOOK)], input=b"{broken", check=True)
    line = next(line for line in recollect("doctor", cwd=project).stdout.splitlines() if "spool  " in line)
    assert "1 payload could not be stored; the last: not JSON" in line
    assert f"look at {data}/spool/failed" in line


def test_doctor_sees_a_hook_that_cannot_write(project: Path, data: Path) -> None:
    data.mkdir(parents=True)
    (data / "spool").write_text("a file where the folder should be")
    done = recollect("doctor", "--json", cwd=project)
    canary = next(check for check in json.loads(done.stdout) if check["name"] == "canary")
    assert canary["level"] == "bad"
    assert done.returncode == 1


def test_doctor_names_a_setting_that_nobody_reads(project: Path, data: Path) -> None:
    data.mkdir(parents=True)
    (data / "config.toml").write_text('[log]\nlevell = "debug"\n')
    line = next(line for line in recollect("doctor", cwd=project).stdout.splitlines() if "settings" in line)
    assert "log.levell" in line


def test_doctor_reports_a_bad_setting(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_LOG_LEVEL", "loud")
    line = next(line for line in recollect("doctor", cwd=project).stdout.splitlines() if "settings" in line)
    assert "one of debug, info, warning, error" in line


def test_doctor_warns_when_others_can_read_the_data(project: Path, data: Path) -> None:
    data.mkdir(parents=True, mode=0o755)
    data.chmod(0o755)
    line = next(
        line for line in recollect("doctor", cwd=project).stdout.splitlines() if "data folder" in line
    )
    assert "chmod 700" in line


def test_without_any_home_the_cli_says_what_to_set(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    done = recollect("sessions", cwd=project)
    assert done.returncode == 2
    assert "set HOME, or RECOLLECT_HOME" in done.stderr


def demo(*args: str) -> str:
    command = [sys.executable, str(REPOSITORY / "demo" / "run.py"), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_the_demo_shows_a_search_that_finds_what_was_captured() -> None:
    shown = demo()
    assert "13 events captured" in shown
    assert "Bearer [redacted:token]" in shown
    answer = shown.split("$ recollect search")[1]
    assert "KeyError" in answer or "Sign in ignores the case" in answer


def test_nothing_in_the_demo_is_canned(tmp_path: Path) -> None:
    """Edit the sample session, and the demo tells the other story."""
    sample = (REPOSITORY / "demo" / "session.jsonl").read_text()
    changed = tmp_path / "session.jsonl"
    changed.write_text(sample.replace("Sign in ignores the case", "Pelicans ignore the weather"))
    shown = demo("--sample", str(changed), "--query", "pelicans")
    assert "Pelicans ignore the weather" in shown.split("$ recollect search")[1]
    assert "Sign in ignores the case" not in shown
    assert "No memories found" not in shown
