"""Events become turns, through the real spool and drain."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backstory.clients import claude_code
from backstory.memory.turn import COMPLETE, INTERRUPTED, OPEN, OWN_COMMAND, Turn
from backstory.store import life, sessions, turns
from backstory.store.file.connection import connect
from tests.helpers.chaos import (
    DAY,
    NOW,
    PYTHON,
    SOURCE,
    Json,
    assert_sound,
    bash,
    drain,
    event,
    prompt,
    put,
    rows,
    settle,
    spooled,
    suicidal_at_statement,
    tool_use,
    turns_of,
)
from tests.helpers.traces import commands

SECRET = "ghp_" + "9fKq2LmZx8Rv4TnYw7Bc3HdJ6sPa1GeUi5Qo"
COMMITTED = "[main abc1234] mend the door\n 1 file changed, 1 insertion(+)"


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A repository."""
    git = tmp_path / "app" / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    return str(tmp_path / "app")


def stop(text: str = "", **fields: object) -> Json:
    return event("Stop", **{"stop_hook_active": False, "last_assistant_message": text, **fields})


def failure(command: str, error: str, **fields: object) -> Json:
    given = {"tool_name": "Bash", "tool_input": {"command": command}, "error": error}
    return event("PostToolUseFailure", **{**given, **fields})


def edit(path: str, **fields: object) -> Json:
    return tool_use("Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, {}, **fields)


def question(asked: str, answer: object, **fields: object) -> Json:
    given = {"questions": [{"question": asked, "header": "h", "options": [], "multiSelect": False}]}
    return tool_use("AskUserQuestion", given, {**given, "answers": {asked: answer}}, **fields)


def happened(data: Path, *payloads: Json, at: int = NOW) -> list[Turn]:
    """One event after the other, all drained at once; the turns that there are now."""
    for number, payload in enumerate(payloads):
        put(data, payload, at=at + number)
    drain(data, now=at + len(payloads))
    return turns_of(data)


def the_turn(data: Path, *payloads: Json) -> Turn:
    (turn,) = happened(data, *payloads)
    return turn


def found(data: Path, word: str) -> int:
    return len(rows(data, "SELECT 1 FROM memories_fts WHERE memories_fts MATCH ?", word))


# --- from the prompt to the last word -----------------------------------------------------------------------


def test_a_turn_begins_with_its_prompt_and_is_found_before_it_ends(data: Path) -> None:
    turn = the_turn(data, prompt("where does the walrus sleep?"))
    assert (turn.state, turn.asked, turn.answer) == (OPEN, "where does the walrus sleep?", "")
    assert found(data, "walrus") == 1


def test_a_turn_is_complete_with_its_last_message(data: Path, root: str) -> None:
    here = {"cwd": root}
    turn = the_turn(
        data,
        prompt("mend the door", **here),
        tool_use("Read", {"file_path": f"{root}/hinge.py"}, {}, **here),
        tool_use("Grep", {"pattern": "hinge"}, {}, **here),
        edit(f"{root}/src/door.py", **here),
        edit("/elsewhere/door.py", **here),
        stop("The hinge was loose.", **here),
    )
    assert (turn.state, turn.answer, turn.branch) == (COMPLETE, "The hinge was loose.", "main")
    assert (turn.edited, turn.read, turn.searched) == (["src/door.py"], ["hinge.py"], ["hinge"])
    assert (turn.started_at, turn.ended_at) == (NOW, NOW + 5)
    (memory,) = rows(data, "SELECT * FROM memories WHERE kind = 'turn'")
    assert (memory["id"], memory["title"], memory["created_at"]) == (turn.id, "mend the door", NOW)
    assert memory["files"] == '["src/door.py"]'
    assert memory["content"].startswith("asked: mend the door\n\nanswered: The hinge was loose.")
    assert found(data, "loose") == 1


def test_every_prompt_after_a_stop_begins_another_turn(data: Path) -> None:
    found = happened(data, prompt("one"), stop("first"), prompt("two"), stop("second"))
    assert [(turn.asked, turn.answer) for turn in found] == [("one", "first"), ("two", "second")]


def test_what_is_said_after_a_stop_hook_sent_it_on_is_no_answer(data: Path) -> None:
    turn = the_turn(
        data,
        prompt("mend the door"),
        stop("The hinge was loose."),
        bash("backstory sync"),
        stop("CLAUDE.md is up to date.", stop_hook_active=True),
    )
    assert (turn.answer, turn.state) == ("The hinge was loose.", COMPLETE)


def test_tools_after_a_stop_belong_to_that_turn(data: Path, root: str) -> None:
    first = [prompt("mend", cwd=root), stop("done", cwd=root)]
    (turn,) = happened(data, *first, edit(f"{root}/late.py", cwd=root))
    assert (turn.edited, turn.state) == (["late.py"], COMPLETE)


def test_a_second_answer_in_the_same_turn_is_added(data: Path) -> None:
    turn = the_turn(data, prompt("look"), stop("Started."), stop("The agent is done."), stop("Started."))
    assert turn.answer == "Started.\n\nThe agent is done."


def test_what_the_last_answer_asks_is_read_where_the_turn_ends(data: Path) -> None:
    turn = the_turn(data, prompt("look"), stop("It is loose. Shall I oil it?"), stop("Next: paint the door."))
    assert turn.closing == ["next: paint the door."]


def test_a_prompt_without_a_stop_is_joined_by_the_next_one(data: Path) -> None:
    """Esc fires no hook."""
    turn = the_turn(data, prompt("mend the window"), bash("ls"), prompt("no, the door"), stop("Mended."))
    assert (turn.asked, turn.answer) == ("mend the window / no, the door", "Mended.")


@pytest.mark.parametrize(("payloads", "state"), [([], INTERRUPTED), ([stop("done")], COMPLETE)])
def test_the_end_of_a_session_interrupts_only_what_is_open(
    payloads: list[Json], state: str, data: Path
) -> None:
    turn = the_turn(data, prompt("mend"), *payloads, event("SessionEnd", reason="other"))
    assert turn.state == state


def test_a_turn_is_interrupted_after_a_day_of_silence(data: Path) -> None:
    happened(data, prompt("mend the walrus"))
    settle(data, now=NOW + DAY)
    assert turns_of(data)[0].state == OPEN
    settle(data, now=NOW + DAY + 1)
    (turn,) = turns_of(data)
    assert turn.state == INTERRUPTED
    assert rows(data, "SELECT content FROM memories") == [
        {"content": "asked: mend the walrus\n\ninterrupted"}
    ]
    after = happened(data, prompt("go on"), at=NOW + 2 * DAY)
    assert [turn.asked for turn in after] == ["mend the walrus", "go on"]


def test_the_report_of_a_background_task_begins_a_turn_without_a_prompt(data: Path) -> None:
    report = prompt("<task-notification>\n<summary>Tests</summary>\n<result>3 passed</result>")
    first, second = happened(data, prompt("start them"), stop("Started."), report, stop("All passed."))
    assert (first.answer, second.answer) == ("Started.", "All passed.")
    assert (second.prompts, second.agents) == ([], [["in the background", "Tests 3 passed"]])


def test_what_an_event_says_late_goes_to_the_turn_of_its_time(data: Path, root: str) -> None:
    happened(data, prompt("one", cwd=root), at=NOW)
    happened(data, stop("first", cwd=root), at=NOW + 10)
    happened(data, prompt("two", cwd=root), at=NOW + 20)
    first, second = happened(data, edit(f"{root}/late.py", cwd=root), at=NOW + 5)
    assert (first.edited, second.edited) == (["late.py"], [])
    first, second = happened(data, stop("second", cwd=root), at=NOW + 30)
    assert (second.started_at, second.answer) == (NOW + 20, "second")


def test_traces_prompts_and_items_say_of_which_turn_they_are(data: Path, root: str) -> None:
    happened(data, prompt("first", cwd=root), bash("ls", "one", cwd=root), stop("1", cwd=root))
    happened(data, prompt("second", cwd=root), bash("ls -l", "two", cwd=root), stop("2"), at=NOW + 100)
    happened(data, prompt("/backstory:recall x", cwd=root), at=NOW + 200)
    first, second = happened(data, bash("ls -la", "late", cwd=root), at=NOW + 50)
    of_turns = {"first": first.id, "second": second.id}
    for query in (
        "SELECT substr(content, instr(content, 'ls')) AS what, turn FROM memories WHERE kind = 'tool'",
        "SELECT tool_input ->> 'command' AS what, turn FROM observation_queue WHERE action = 'shell'",
    ):
        found = {row["what"].splitlines()[0]: row["turn"] for row in rows(data, query)}
        assert found == {"ls": of_turns["first"], "ls -l": of_turns["second"], "ls -la": of_turns["first"]}
    said = {row["prompt"]: row["turn"] for row in rows(data, "SELECT prompt, turn FROM prompts")}
    assert said == of_turns | {"/backstory:recall x": None}


def test_a_trace_that_is_stored_before_its_prompt_is_of_its_turn(data: Path) -> None:
    happened(data, bash("ls", "one"), at=NOW + 1)
    put(data, prompt("first"), at=NOW)
    (turn,) = happened(data, stop("1"), at=NOW + 5)
    assert turn.started_at == NOW
    happened(data, bash("ls -l", "two"), at=NOW + 6)
    turned = "SELECT turn FROM memories WHERE kind = 'tool' UNION ALL SELECT turn FROM observation_queue"
    assert {row["turn"] for row in rows(data, turned)} == {turn.id}


def test_a_prompt_is_not_joined_to_a_turn_that_was_forgotten(data: Path) -> None:
    turn = the_turn(data, prompt("forget the walrus"))
    db = connect(str(data / "backstory.db"))
    life.forget(db, turn.id, None, NOW + 5)
    db.close()
    (after,) = happened(data, prompt("mend the door"), stop("Mended."), at=NOW + 10)
    assert (after.asked, after.answer) == ("mend the door", "Mended.")


# --- what is kept of it -------------------------------------------------------------------------------------


def test_an_answer_is_kept_whole_and_of_a_longer_one_it_is_said_what_was_cut(data: Path) -> None:
    whole = ("a word " * 20_000)[:100_000]
    assert the_turn(data, prompt("tell"), stop(whole)).answer == whole
    _, turn = happened(data, prompt("more"), stop("begin " + whole + " end"), at=NOW + 10)
    assert turn.answer.startswith("begin ")
    assert turn.answer.endswith(" end")
    assert "[... 10 of 100,010 characters left out ...]" in turn.answer
    assert_sound(data)


def test_nothing_secret_is_in_a_turn(data: Path, root: str) -> None:
    here = {"cwd": root}
    plan = {"plan": f"use {SECRET}", "isAgent": False, "filePath": "/p.md"}
    happened(
        data,
        prompt(f"use {SECRET} <private>the pin</private>", **here),
        edit(f"{root}/{SECRET}/a.py", **here),
        bash(f"rm {root}/{SECRET}", **here),
        bash("git commit -m x", f"[main abc1234] add {SECRET}", **here),
        failure(f"curl -H {SECRET} | pytest", f"Exit code 1\nerror: {SECRET}", **here),
        question(f"Is {SECRET} right?", f"no, {SECRET}1", **here),
        tool_use("ExitPlanMode", {}, plan, **here),
        tool_use("Agent", {"description": SECRET}, {"content": [{"type": "text", "text": SECRET}]}, **here),
        event("PostCompact", compact_summary=f"the token is {SECRET}", **here),
        stop(f"The token is {SECRET}.", **here),
    )
    stored = rows(
        data, "SELECT m.content || m.files || t.record AS text FROM turns t JOIN memories m USING (row)"
    )
    stored += rows(data, "SELECT group_concat(text) AS text FROM turn_pieces")
    assert len(stored) == 2
    for row in stored:
        assert SECRET not in row["text"]
        assert "the pin" not in row["text"]
    (turn,) = turns_of(data)
    assert turn.commits and turn.failed and turn.choices and turn.plans and turn.agents and turn.compactions


@pytest.mark.parametrize(
    "said",
    [
        event(
            "PostCompact", compact_summary="6. All user messages:\n - <private>\n1. hidden\n</private>\n7. x"
        ),
        event("PostCompact", compact_summary="<analysis>a <private>b </analysis> hidden</private> end"),
        question("password", "hiddenTr0ub4dor"),
        question("Database password:", "hiddenTr0ub4dor"),
        tool_use(
            "Agent", {"description": "d"}, {"content": [{"type": "text", "text": "password:\nhiddenTr0ub4"}]}
        ),
        tool_use("Agent", {"description": "d"}, {"password": "hiddenTr0ub4dor"}),
        failure("pytest --db-password \\\n  hiddenTr0ub4dor", "Exit code 1\nerror: no"),
    ],
)
def test_what_is_secret_only_beside_its_name_is_in_no_turn(data: Path, said: dict[str, Any]) -> None:
    happened(data, prompt("look"), said, stop("ok"))
    dumped = [
        row["text"]
        for row in rows(data, "SELECT t.record || m.content AS text FROM turns t JOIN memories m USING (row)")
    ]
    dumped += [row["text"] for row in rows(data, "SELECT text FROM turn_pieces")]
    assert not [text for text in dumped if "hidden" in text]


def test_a_path_that_is_no_text_stops_nothing(data: Path, root: str) -> None:
    turn = the_turn(data, prompt("mend", cwd=root), edit(f"{root}/\ud800.py", cwd=root), stop("ok", cwd=root))
    assert (turn.edited, turn.answer) == (["?.py"], "ok")
    assert spooled(data) == []


def test_files_are_those_of_the_work_tree_however_it_is_spelled(
    data: Path, root: str, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(root)
    linked = tmp_path / "tree"
    linked.mkdir()
    work = Path(root) / ".git" / "worktrees" / "tree"
    work.mkdir(parents=True)
    (work / "HEAD").write_text("ref: refs/heads/other\n")
    (work / "commondir").write_text("../..\n")
    (work / "gitdir").write_text(f"{linked}/.git\n")
    (linked / ".git").write_text(f"gitdir: {work}\n")
    spelled = {"session_id": "session-1", "cwd": str(tmp_path / "link")}
    apart = {"session_id": "session-2", "cwd": str(linked)}
    for session in (spelled, apart):
        cwd = session["cwd"]
        put(data, prompt("mend", **session), at=NOW)
        put(data, edit(f"{cwd}/src/a.py", **session), at=NOW + 1)
        put(data, bash(f"cd {cwd} && git commit -m x", COMMITTED, **session), at=NOW + 2)
    drain(data)
    for name in ("session-1", "session-2"):
        (turn,) = turns_of(data, name)
        assert turn.commits == [["abc1234", "mend the door", ["src/a.py"]]]
    assert len(rows(data, "SELECT 1 FROM projects")) == 1


# --- commits ------------------------------------------------------------------------------------------------


def test_a_commit_has_the_files_that_were_edited_since_the_last_one(data: Path, root: str) -> None:
    here = {"cwd": root}
    turn = the_turn(
        data,
        prompt("mend", **here),
        edit(f"{root}/a.py", **here),
        bash("git commit -am one", "[main aaaaaaa] one", **here),
        edit(f"{root}/b.py", **here),
        edit(f"{root}/a.py", **here),
        bash("git commit -am two", "[main bbbbbbb] two", **here),
        edit(f"{root}/c.py", **here),
    )
    assert turn.commits == [["aaaaaaa", "one", ["a.py"]], ["bbbbbbb", "two", ["b.py", "a.py"]]]
    assert (turn.edited, turn.uncommitted) == (["a.py", "b.py", "c.py"], ["c.py"])


def test_what_is_committed_in_a_later_turn_was_edited_before(data: Path, root: str) -> None:
    here = {"cwd": root}
    happened(data, prompt("mend", **here), edit(f"{root}/a.py", **here), stop("done", **here))
    committed = bash("git commit -am x", COMMITTED, **here)
    first, second = happened(data, prompt("commit this", **here), committed, at=NOW + 10)
    assert (first.commits, first.uncommitted) == ([], ["a.py"])
    assert second.commits == [["abc1234", "mend the door", ["a.py"]]]
    assert (second.edited, second.uncommitted) == ([], [])


def test_an_amended_commit_takes_the_place_of_the_one_before(data: Path, root: str) -> None:
    here = {"cwd": root}
    turn = the_turn(
        data,
        prompt("mend", **here),
        edit(f"{root}/a.py", **here),
        bash("git commit -am one", "[main aaaaaaa] one", **here),
        edit(f"{root}/b.py", **here),
        bash("git commit --amend -am better", "[main bbbbbbb] better", **here),
    )
    assert turn.commits == [["bbbbbbb", "better", ["a.py", "b.py"]]]


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("git commit -m x", "[main (root-commit) abc1234] first"),
        ("cd /tmp/scratch && git commit -m x", COMMITTED),
        ("git -C /tmp/scratch commit -m x", COMMITTED),
    ],
)
def test_what_is_committed_elsewhere_leaves_the_files_uncommitted(
    command: str, printed: str, data: Path, root: str
) -> None:
    here = {"cwd": root}
    turn = the_turn(
        data, prompt("mend", **here), edit(f"{root}/a.py", **here), bash(command, printed, **here)
    )
    assert (turn.commits, turn.uncommitted) == ([], ["a.py"])


# --- checks -------------------------------------------------------------------------------------------------

RED = failure("pytest -q", "Exit code 1\nE   assert 1 == 2")
GREEN = bash("pytest -q", "1 passed")


def test_a_check_that_failed_and_then_passed_is_known_with_its_error(data: Path) -> None:
    turn = the_turn(data, prompt("mend"), RED, GREEN, stop("ok"))
    assert (turn.failed, turn.passed, turn.failing) == ([], [["pytest -q", "E assert 1 == 2"]], {})


def test_a_check_may_pass_in_a_later_turn(data: Path) -> None:
    first, second = happened(data, prompt("mend"), RED, stop("no"), prompt("again"), GREEN)
    assert first.failed == [["pytest -q", "E assert 1 == 2"]]
    assert first.failing == {"pytest": ["pytest -q", "E assert 1 == 2"]}
    assert (second.failed, second.passed, second.failing) == ([], [["pytest -q", "E assert 1 == 2"]], {})


def test_a_check_that_fails_again_has_the_errors_of_both(data: Path) -> None:
    turn = the_turn(data, prompt("mend"), RED, failure("pytest -q", "Exit code 1\nE   assert 3 == 4"))
    assert turn.failed == [["pytest -q", "E assert 1 == 2 / E assert 3 == 4"]]


def test_of_several_checks_the_last_one_stands_for_all(data: Path) -> None:
    both = failure("mise run fmt && mise run lint", "Exit code 1\nerror: unused")
    turn = the_turn(data, prompt("mend"), both, bash("mise run fmt", ""), bash("mise run lint", ""))
    assert (turn.passed, turn.failing) == ([["mise run fmt && mise run lint", "error: unused"]], {})


def test_a_quiet_commit_is_known_by_its_message(data: Path, root: str) -> None:
    here = {"cwd": root}
    turn = the_turn(
        data,
        prompt("mend", **here),
        edit(f"{root}/a.py", **here),
        bash("git add -A && git commit -qm 'fix: count the last line\n\nIt was left out.'", "", **here),
    )
    assert (turn.commits, turn.uncommitted) == ([["", "fix: count the last line", ["a.py"]]], [])


def test_a_check_that_is_interrupted_or_in_the_background_has_not_passed(data: Path) -> None:
    background = tool_use("Bash", {"command": "pytest -q"}, {"stdout": "", "backgroundTaskId": "b1"})
    turn = the_turn(data, prompt("mend"), RED, failure("pytest -q", "The user doesn't want this"), background)
    assert (turn.failed, turn.passed) == ([["pytest -q", "E assert 1 == 2"]], [])


def test_a_pipe_hides_no_failure(data: Path) -> None:
    piped = "pytest -q 2>&1 | tail -5"
    turn = the_turn(data, prompt("mend"), bash(piped, "FAILED a.py::b\n1 failed"), bash(piped, "1 passed"))
    assert turn.passed == [[piped, "FAILED a.py::b"]]


# --- what the user decided ----------------------------------------------------------------------------------


def test_what_the_user_answered_is_kept_with_the_question(data: Path) -> None:
    long = "Which of these shall it be? " + "really " * 50
    turn = the_turn(
        data,
        prompt("paint"),
        question("Which colour?", "green"),
        question("Which rooms?", ["hall", "bath"]),
        question(long, "the first"),
        question("Nothing?", ""),
    )
    assert turn.choices == [
        ["Which colour?", "green"],
        ["Which rooms?", "hall, bath"],
        [long.strip(), "the first"],
    ]
    assert found(data, "green") == 1


def test_an_option_is_kept_with_its_description(data: Path) -> None:
    options = [{"label": "Option C", "description": "keep both\nfiles"}, {"label": "D"}, "odd"]
    given = {"questions": [{"odd": 1}, {"question": "Which?", "options": options}]}
    uses = [
        tool_use("AskUserQuestion", given, {"answers": {"Which?": said}}) for said in ("Option C", "D", "E")
    ]
    choices = the_turn(data, prompt("paint"), *uses).choices
    assert choices == [["Which?", "Option C: keep both files"], ["Which?", "D"], ["Which?", "E"]]


def test_a_commit_that_was_taken_back_is_not_kept(data: Path) -> None:
    def commit(sha: str, subject: str) -> Json:
        return tool_use("Bash", {"command": "git commit -am x"}, {"stdout": f"[main {sha}] {subject}\n"})

    kept, wrong = commit("1a2b3c4", "Fix the hall"), commit("2b3c4d5", "Fix the bath")
    reset = tool_use("Bash", {"command": "git reset --hard HEAD~1"}, {"stdout": "HEAD is now at 1a2b3c4"})
    turn = the_turn(data, prompt("paint"), kept, wrong, reset)
    assert [subject for _, subject, _ in turn.commits] == ["Fix the hall"]


def test_an_answer_to_what_was_not_asked_is_none(data: Path) -> None:
    odd = tool_use(
        "AskUserQuestion", {"questions": [{"question": "A?"}]}, {"answers": {"B?": "yes", "": "no"}}
    )
    refused = event(
        "PostToolUseFailure", tool_name="AskUserQuestion", tool_input={"questions": []}, error="no"
    )
    assert the_turn(data, prompt("paint"), odd, refused).choices == []


def test_a_subagent_asks_nobody_and_plans_for_itself(data: Path) -> None:
    plan = tool_use("ExitPlanMode", {}, {"plan": "# A plan", "isAgent": True})
    turn = the_turn(data, prompt("paint"), question("Which?", "green", agent_id="a1"), plan)
    assert (turn.choices, turn.plans) == ([], [])


@pytest.mark.parametrize("size", [100, 20_000])
def test_an_approved_plan_is_kept_whole(size: int, data: Path) -> None:
    plan = "# The plan\n" + "step " * (size // 5) + "the last walrus"
    use = tool_use("ExitPlanMode", {"plan": plan}, {"plan": plan, "isAgent": False, "filePath": "/p.md"})
    turn = the_turn(data, prompt("paint"), use)
    assert turn.plans == [plan]
    assert rows(data, "SELECT text FROM turn_pieces")[-1]["text"].endswith("the last walrus")


def test_a_plan_that_was_refused_is_none(data: Path) -> None:
    refused = event(
        "PostToolUseFailure", tool_name="ExitPlanMode", tool_input={"plan": "# A plan"}, error="rejected"
    )
    assert the_turn(data, prompt("paint"), refused).plans == []


def test_of_a_compaction_the_summary_is_kept_without_thoughts_and_messages(data: Path) -> None:
    summary = (
        "<analysis>\nlet me think\n</analysis>\n\n<summary>\n1. Primary Request:\n   mend the door\n\n"
        "6. All user messages:\n    - please mend it\n    - 'commit this'\n\n"
        "7. Pending Tasks:\n   the window\n</summary>"
    )
    compacted = event("PostCompact", trigger="auto", compact_summary=summary)
    turn = the_turn(data, prompt("mend"), event("PreCompact", trigger="auto"), compacted, stop("done"))
    (text,) = turn.compactions
    assert text.split() == "1. Primary Request: mend the door 7. Pending Tasks: the window".split()


def test_what_came_of_an_agent_is_kept_and_what_memory_told_is_not(data: Path) -> None:
    result = {"status": "completed", "content": [{"type": "text", "text": "the hinge is loose"}]}
    ours = tool_use("mcp__plugin_backstory_memory__memory_search", {"query": "hinge"}, "a hinge, long ago")
    turn = the_turn(data, prompt("look"), tool_use("Task", {"description": "look at it"}, result), ours)
    ((task, came),) = turn.agents
    assert task == "look at it"
    assert "the hinge is loose" in came
    assert found(data, "ago") == 0


# --- commands of our own ------------------------------------------------------------------------------------


def test_a_turn_of_our_own_commands_leaves_nothing_but_what_was_typed(data: Path, root: str) -> None:
    here = {"cwd": root}
    ours = [
        prompt("/backstory:remember the walrus sleeps", **here),
        edit(f"{root}/a.py", **here),
        failure("pytest", "1 failed", **here),
        stop("Kept. Shall I go on?", **here),
    ]
    assert happened(data, *ours) == []
    assert happened(data, prompt("\n/backstory:open", **here), stop("Nothing."), at=NOW + 10) == []
    assert rows(data, "SELECT 1 FROM memories UNION ALL SELECT 1 FROM observation_queue") == []
    with closing(connect(str(data / "backstory.db"))) as db:
        assert [said for _, said in sessions.own_commands(db, "session-1")] == [
            "/backstory:remember the walrus sleeps",
            "\n/backstory:open",
        ]
        assert sessions.prompts(db, "session-1") == []
    assert rows(data, "SELECT user_prompt FROM sessions") == [{"user_prompt": None}]


def test_our_own_commands_change_neither_the_turn_before_nor_the_one_after(data: Path) -> None:
    found = happened(
        data,
        prompt("mend the door"),
        stop("Shall I paint it?"),
        prompt("/backstory:open"),
        stop("It is open whether to paint."),
        event("PostCompact", compact_summary="a door was mended"),
        prompt("yes"),
        prompt("/backstory:recall doors"),
        stop("Painted."),
    )
    assert [(turn.asked, turn.answer) for turn in found] == [
        ("mend the door", "Shall I paint it?"),
        ("yes", "Painted."),
    ]
    assert found[0].compactions == ["a door was mended"]
    assert [row["tool_name"] for row in rows(data, "SELECT tool_name FROM observation_queue")] == [
        *("PROMPT", "FINALIZE", "COMPACT", "PROMPT", "FINALIZE")
    ]


def test_what_our_own_command_says_late_is_not_said_of_the_turn_before(data: Path) -> None:
    happened(data, prompt("one"), stop("first"), prompt("/backstory:open"), at=NOW)
    put(data, prompt("two"), at=NOW + 50)
    drain(data, now=NOW + 50)
    put(data, stop("Nothing is open."), at=NOW + 10)
    drain(data, now=NOW + 60)
    assert [turn.answer for turn in turns_of(data)] == ["first", ""]


def test_our_own_commands_are_those_of_the_plugin() -> None:
    assert f"/{claude_code.OURS}" == OWN_COMMAND


# --- drained in parts, twice, killed ------------------------------------------------------------------------


def a_session(root: str) -> list[Json]:
    here = {"cwd": root}
    return [
        event("SessionStart", source="startup", **here),
        prompt("mend the window", prompt_id="p1", **here),
        edit(f"{root}/a.py", **here),
        prompt("no, the door\n\n" + "with all its hinges " * 30, prompt_id="p2", **here),
        {**RED, **here, "tool_use_id": "t1"},
        edit(f"{root}/b.py", **here),
        prompt("/backstory:why", prompt_id="w1", **here),
        question("Which colour?", "green", **here),
        stop("It fails still. " * 60, **here),
        bash("ls", **here),
        prompt("/backstory:open", prompt_id="o1", **here),
        bash("cat housekeeping.txt", **here),
        stop("Nothing is open.", **here),
        prompt("<task-notification><result>the tests are red</result>", prompt_id="p3", **here),
        stop("They are red.", **here),
        prompt("once more", prompt_id="p4", **here),
        {**GREEN, **here, "tool_use_id": "t2"},
        bash("git commit -am x", COMMITTED, **here),
        event("PostCompact", compact_summary="so far so good", **here),
        stop("Mended.", **here),
        stop("Noted.", stop_hook_active=True, **here),
        prompt("and now?", prompt_id="p5", **here),
        event("SessionEnd", reason="other", **here),
    ]


def told(data: Path) -> list[Json]:
    """All that the store has of turns, but for its own numbers."""
    pieces = "SELECT turn, part, text, words, terms FROM turn_pieces ORDER BY row"
    by_turn: dict[int, list[Json]] = {}
    for piece in rows(data, pieces):
        by_turn.setdefault(piece.pop("turn"), []).append(piece)
    query = (
        "SELECT t.*, m.title, m.content, m.files, m.created_at, m.words FROM turns t"
        " JOIN memories m USING (row) ORDER BY t.started_at"
    )
    return [{"pieces": by_turn.get(row.pop("row"), []), **row} for row in rows(data, query)]


def drained(root: str, session: Sequence[Json], *cuts: int) -> list[Json]:
    """What becomes of a session in a store of its own, drained up to each cut."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(root)) as folder:
        data = Path(folder)
        for first, last in zip((0, *cuts), (*cuts, len(session)), strict=True):
            for number in range(first, last):
                put(data, session[number], at=NOW + number, name=f"event-{number:02}")
            drain(data, now=NOW + 100)
        assert_sound(data)
        return told(data)


def test_drained_in_two_batches_at_any_cut_is_drained_in_one(root: str) -> None:
    session = a_session(root)
    whole = drained(root, session)
    assert [turn["state"] for turn in whole] == [COMPLETE, COMPLETE, COMPLETE, INTERRUPTED]
    assert "backstory:" not in str(whole) and "Nothing is open" not in str(whole)
    for cut in range(1, len(session)):
        assert drained(root, session, cut) == whole, cut
    assert drained(root, session, *range(1, len(session))) == whole


def test_draining_twice_changes_nothing(data: Path, root: str) -> None:
    session = a_session(root)
    for _ in range(2):
        for number, payload in enumerate(session):
            put(data, payload, at=NOW + number, name=f"event-{number:02}")
        drain(data, now=NOW + 100)
        assert told(data) == drained(root, session)


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("statement", ["INSERT INTO turns", "INSERT INTO turn_pieces", "COMMIT"])
def test_a_drain_that_is_killed_between_batches_loses_nothing(
    statement: str, nth: int, data: Path, root: str
) -> None:
    connect(str(data / "backstory.db")).close()
    session = a_session(root)
    for number, payload in enumerate(session):
        put(data, payload, at=NOW + number, name=f"event-{number:02}")
    small = "import backstory.intake.drain as module; module.BATCH_EVENTS = 7"
    program = f"import sys; sys.path.insert(0, sys.argv[1]); {small}\n"
    killed = subprocess.run(
        [PYTHON, "-I", "-S", "-c", program + suicidal_at_statement(statement, nth), SOURCE, str(data)],
        check=False,
        capture_output=True,
    )
    assert killed.returncode == -9, killed.stderr
    drain(data, now=NOW + 100)
    assert told(data) == drained(root, session)
    assert spooled(data) == []
    assert commands(data) == ["pytest -q", "ls", "pytest -q", "git commit -am x"]


def test_a_turn_that_goes_on_keeps_the_pieces_that_it_has(data: Path) -> None:
    happened(data, prompt("mend the door\n\n" + "with all its hinges " * 60))
    before = rows(data, "SELECT * FROM turn_pieces")
    happened(data, stop("Mended. " * 200), at=NOW + 10)
    after = rows(data, "SELECT * FROM turn_pieces")
    assert len(before) > 2
    assert after[: len(before)] == before
    assert len(after) > len(before)


def test_the_latest_turn_of_a_session_is_its_own(data: Path) -> None:
    put(data, prompt("one", session_id="a"), at=NOW)
    put(data, prompt("two", session_id="b"), at=NOW + 1)
    drain(data)
    db = connect(str(data / "backstory.db"))
    try:
        assert [turn and turn.asked for turn in (turns.latest(db, name) for name in "abc")] == [
            "one",
            "two",
            None,
        ]
    finally:
        db.close()
