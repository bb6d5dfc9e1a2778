"""The command line: what terminals, pipes and closed streams get."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from backstory.store import life
from backstory.store.file.connection import connect
from tests.conftest import Run
from tests.helpers.commands import BACKSTORY, backstory, hook, tool_use
from tests.helpers.embedder import loaded_embedder  # noqa: F401  for all tests here
from tests.helpers.terminal import plain_lines

pytestmark = pytest.mark.slow


@pytest.fixture
def project(project: str) -> Path:
    return Path(project)


def test_a_pipe_gets_plain_text_and_a_terminal_gets_colours(project: Path, run: Run) -> None:
    run("add", "colour me")
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


def test_nothing_that_was_captured_can_drive_the_terminal(project: Path, run: Run) -> None:
    evil = "evil \x1b[2J\x1b]0;title\x07 [red]markup[/red] \x9b31m"
    subprocess.run(["git", "init", "-q"], check=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/\x1b[2Jbranch\n")
    run("add", "-", stdin=evil)
    hook(tool_use(project, evil, f"session {evil}"))
    hook(
        {
            "hook_event_name": "UserPromptSubmit",
            "session_id": f"session {evil}",
            "cwd": str(project),
            "prompt": evil,
        }
    )
    memory_id = run("search", "evil").out.split()[1]
    commands = [
        ["search", "evil"],
        ["show", memory_id],
        ["sessions"],
        ["sessions", "session"],
        ["show", evil[5:]],
    ]
    for command in [*commands, *([*command, "--json"] for command in commands)]:
        ran = run(*command)
        assert "\x1b" not in ran.out + ran.err
        assert "\x9b" not in ran.out + ran.err
    assert "[red]markup[/red]" in run("show", memory_id).out


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_narrow_terminal_shortens_what_was_asked_and_never_the_id(columns: int, project: Path) -> None:
    base: dict[str, object] = {"session_id": "0123456789", "cwd": str(project)}
    hook(base | {"hook_event_name": "UserPromptSubmit", "prompt": "make it so " * 20})
    plain = plain_lines("sessions", project, columns)
    assert plain[1].startswith("01234567  20")
    assert [line for line in plain if len(line) > columns] == []
    assert len(plain[1][plain[0].index("about") :]) >= 20
    assert "make it so make" in plain[1]
    (session,) = [" ".join(lines) for lines in [plain_lines("sessions 01234567", project, columns)]]
    assert " ".join(session.split()).startswith("0123456789 active, 1 turn, 0 memories, 0 traces")


@pytest.mark.parametrize("columns", [50, 60, 80])
def test_a_narrow_terminal_never_cuts_a_score_or_the_name_of_a_backup(
    columns: int, project: Path, run: Run
) -> None:
    guide = f"# {'The long guide to ' * 5}\n\n## {'feeding ' * 9}\n\nfeed the walrus"
    (project / "guide.md").write_text(guide)
    run("docs", "ingest", "guide.md")
    run("add", "the walrus likes fish")
    run("backup", "now")

    def seen(command: str) -> list[str]:
        lines = plain_lines(command, project, columns)
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
        run("add", f"walrus number {number} {'and its song ' * 300}")
    for command in ("search walrus --limit 30", "export", "list --json --limit 30"):
        read = f"{BACKSTORY} {command} | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}"
        ran = subprocess.run(["bash", "-c", read], cwd=project, capture_output=True, text=True, check=False)
        assert (command, ran.stdout, ran.stderr) == (command, "0\n", "")


def test_a_disk_too_full_to_print_on_is_one_sentence(project: Path, run: Run) -> None:
    run("add", "walrus")
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


def test_with_everything_closed_a_note_is_still_kept(project: Path, run: Run) -> None:
    closed = ["sh", "-c", f"{BACKSTORY} add the walrus >&- 2>&- <&-"]
    assert subprocess.run(closed, cwd=project, check=False).returncode == 0
    assert run("search", "walrus").code == 0


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


def test_standard_input_that_is_closed_is_an_empty_note(project: Path) -> None:
    command = ["sh", "-c", f"{BACKSTORY} add - <&-"]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert (ran.returncode, "empty" in ran.stderr) == (2, True)


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


def test_at_80_columns_lines_break_between_words_and_their_rest_is_indented(project: Path, run: Run) -> None:
    words = "the heron stands in the shallow pond and waits for slow and careless fish to swim along "
    run("add", words * 2)
    hook(tool_use(project, "ls", "session-1"))
    memory_id = run("list", "--json").json[0]["id"]
    for command in ("list", "config", "stats", f"why {memory_id}", "status"):
        whole = set(" ".join(run(*command.split()).out.split()).split())
        lines = plain_lines(command, project, 80)
        assert [line for line in lines if len(line) > 80] == [], command
        assert {word for line in lines for word in line.split() if "…" not in word} <= whole, command
    lines = plain_lines("config", project, 60)
    (about,) = [number for number, line in enumerate(lines) if "permissions" in line]
    assert lines[about + 1].startswith("    its own tools") and lines[about + 2].startswith("    ")


def test_a_person_sees_a_tag_as_it_was_written_and_a_pipe_gets_none(project: Path, run: Run) -> None:
    memory_id = run("add", "what does <backstory> print?").id
    for command in ("list", f"show {memory_id}", f"why {memory_id}"):
        assert "&lt;backstory>" in run(*command.split()).out
        assert any("does <backstory> print" in line for line in plain_lines(command, project, 80)), command
