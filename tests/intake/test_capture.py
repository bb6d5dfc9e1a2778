"""What capture promises: what becomes a memory, with which files, and what never does."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from backstory.memory import terms
from backstory.store import life
from backstory.store.file.connection import connect, transaction
from tests.helpers.chaos import (
    NOW,
    PYTHON,
    SOURCE,
    Json,
    bash,
    contents,
    drain,
    event,
    failures,
    hook_program,
    prompt,
    put,
    rows,
    run_hook,
    tool_use,
    turns_of,
)
from tests.helpers.traces import commands, remembered, without

pytestmark = pytest.mark.slow

# --- what capture promises ----------------------------------------------------------------------------------


def test_capture_is_silent(data: Path) -> None:
    for payload, args in (
        (event("SessionStart", source="startup"), ("start",)),
        (prompt("fix it"), ("drain",)),
        (bash("make"), ()),
        (event("Stop", stop_hook_active=False), ("drain",)),
        (event("SessionEnd", reason="other"), ("end",)),
    ):
        ran = run_hook(payload, *args)
        line = b'{"systemMessage": "backstory: nothing remembered here yet"}\n' if "start" in args else b""
        assert (ran.code, ran.stdout, ran.stderr) == (0, line, b"")
    assert commands(data) == ["make"]


def test_a_memory_is_linked_to_the_session_that_created_it(data: Path) -> None:
    put(
        data,
        tool_use("Write", {"file_path": "/test/new.ts"}, "ok", session_id="test-session-link"),
        at=NOW - 5,
    )
    drain(data)
    (memory,) = rows(data, "SELECT id, session_id, sector, tier, kind FROM memories")
    assert {**memory, "id": ""} == {
        "id": "",
        "session_id": "test-session-link",
        "sector": "episodic",
        "tier": "session",
        "kind": "tool",
    }
    assert rows(data, "SELECT * FROM session_memories") == [
        {
            "session_id": "test-session-link",
            "memory_id": memory["id"],
            "usage_type": "created",
            "created_at": NOW - 5,
        }
    ]


def compact(size: int) -> str:
    """A string whose compact JSON has this many characters."""
    return "ü" * (size - 2)


@pytest.mark.parametrize("field", ["tool_response", "tool_result", "tool_output"])
@pytest.mark.parametrize(("size", "kept"), [(9_999, True), (10_000, True), (10_001, False), (500_000, False)])
def test_a_result_over_10_000_characters_makes_no_memory(
    size: int, kept: bool, field: str, data: Path
) -> None:
    payload = without(tool_use("Read", {"file_path": "/big.txt"}, None), "tool_response")
    payload[field] = compact(size)
    assert (remembered(data, payload) is not None) == kept
    assert len(rows(data, "SELECT 1 FROM events")) == 1, "it happened all the same"


BIG = "line of a file\n" * 5_000

ECHOES: list[tuple[str, Json, Json]] = [
    (
        "Write",
        {"file_path": "/big.txt", "content": BIG},
        {
            "type": "create",
            "filePath": "/big.txt",
            "content": BIG,
            "structuredPatch": [],
            "originalFile": None,
        },
    ),
    (
        "Edit",
        {"file_path": "/big.txt", "old_string": BIG, "new_string": "b", "replace_all": False},
        {
            "filePath": "/big.txt",
            "oldString": BIG,
            "newString": BIG,
            "originalFile": BIG,
            "structuredPatch": [{"oldStart": 1, "oldLines": 9, "newStart": 1, "newLines": 9, "lines": [BIG]}],
            "userModified": False,
            "replaceAll": False,
        },
    ),
    (
        "NotebookEdit",
        {"notebook_path": "/big.ipynb", "cell_id": "c1", "new_source": BIG},
        {
            "new_source": BIG,
            "cell_type": "code",
            "edit_mode": "replace",
            "notebook_path": "/big.ipynb",
            "original_file": BIG,
            "updated_file": BIG,
            "old_source": BIG,
        },
    ),
]


@pytest.mark.parametrize(("tool", "given", "result"), ECHOES, ids=[echo[0] for echo in ECHOES])
def test_the_echo_of_file_text_does_not_count(tool: str, given: Json, result: Json, data: Path) -> None:
    found = remembered(data, tool_use(tool, given, result))
    assert found is not None
    assert "line of a file" not in found


def test_what_an_edit_says_besides_the_echo_does_count(data: Path) -> None:
    assert remembered(data, tool_use("Edit", {"file_path": "/a"}, {"filePath": "/a", "note": BIG})) is None


def test_text_that_is_no_echo_counts_in_other_tools(data: Path) -> None:
    assert remembered(data, tool_use("Custom", {}, {"content": BIG})) is None


def test_the_end_of_a_session_promotes_what_is_above_0_7_and_not_what_is_at_0_7(data: Path) -> None:
    for number in range(4):
        put(data, bash(f"echo {number}"), at=NOW - 10)
    put(data, bash("echo other", session_id="session-2"), at=NOW - 10)
    drain(data)
    db = connect(str(data / "backstory.db"))
    with transaction(db):
        for number, salience in enumerate((0.69, 0.7, 0.7001, 0.95)):
            db.execute(
                "UPDATE memories SET salience = ?, last_accessed = ? WHERE content LIKE ?",
                (salience, NOW, f"%echo {number}"),
            )
        db.execute(
            "UPDATE memories SET salience = 0.99, last_accessed = ? WHERE content LIKE '%other'", (NOW,)
        )
    db.close()

    put(data, event("Stop"), at=NOW - 1)
    drain(data)
    assert rows(data, "SELECT 1 FROM memories WHERE tier = 'project'") == []
    put(data, event("SessionEnd", reason="other"), at=NOW)
    drain(data)

    tiers = rows(data, "SELECT content, tier FROM memories ORDER BY content")
    assert {row["content"].rsplit(" ", 1)[1]: row["tier"] for row in tiers} == {
        "0": "session",
        "1": "session",
        "2": "project",
        "3": "project",
        "other": "session",
    }


def test_a_reinforced_memory_outlives_its_session(data: Path) -> None:
    put(data, bash("echo important"), at=NOW - 10)
    drain(data)
    db = connect(str(data / "backstory.db"))
    with transaction(db):
        (memory_id,) = db.execute("SELECT id FROM memories").fetchone()
        for _ in range(10):
            life.reinforce(db, memory_id, 0.2, "session-1", NOW)
    db.close()
    put(data, event("SessionEnd", reason="other"), at=NOW)
    drain(data)
    assert rows(data, "SELECT tier FROM memories") == [{"tier": "project"}]


# --- what the user said, and what the files were ------------------------------------------------------------


def test_a_prompt_begins_a_turn_that_is_a_memory_of_its_session(data: Path) -> None:
    put(data, prompt("mend the door"), at=NOW)
    drain(data)
    (found,) = rows(data, "SELECT * FROM memories")
    assert (found["kind"], found["source"], found["content"]) == ("turn", "session", "asked: mend the door")
    assert (found["sector"], found["tier"], found["title"]) == ("episodic", "project", "mend the door")
    (session,) = rows(data, "SELECT number FROM sessions")
    assert rows(data, "SELECT thread, text FROM turn_pieces") == [
        {"thread": session["number"], "text": "mend the door"}
    ]
    links = rows(data, "SELECT session_id, usage_type FROM session_memories")
    assert links == [{"session_id": "session-1", "usage_type": "created"}]


@pytest.mark.parametrize("said", ["yes", "go on", "ok!", "👍 👍 👍"])
def test_a_short_prompt_begins_a_turn_as_well(said: str, data: Path) -> None:
    """What comes of it may be much."""
    put(data, prompt(said), at=NOW)
    drain(data)
    assert [turn.prompts for turn in turns_of(data)] == [[[said, "typed"]]]
    assert rows(data, "SELECT prompt FROM prompts") == [{"prompt": said}]


def test_a_prompt_in_chinese_is_found_by_a_part_of_it(data: Path) -> None:
    put(data, prompt("修复登录错误"), at=NOW)
    drain(data)
    match = " OR ".join(terms.query_terms("登录"))
    assert len(rows(data, "SELECT 1 FROM memories_fts WHERE memories_fts MATCH ?", match)) == 1


def test_a_long_prompt_is_kept_whole_and_found_by_its_end(data: Path) -> None:
    text = "many words " * 1_000 + "and a walrus"
    put(data, prompt(text), at=NOW)
    drain(data)
    assert rows(data, "SELECT prompt FROM prompts") == [{"prompt": text}]
    assert [turn.prompts for turn in turns_of(data)] == [[[text, "pasted"]]]
    assert len(rows(data, "SELECT 1 FROM memories_fts WHERE memories_fts MATCH 'walrus'")) == 1


def test_the_report_of_a_background_agent_is_no_prompt(data: Path) -> None:
    put(data, prompt("<task-notification>the agent is done with it"), at=NOW)
    drain(data)
    (turn,) = turns_of(data)
    assert (turn.prompts, turn.agents) == ([], [["in the background", "the agent is done with it"]])


def test_a_drain_that_reads_files_and_prompts_loads_nothing_slow(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("x = 1")
    put(data, tool_use("Read", {"file_path": str(file)}, {}, cwd=str(tmp_path)))
    put(data, prompt("what does maxRetryCount do?"))
    put(data, event("SessionEnd", reason="other"))
    program = f"{hook_program()}; print('\\n'.join(sys.modules))"
    ran = subprocess.run(
        [PYTHON, "-I", "-S", "-c", program, SOURCE, "drain"], capture_output=True, text=True, check=True
    )
    assert (len(contents(data)), len(turns_of(data))) == (1, 1)
    assert "null" not in rows(data, "SELECT hashes FROM memories WHERE kind = 'tool'")[0]["hashes"]
    heavy = "contextlib dataclasses hashlib logging numpy pathlib subprocess threading typing _hashlib _ssl"
    assert sorted(set(ran.stdout.split()) & set(heavy.split())) == []


def git_hash(path: Path) -> str:
    return subprocess.run(
        ["git", "hash-object", "--no-filters", str(path)], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.parametrize("content", [b"", b"x = 1\n", b"\x00\xff" * 70_000, "größe\r\n".encode()])
def test_a_trace_keeps_what_git_would_call_its_file(content: bytes, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_bytes(content)
    put(data, tool_use("Read", {"file_path": str(file)}, {}, cwd=str(tmp_path)))
    drain(data)
    (found,) = rows(data, "SELECT files, hashes FROM memories")
    assert json.loads(found["files"]) == [str(file)]
    assert json.loads(found["hashes"]) == [git_hash(file)]


def test_a_file_that_is_missing_too_large_or_no_file_has_no_hash(data: Path, tmp_path: Path) -> None:
    large, pipe = tmp_path / "large", tmp_path / "pipe"
    with open(large, "wb") as file:
        file.truncate(4_000_001)
    os.mkfifo(pipe)
    for path in (tmp_path / "gone", large, pipe, tmp_path):
        put(data, tool_use("Read", {"file_path": str(path)}, {}, cwd=str(tmp_path)))
    put(data, tool_use("Read", {"file_path": "/a\0b"}, {}, cwd=str(tmp_path)))
    drain(data)
    assert {row["hashes"] for row in rows(data, "SELECT hashes FROM memories")} == {"[null]"}
    assert failures(data) == {}


def test_the_same_name_in_two_folders_is_two_files(data: Path, tmp_path: Path) -> None:
    """Paths in the client's lists are as seen from the session's folder; one batch may hold several."""
    for name in ("one", "two"):
        (tmp_path / name / "src").mkdir(parents=True)
        (tmp_path / name / "src" / "main.py").write_text(name)
        payload = tool_use("Glob", {"pattern": "*"}, {"filenames": ["src/main.py"]}, cwd=str(tmp_path / name))
        put(data, payload | {"session_id": name})
    drain(data)
    found = rows(data, "SELECT session_id, hashes FROM memories ORDER BY session_id")
    assert {row["session_id"]: json.loads(row["hashes"]) for row in found} == {
        name: [git_hash(tmp_path / name / "src" / "main.py")] for name in ("one", "two")
    }


def test_after_the_end_of_a_session_nobody_holds_the_store_open(data: Path) -> None:
    run_hook(bash("make"))
    run_hook(event("SessionEnd", reason="other"), "end")

    # Neither -wal nor -shm: whoever closes last takes them away. (Looking into the store would do so too.)
    assert [path.name for path in data.glob("backstory.db*")] == ["backstory.db"]
    assert commands(data) == ["make"]
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("no /proc here to look into")
    holders = []
    for process in os.listdir("/proc"):
        try:
            handles = os.listdir(f"/proc/{process}/fd") if process.isdigit() else []
            targets = [os.readlink(f"/proc/{process}/fd/{handle}") for handle in handles]
        except OSError:
            continue  # gone meanwhile
        holders += [process for target in targets if target.startswith(str(data))]
    assert holders == []


def test_sessions_that_run_side_by_side_keep_their_memories_apart(data: Path) -> None:
    for number in range(6):
        session = f"session-{number % 2}"
        put(
            data, bash(f"echo {number}", session_id=session, cwd=f"/projects/{session}"), at=NOW - 10 + number
        )
    put(data, prompt("zero", session_id="session-0", cwd="/projects/session-0"), at=NOW - 20)
    put(data, event("SessionEnd", session_id="session-1", cwd="/projects/session-1"), at=NOW - 1)
    drain(data)

    found = rows(data, "SELECT session_id, content, project_id FROM memories ORDER BY created_at")
    assert (found[0]["session_id"], found.pop(0)["content"]) == ("session-0", "asked: zero")
    assert [(row["session_id"], row["content"][-1]) for row in found] == [
        (f"session-{number % 2}", str(number)) for number in range(6)
    ]
    assert len({row["project_id"] for row in found}) == 2
    links = rows(
        data,
        "SELECT 1 FROM session_memories l JOIN memories m ON m.id = l.memory_id"
        " WHERE l.session_id <> m.session_id",
    )
    assert links == []
    assert rows(data, "SELECT id, status, user_prompt FROM sessions ORDER BY id") == [
        {"id": "session-0", "status": "active", "user_prompt": "zero"},
        {"id": "session-1", "status": "completed", "user_prompt": None},
    ]


# --- no secret, whole or in part ---------------------------------------------------------------------------


SPLIT = "ghp_" + "9fKq2LmZx8Rv4TnYw7Bc3HdJ6sPa1GeUi5Qo"

HALVED: dict[str, Json] = {
    # What is cut off, and what redaction and fences take out before the cut, must not leave half a secret.
    "at the cut of a prompt": prompt("x " * (50_000 - 10) + SPLIT + " y" * 10_000),
    "at the end of the window": prompt("x " * (52_000 - 10) + SPLIT + " y" * 10_000),
    "moved to the cut by a fence": prompt(
        "<backstory>" + "z" * 60_000 + "</backstory> " + "x " * (22_000 - 10) + SPLIT + " y" * 90_000
    ),
    "moved to the cut by a private part": prompt(
        "<private>" + "z" * 60_000 + "</private> " + "x " * (22_000 - 10) + SPLIT + " y" * 90_000
    ),
    "in a command": bash("echo " + "x " * 90 + SPLIT),
    "in the input of any tool": tool_use("Custom", {"a": "x" * 280, "b": SPLIT}, "ok"),
    **{
        f"beside its name at the cut, {length} before it": tool_use(
            "Custom", {"q": "a " * (length // 2), "token": "qwertyuiopasdfghjkLZXCV8842xx"}, "ok"
        )
        for length in range(230, 300, 6)
    },
    "as a name": tool_use("Custom", {SPLIT: "x"}, "ok"),
    "as an id": bash("echo", tool_use_id=SPLIT),
    "as a session": bash("echo", session_id=SPLIT),
    "as a tool": tool_use(SPLIT, {}, "ok"),
}


@pytest.mark.parametrize("payload", HALVED.values(), ids=HALVED.keys())
def test_no_part_of_a_secret_reaches_the_store(payload: Json, data: Path) -> None:
    put(data, payload)
    assert drain(data).stored == 1
    for path in data.glob("backstory.db*"):
        for part in (SPLIT[:14], "qwertyuiop"):
            assert part.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    "payload",
    [
        tool_use("Write", {"file_path": {"password": "hunter2xyz"}}, {}),
        tool_use("Bash", {"command": {"api_key": "hunter2xyz"}}, {"stdout": "", "stderr": ""}),
        tool_use("Bash", {"command": ["mysql", "--password", "hunter2xyz"]}, {"stdout": "", "stderr": ""}),
        tool_use("Custom", {"password": "hunter2xyz", "user": "ada"}, {}),
        tool_use("Grep", {"pattern": {"token": "hunter2xyz"}}, {}),
    ],
)
def test_a_value_beside_a_name_that_gives_it_away_is_redacted_whatever_its_type(
    payload: Json, data: Path
) -> None:
    content = remembered(data, payload)
    assert content is not None
    assert "hunter2xyz" not in content


# --- not the user's words, and not ours ---------------------------------------------------------------------


NOTIFICATION = (
    "<task-notification>\n<task-id>a70a12473b138a73d</task-id>\n<status>completed</status>\n"
    '<summary>Agent "sub job" finished</summary>\n<result>sub done</result>\n</task-notification>'
)


def test_the_report_of_a_background_agent_is_not_kept_as_the_user_s_words(data: Path) -> None:
    put(data, prompt(NOTIFICATION), at=NOW - 2)
    put(data, prompt("and what does <task-notification> mean?"), at=NOW - 1)
    drain(data)
    said = "and what does <task-notification> mean?"
    assert [row["prompt"] for row in rows(data, "SELECT prompt FROM prompts")] == [said]
    assert rows(data, "SELECT user_prompt FROM sessions") == [{"user_prompt": said}]


def test_the_first_thing_the_user_asked_for_stays_with_the_session(data: Path) -> None:
    for number, text in enumerate(("", "fix the login", "and the logout")):
        put(data, prompt(text), at=NOW - 10 + number)
    drain(data)
    assert rows(data, "SELECT user_prompt FROM sessions") == [{"user_prompt": "fix the login"}]


@pytest.mark.parametrize(
    "tool",
    [
        "mcp__plugin_backstory_memory__memory_search",
        "mcp__plugin_backstory_docmem__docmem_find",
        "mcp__backstory__x",
    ],
)
def test_our_own_tools_leave_no_trace(tool: str, data: Path) -> None:
    assert remembered(data, tool_use(tool, {"query": "login"}, [{"type": "text", "text": "old"}])) is None


def test_the_tools_of_others_do(data: Path) -> None:
    payload = tool_use("mcp__plugin_probe_echo__shout", {"t": "x"}, [{"type": "text", "text": "SHOUT"}])
    assert remembered(data, payload) == 'Tool: mcp__plugin_probe_echo__shout\nInput: {"t":"x"}'


@pytest.mark.parametrize(
    "command",
    [
        "backstory search login",
        "cd /x && backstory search login | head",
        "/opt/bin/backstory show mem_1",
        "BACKSTORY_HOME=/x backstory show mem_1",
        "uv run backstory search login",
        "if true; then sudo backstory doctor; fi",
        "cat ids | xargs -n1 backstory show",
        "python3 -m backstory search login",
        "echo $(backstory search login)",
        "echo a; backstory sessions",
    ],
)
def test_what_our_own_command_prints_is_not_remembered_again(command: str, data: Path) -> None:
    assert remembered(data, bash(command, stdout="an old memory")) == f"Tool: Bash\nCommand: {command}"


@pytest.mark.parametrize(
    "command", ["grep backstory setup.py", "ls backstory", "cd backstory && make search"]
)
def test_a_command_that_only_mentions_us_is_remembered_with_its_output(command: str, data: Path) -> None:
    assert remembered(data, bash(command, stdout="fine")) == f"Tool: Bash\nCommand: {command}\nOutput: fine"


def test_what_our_own_command_printed_before_it_failed_is_not_remembered_again(data: Path) -> None:
    failed = event(
        "PostToolUseFailure",
        tool_name="Bash",
        tool_input={"command": "backstory search login && false"},
        tool_use_id="toolu_1",
        error="Exit code 1\nan old memory",
    )
    assert "an old memory" not in str(remembered(data, failed))


RECALLED = '<backstory source="backstory memory_search" note="stored data">\nOLD MEMORY\n</backstory>'


def test_recalled_text_is_stripped_from_prompts(data: Path) -> None:
    put(data, prompt(f"before {RECALLED} after"), at=NOW - 2)
    unclosed = "<backstory source=backstory,unclosed> OLD MEMORY"
    put(data, prompt(f"twice {RECALLED} and {unclosed}"), at=NOW - 1)
    drain(data)
    assert [row["prompt"] for row in rows(data, "SELECT prompt FROM prompts ORDER BY created_at")] == [
        "before [recalled memory] after",
        "twice [recalled memory] and [recalled memory]",
    ]


@pytest.mark.parametrize(
    "payload",
    [
        bash("cat notes", stdout=f"a {RECALLED} b"),
        bash(f"echo '{RECALLED}'", stdout="ok"),
        tool_use("Custom", {"text": RECALLED, "list": [{"deep": RECALLED}]}, {}),
        event(
            "PostToolUseFailure", tool_name="Bash", tool_input={"command": "x"}, error=f"Exit 1 {RECALLED}"
        ),
    ],
    ids=["output", "command", "input", "error"],
)
def test_recalled_text_is_stripped_from_tool_uses(payload: Json, data: Path) -> None:
    found = remembered(data, payload)
    assert found is not None
    assert "[recalled memory]" in found
    assert "OLD MEMORY" not in found
