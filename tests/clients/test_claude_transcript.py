"""A transcript of Claude Code, line by line, as the payloads that its hooks were given."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from backstory.clients.claude_transcript import (
    Payload,
    Reader,
    entry_of,
    is_unattended,
    number_of,
    posix,
    prompt_of,
)
from tests.helpers.transcripts import THEN, Json, Log, worked

BESIDE = ("at", "uuid", "branch", "asked_at", "attended", "is_hooks_id", "is_joined")


def told(entries: Iterable[Json], *, is_over: bool = True) -> list[Payload]:
    reader: Reader | None = None
    found: list[Payload] = []
    for line in (json.dumps(entry).encode() for entry in entries):
        entry = entry_of(line)
        if entry is not None:
            reader = reader or Reader(entry["sessionId"])
            found += reader.take(entry)
    return [*found, *(reader.end(is_over=is_over) if reader else ())]


def names(payloads: Iterable[Payload]) -> list[str]:
    return [payload["hook_event_name"] for payload in payloads]


@pytest.mark.parametrize("ids", [True, False])
def test_a_transcript_gives_the_payloads_of_its_hooks(ids: bool) -> None:
    log = worked("s1", "/home/me/api", ids=ids)
    hooks = [payload for _, payload in log.payloads if payload["hook_event_name"] != "SessionStart"]

    found = told(log.entries)

    assert len(found) == len(hooks) == 10
    for payload, hook in zip(found, hooks, strict=True):
        plain = {name: value for name, value in payload.items() if name not in BESIDE}
        if not ids:
            plain.pop("prompt_id")  # what stands for it is an entry's uuid
        assert plain == hook
    assert [payload["at"] for payload in found] == sorted({payload["at"] for payload in found})
    assert found[0]["at"] == THEN + 1_000


def test_what_the_client_says_in_the_users_name_is_no_prompt() -> None:
    log = Log("s1", "/p")
    for text in (
        "<local-command-caveat>Caveat: x</local-command-caveat>",
        "<command-name>/compact</command-name>\n<command-message>compact</command-message>",
        "<local-command-stdout>x</local-command-stdout>",
        "[Request interrupted by user]",
    ):
        log.user(text)
    log.user("meta", isMeta=True)
    log.user([{"type": "text", "text": "look<system-reminder>\nx\n</system-reminder>"}])

    assert [payload["prompt"] for payload in told(log.entries)] == ["look"]
    command = "<command-message>x</command-message>\n<command-name>/x:y</command-name>"
    assert prompt_of(f"{command}<command-args>a b</command-args>") == "/x:y a b"


def test_a_turn_that_a_hook_did_not_let_end_ends_twice() -> None:
    log = Log("s1", "/p").prompt("a").say("one").sent_on("docs").say("two").prompt("b").say("three")

    ends = [payload for payload in told(log.entries) if payload["hook_event_name"] == "Stop"]

    said = [(payload["last_assistant_message"], payload["stop_hook_active"]) for payload in ends]
    assert said == [("one", False), ("two", True), ("three", False)]


def test_words_before_a_tool_use_an_interruption_or_by_no_model_are_no_answer() -> None:
    log = Log("s1", "/p").prompt("a").say("I will look").bash("ls").say("half an ans")
    log.user("[Request interrupted by user]")
    log.prompt("b")
    log.entry("assistant", message={"model": "<synthetic>", "content": [{"type": "text", "text": "limit"}]})

    assert names(told(log.entries)) == ["UserPromptSubmit", "PostToolUse", "UserPromptSubmit"]


def test_the_last_words_of_a_session_that_goes_on_may_not_be_the_last_of_its_turn() -> None:
    log = Log("s1", "/p").prompt("a").say("I will look")
    assert names(told(log.entries, is_over=False)) == ["UserPromptSubmit"]
    assert names(told(log.entries)) == ["UserPromptSubmit", "Stop"]
    log.entry("system", subtype="turn_duration")
    assert names(told(log.entries, is_over=False)) == ["UserPromptSubmit", "Stop"]


def test_the_summary_of_a_compaction_is_told_without_what_is_said_around_it() -> None:
    log = (
        Log("s1", "/p").prompt("a").say("b").compact("1. Primary Request: x\n\n7. Pending: none").prompt("c")
    )

    (compaction,) = [one for one in told(log.entries) if one["hook_event_name"] == "PostCompact"]

    assert compaction["compact_summary"] == "Summary:\n1. Primary Request: x\n\n7. Pending: none"
    assert compaction["prompt_id"] == log.entries[3]["promptId"]


def test_tools_that_never_ran_are_not_told() -> None:
    log = Log("s1", "/p").prompt("a")
    log.bash("rm x", error="The user doesn't want to proceed with this tool use. The tool use was rejected")
    log.bash("rm y", error="Exit code 1\nrm: y")

    assert names(told(log.entries)) == ["UserPromptSubmit", "PostToolUseFailure"]


def test_subagents_are_told_from_progress_and_from_side_chains() -> None:
    log = Log("s1", "/p").prompt("a")
    start = {"type": "tool_use", "id": "toolu_a", "name": "Task", "input": {"subagent_type": "Explore"}}
    log.entry("assistant", message={"id": "m", "model": "m", "content": [start]})
    use = {"type": "tool_use", "id": "toolu_b", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_b", "content": "x"}
    for kind, content in (("assistant", use), ("user", result)):
        inner = {"type": kind, "message": {"role": kind, "content": [content]}, "uuid": f"inner-{kind}"}
        data = {"type": "agent_progress", "agentId": "ag1", "message": inner}
        log.entry("progress", data=data, parentToolUseID="toolu_a")
    log.bash("pwd", "/p", agent="ag2")
    entries = [*log.entries, *log.agents["ag2"]]

    uses = [one for one in told(entries) if one["hook_event_name"] == "PostToolUse"]

    assert [(one["agent_id"], one["agent_type"]) for one in uses] == [
        ("ag1", "Explore"),
        ("ag2", "general-purpose"),
    ]
    assert uses[0]["tool_response"] == {"stdout": "x", "stderr": ""}


def test_a_prompt_that_was_queued_belongs_to_the_turn() -> None:
    log = Log("s1", "/p").prompt("a").bash("ls").queued("and b").say("done")

    found = told(log.entries)

    assert names(found) == ["UserPromptSubmit", "PostToolUse", "UserPromptSubmit", "Stop"]
    assert (found[2]["prompt"], found[2]["is_joined"]) == ("and b", True)
    assert found[0]["prompt_id"] == found[2]["prompt_id"] == found[3]["prompt_id"]


def test_paths_of_windows_are_spelled_as_its_git_spells_them() -> None:
    assert posix(r"C:\Users\x\proj") == "/c/Users/x/proj"
    assert posix("D:/x") == "/d/x"
    assert posix(r"\\server\share\x") == "/server/share/x"
    assert posix("/home/x") == "/home/x"
    log = Log("s1", r"C:\Users\x\proj").prompt("a")
    log.use("Read", {"file_path": r"C:\Users\x\proj\a.py"}, {"file": {"filePath": r"C:\Users\x\proj\a.py"}})
    log.use("Glob", {"pattern": "*", "path": r"C:\Users\x"}, {"filenames": [r"C:\Users\x\b.py"]})

    _, read, found = told(log.entries)

    assert read["cwd"] == "/c/Users/x/proj"
    assert read["tool_input"]["file_path"] == "/c/Users/x/proj/a.py"
    assert read["tool_response"]["file"]["filePath"] == "/c/Users/x/proj/a.py"
    assert found["tool_input"]["path"] == "/c/Users/x"
    assert found["tool_response"]["filenames"] == ["/c/Users/x/b.py"]


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ({"promptSource": "typed", "turnOrigin": "human", "entrypoint": "cli"}, False),
        ({"promptSource": "sdk", "turnOrigin": "sdk"}, True),
        ({"entrypoint": "sdk-py"}, True),
        ({"promptSource": "sdk", "entrypoint": "claude-desktop"}, False),
        ({"promptSource": "sdk", "entrypoint": "claude-vscode"}, False),
        ({"entrypoint": "claude-desktop", "sessionKind": "bg"}, True),
        ({"entrypoint": "cli", "sessionKind": "bg"}, True),
        ({}, None),
    ],
)
def test_who_was_there_is_told_by_the_marks_of_a_prompt(marks: Json, expected: bool | None) -> None:
    assert is_unattended(marks) is expected


def test_entries_of_another_session_are_left_out() -> None:
    parent = Log("s1", "/p").prompt("a").say("b")
    fork = parent.fork("s2").prompt("c").say("d")
    copies = {number_of(entry["uuid"]) for entry in parent.entries}

    reader = Reader("s2", copies.__contains__)
    found = [payload for entry in fork.entries for payload in reader.take({**entry, "at": THEN})]
    found += reader.end()

    assert names(found) == ["UserPromptSubmit", "Stop"]
    assert found[0]["prompt"] == "c"
    branched = {
        **parent.entries[0],
        "uuid": "another",
        "forkedFrom": {"messageUuid": parent.entries[0]["uuid"]},
    }
    assert list(reader.take({**branched, "at": THEN})) == []


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"{}\n", b'{"type":"summary","summary":"x"}\n', b'{"type":"progress","cwd":"/p"}\n']
)
def test_lines_of_no_event_are_none(line: bytes) -> None:
    assert entry_of(line) is None


@pytest.mark.parametrize("line", [b'{"type":"user","cwd":"/p","mess', b'{"type":"mo', b'["cwd"]', b'"cwd"'])
def test_a_line_that_cannot_be_read_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        entry_of(line)


def test_a_line_is_read_with_and_without_spaces() -> None:
    entry = Log("s1", "/p").prompt("hi").entries[0]
    for separators in ((",", ":"), (", ", ": ")):
        assert (entry_of(json.dumps(entry, separators=separators).encode()) or {})["promptId"]
