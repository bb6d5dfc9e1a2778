"""Payloads that cannot be read are put aside with the reason, odd ones are stored; none holds up the rest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory import paths
from backstory.capture.event import PUT_ASIDE_LIMIT, redacted_payload
from backstory.intake import drain as intake_drain
from backstory.intake.drain import drain as drain_spool
from backstory.store.file.connection import connect
from tests.helpers.chaos import (
    DRAIN,
    GO,
    NOW,
    PYTHON,
    SOURCE,
    Json,
    assert_sound,
    bash,
    contents,
    drain,
    event,
    failures,
    log_text,
    prompt,
    put,
    rows,
    run_hook,
    spooled,
    tool_use,
)
from tests.helpers.secret_texts import POSITIVES
from tests.helpers.traces import commands, without

GOOD = bash("true")

UNREADABLE: dict[str, tuple[Json | bytes, str]] = {
    "empty": (b"", "empty payload"),
    "blank": (b" \n\n ", "empty payload"),
    "cut off": (b'{"session_id": "a', "not JSON"),
    "two objects": (b"{}{}", "not JSON"),
    "not UTF-8": (b'{"session_id": "\xff\xfe\xff"}', "not JSON"),
    "binary junk": (bytes(range(256)), "not JSON"),
    "a list": (b"[1, 2]", "not a JSON object but list"),
    "a string": (b'"hello"', "not a JSON object but str"),
    "null": (b"null", "not a JSON object but NoneType"),
    "an empty object": (b"{}", "hook_event_name is missing"),
    "an unknown event": (event("PreBreakfast"), "unknown event 'PreBreakfast'"),
    "an event of lone surrogates": (event("\ud800"), "unknown event"),
    "no hook_event_name": (without(GOOD, "hook_event_name"), "hook_event_name is missing"),
    "no session_id": (without(GOOD, "session_id"), "session_id is missing"),
    "no cwd": (without(GOOD, "cwd"), "cwd is missing"),
    "no tool_name": (without(GOOD, "tool_name"), "tool_name is missing"),
    "no tool_input": (without(GOOD, "tool_input"), "tool_input is not an object"),
    "no tool_response": (without(GOOD, "tool_response"), "tool_response is missing"),
    "no prompt": (without(prompt("x"), "prompt"), "prompt is missing"),
    "no error": (event("PostToolUseFailure", tool_name="Bash", tool_input={}), "error is missing"),
    "hook_event_name is a number": (
        {**GOOD, "hook_event_name": 1},
        "hook_event_name is not a string but int",
    ),
    "session_id is null": ({**GOOD, "session_id": None}, "session_id is not a string but NoneType"),
    "session_id is empty": ({**GOOD, "session_id": ""}, "session_id is empty"),
    "cwd is a list": ({**GOOD, "cwd": ["/"]}, "cwd is not a string but list"),
    "cwd is empty": ({**GOOD, "cwd": ""}, "cwd is empty"),
    "cwd is relative": ({**GOOD, "cwd": "src"}, "cwd is not an absolute path"),
    "tool_name is an object": ({**GOOD, "tool_name": {}}, "tool_name is not a string but dict"),
    "tool_input is a string": ({**GOOD, "tool_input": "ls"}, "tool_input is not an object"),
    "tool_use_id is a number": ({**GOOD, "tool_use_id": 7}, "tool_use_id is not a string but int"),
    "prompt is a number": (prompt("x", prompt=3.5), "prompt is not a string but float"),
    "prompt_id is null": (prompt("x", prompt_id=None), "prompt_id is not a string but NoneType"),
    "an integer of 5,000 digits": (b'{"session_id": ' + b"9" * 5000 + b"}", "not JSON"),
    "nested 100,000 deep": (b"[" * 100_000, "nested too deep"),
}


# What is put aside is text, without a string that is cut off.
KEPT: dict[bytes, str] = {
    b'{"session_id": "a': '{"session_id": ',
    b'{"session_id": "\xff\xfe\xff"}': '{"session_id": ',
    bytes(range(256)): "",
    json.dumps(event("\ud800")).encode(): json.dumps(event("?")),
}


@pytest.mark.parametrize(("payload", "reason"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_payload_that_cannot_be_read_is_put_aside_with_its_reason_and_nothing_else_suffers(
    payload: Json | bytes, reason: str, data: Path
) -> None:
    put(data, bash("echo before"), at=NOW - 3)
    name = put(data, payload, at=NOW - 2)
    raw = (data / "spool" / "new" / name).read_bytes()
    kept = KEPT.get(raw, raw.decode(errors="replace"))
    put(data, bash("echo behind"), at=NOW - 1)

    done = drain(data)

    assert (done.stored, done.failed, done.left) == (2, 1, 0)
    assert commands(data) == ["echo before", "echo behind"]
    assert spooled(data) == []
    assert failures(data)[name].startswith(reason)
    aside = data / "spool" / "failed" / name
    assert aside.read_text() == kept
    assert (aside.stat().st_mode & 0o777, int(aside.stat().st_mtime * 1000)) == (0o600, NOW - 2)
    (line,) = log_text(data).splitlines()
    assert "WARNING" in line
    assert name in line
    assert reason in line


CUTS: dict[str, Callable[[bytes, str], bytes]] = {
    "a field is missing": lambda raw, _: raw,
    "no JSON": lambda raw, _: b"junk " + raw,
    "cut off behind it": lambda raw, _: raw[:-2],
    "cut off in it": lambda raw, secret: raw[: raw.index(secret.encode()) + len(secret) // 2 + 1],
    "not UTF-8": lambda raw, _: b"\xe9" + raw,
    "of two bytes each": lambda raw, _: raw.decode().encode("utf-16"),
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
@pytest.mark.parametrize("in_ascii", [True, False])
def test_no_secret_is_put_aside(cut: Callable[[bytes, str], bytes], in_ascii: bool) -> None:
    for _, context, secret, _ in POSITIVES:
        payload = {"session_id": "s1", "prompt": f"a walrus. {context.format(secret)}"}
        spelled = json.dumps(secret, ensure_ascii=in_ascii)[1:-1]
        kept = redacted_payload(cut(json.dumps(payload, ensure_ascii=in_ascii).encode(), spelled))
        assert secret not in kept and spelled not in kept
        assert spelled[: len(spelled) // 2 + 1] not in kept or "[redacted:" in kept


def test_neither_the_payload_nor_the_reason_has_a_secret(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = next(secret for _, _, secret, kind in POSITIVES if kind == "github-token")

    def stumble(folder: str) -> paths.Place:
        raise ZeroDivisionError(f"no place for {folder}")

    monkeypatch.setattr(paths, "place", stumble)
    name = put(data, bash(f"export GITHUB_TOKEN={secret}; make", cwd=f"/{secret}"))
    drain(data)

    assert failures(data)[name].startswith(
        "could not be understood: ZeroDivisionError: no place for /[redacted:"
    )
    (aside,) = [path for path in (data / "spool" / "failed").iterdir() if path.name == name]
    payload = json.loads(aside.read_text())
    assert payload["tool_input"]["command"].startswith("export GITHUB_TOKEN=[redacted:")
    assert payload["tool_input"]["command"].endswith("; make")
    texts = [path.read_text() for path in data.rglob("*") if path.is_file() and path.suffix != ".db"]
    assert not any(secret in text for text in texts)


HUGE = {
    "a text": json.dumps({"prompt": "the password of the token " * 400_000}).encode(),
    "a list that is cut off": json.dumps(["the password is x"] * 500_000).encode()[:-1],
    "quotation marks": b'"' * 10_000_000,
    "fields": json.dumps({f"password{number}": "x" for number in range(200_000)}).encode(),
}


@pytest.mark.parametrize("raw", HUGE.values(), ids=HUGE.keys())
def test_of_a_huge_payload_a_part_is_put_aside_and_soon(raw: bytes) -> None:
    started = time.process_time()
    assert len(redacted_payload(raw)) <= PUT_ASIDE_LIMIT
    assert time.process_time() - started < 5


def test_what_redaction_stumbles_over_is_not_kept(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(raw: bytes) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(intake_drain, "redacted_payload", stumble)
    name = put(data, b"junk", at=NOW - 1)
    put(data, bash("echo behind"))
    drain(data)
    assert (data / "spool" / "failed" / name).read_text() == ""
    assert failures(data)[name].startswith("not JSON")
    assert commands(data) == ["echo behind"]


@pytest.mark.slow
def test_the_hook_itself_ends_well_and_silently_on_a_payload_that_cannot_be_read(data: Path) -> None:
    run_hook(bash("echo before"))
    ran = run_hook(b"{not json", "end")

    assert ran.code == 0
    assert ran.silent
    assert commands(data) == ["echo before"]
    assert len(failures(data)) == 1


def nested(depth: int) -> bytes:
    shell = json.dumps(tool_use("Custom", {"x": "HERE"}, "ok"))
    return shell.replace('"HERE"', "[" * depth + "]" * depth).encode()


ODD: dict[str, Json | bytes] = {
    "lone surrogates everywhere": bash("echo \ud800", stdout="\udfff", session_id="s\udc00", cwd="/x\ud800"),
    "lone surrogates as raw bytes": b'{"a": "\xed\xa0\x80", ' + json.dumps(bash("echo x")).encode()[1:],
    "NUL characters everywhere": bash(
        "echo \0", stdout="\0\0", session_id="s\0", cwd="/x\0y", tool_use_id="t\0"
    ),
    "nothing but a NUL": bash("\0", session_id="\0", tool_use_id="\0"),
    "a NUL as field name": tool_use("Custom", {"\0": "\0", "\ud800": 1}, None),
    "nested 100 deep": nested(100),
    "nested 450 deep": nested(450),
    "nested 980 deep": nested(980),
    "nested 1,000 deep": nested(1000),
    "nested 5,000 deep": nested(5000),
    "huge integers": tool_use("Custom", {"n": 10**4000, "m": -(2**70)}, {"n": 2**64}),
    "numbers JSON does not have": b'{"nan": NaN, "inf": -Infinity, ' + json.dumps(bash("x")).encode()[1:],
    "a 5 MB input": tool_use("Custom", {"text": "x" * 5_000_000}, "ok"),
    "half a million strings in a tree": tool_use("Custom", {"a": [["x"] * 500] * 1000}, "ok"),
    "50,000 strings": tool_use("Custom", {"list": ["what is the password of the token"] * 50_000}, "ok"),
    "a 5 MB result": bash("cat big", stdout="x" * 5_000_000),
    "a 5 MB prompt": prompt("please " * 700_000),
    "a 5 MB name": bash("x", tool_name="T" * 5_000_000),
    "a 1 MB session_id": bash("x", session_id="s" * 1_000_000),
    "a path longer than any file system allows": bash("x", cwd="/" + "d/" * 5_000),
    "a path of 1 MB": bash("x", cwd="/" + "d/" * 500_000),
    "a field name a thousand times": tool_use("Custom", {f"k{n}": n for n in range(1000)}, {}),
    "the future": event("SessionEnd", reason="other"),
}


@pytest.mark.parametrize("payload", ODD.values(), ids=ODD.keys())
def test_an_odd_payload_is_stored_or_put_aside_and_holds_up_nothing(
    payload: Json | bytes, data: Path
) -> None:
    put(data, payload, at=NOW - 2)
    put(data, bash("echo behind", session_id="another"), at=NOW - 1)

    done = drain(data)

    assert done.stored + done.failed == 2
    assert done.stored >= 1
    assert spooled(data) == []
    behind = rows(data, "SELECT content FROM memories WHERE session_id = 'another'")
    assert [row["content"] for row in behind] == ["Tool: Bash\nCommand: echo behind"]
    assert_sound(data)


@pytest.mark.parametrize("name", ["lone surrogates everywhere", "NUL characters everywhere", "huge integers"])
def test_odd_characters_and_numbers_are_no_reason_to_forget(name: str, data: Path) -> None:
    put(data, ODD[name])
    assert drain(data).stored == 1
    assert len(contents(data)) == 1


def test_a_folder_that_cannot_be_looked_at_holds_up_nothing(data: Path, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / ".git").write_bytes(b"gitdir: a\0b\n")
    for place in ("good", "bad", "good"):
        put(data, bash(f"echo in {place}", cwd=str(tmp_path / place)))
    assert drain(data).stored == 3
    assert spooled(data) == []


def test_an_error_nobody_thought_of_puts_one_payload_aside(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(folder: str) -> paths.Place:
        if folder == "/odd":
            raise ZeroDivisionError("nobody thought of this")
        return real(folder)

    real = paths.place
    monkeypatch.setattr(paths, "place", stumble)
    put(data, bash("echo odd", cwd="/odd"), at=NOW - 2)
    put(data, bash("echo behind"), at=NOW - 1)
    done = drain(data)
    assert (done.stored, done.failed) == (1, 1)
    assert "ZeroDivisionError: nobody thought of this" in next(iter(failures(data).values()))


def test_a_payload_that_may_not_be_read_holds_up_nothing(data: Path) -> None:
    name = put(data, bash("echo secret"), at=NOW - 2)
    (data / "spool" / "new" / name).chmod(0)
    put(data, bash("echo behind"), at=NOW - 1)
    command = [PYTHON, "-I", "-S", "-c", DRAIN + GO, SOURCE, str(data)]
    if os.geteuid() == 0:  # permissions do not bind root, unless it gives up the right to ignore them
        if shutil.which("setpriv") is None:
            pytest.skip("running as root, and setpriv is not installed")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]

    assert subprocess.run(command, check=True, capture_output=True).stderr == b""

    assert commands(data) == ["echo behind"]
    assert failures(data) == {name: "may not be read: Permission denied"}


def test_a_failed_folder_that_somebody_removed_is_made_again(data: Path) -> None:
    name = put(data, b"junk")
    put(data, bash("echo behind"))
    (data / "spool" / "failed").rmdir()

    drain(data)

    assert set(failures(data)) == {name}
    assert commands(data) == ["echo behind"]


def test_an_event_that_the_store_refuses_leaves_nothing_behind_and_can_be_tried_again(data: Path) -> None:
    db = connect(str(data / "backstory.db"))
    db.execute(
        "CREATE TRIGGER refused BEFORE INSERT ON session_memories WHEN new.session_id = 'refused'"
        " BEGIN SELECT raise(ABORT, 'not this one'); END"
    )
    put(data, bash("echo before"), at=NOW - 3)
    name = put(data, bash("echo refused", session_id="refused", cwd="/refused"), at=NOW - 2)
    put(data, bash("echo behind"), at=NOW - 1)
    drain(data)

    assert failures(data) == {name: "could not be stored: IntegrityError: not this one"}
    assert commands(data) == ["echo before", "echo behind"]
    assert len(rows(data, "SELECT 1 FROM events")) == 2
    assert len(rows(data, "SELECT 1 FROM sessions")) == len(rows(data, "SELECT 1 FROM projects")) == 1

    db.execute("DROP TRIGGER refused")
    db.close()
    os.rename(data / "spool" / "failed" / name, data / "spool" / "new" / name)
    drain(data)
    assert commands(data) == ["echo before", "echo refused", "echo behind"]


def test_a_payload_that_cannot_be_put_aside_holds_up_nothing(data: Path) -> None:
    put(data, b"{broken", at=NOW - 2)
    put(data, bash("echo behind"), at=NOW - 1)
    shutil.rmtree(data / "spool" / "failed", ignore_errors=True)
    (data / "spool" / "failed").write_text("a file where the folder should be")
    drain(data)
    assert commands(data) == ["echo behind"]
    assert len(spooled(data)) == 1  # it stays, and the next drain tries again
    assert "could not be put aside" in log_text(data)


def test_others_do_not_wait_while_large_payloads_are_read(data: Path) -> None:
    """The write lock is for storing. What is slow about a payload is over before it is taken."""
    text = "the password of the token is a secret\n" * 60_000
    for number in range(12):
        given = {"text": text, "list": [text[:4_000]] * 500}
        put(data, tool_use("Custom", given, "ok", tool_use_id=f"t{number}"))
    locked: list[float] = []

    def watch(statement: str) -> None:
        if statement in ("BEGIN IMMEDIATE", "COMMIT"):
            locked.append(time.monotonic())

    db = connect(str(data / "backstory.db"))
    db.set_trace_callback(watch)
    started = time.monotonic()
    drain_spool(db, str(data / "spool"), now=NOW)
    whole = time.monotonic() - started
    db.close()
    assert locked[1] - locked[0] < max(0.2, whole / 5)


def test_what_is_not_a_payload_is_left_alone(data: Path) -> None:
    put(data, bash("true"))
    folder = data / "spool" / "new" / "a folder"
    folder.mkdir()
    (data / "spool" / "new" / "a link").symlink_to("/etc/passwd")

    drain(data)

    assert spooled(data) == ["a folder", "a link"]
    assert len(contents(data)) == 1


def test_a_prompt_that_was_typed_while_the_model_worked_is_not_taken_for_the_one_before(data: Path) -> None:
    """It comes with the same id."""
    for place, text in enumerate(("mend it", "and quickly", "mend it")):
        put(data, prompt(text, prompt_id="p1"), at=NOW + place)

    drain(data)

    said = rows(data, "SELECT prompt FROM prompts ORDER BY id")
    assert [row["prompt"] for row in said] == ["mend it", "and quickly"]


def test_a_notification_and_the_end_after_it_may_have_the_id_of_the_prompt_before(data: Path) -> None:
    told = "<task-notification>\n<result>two files</result>\n</task-notification>"
    payloads = [prompt("look"), event("Stop", last_assistant_message="I will")]
    payloads += [prompt(told), event("Stop", last_assistant_message="two files")]
    for place, payload in enumerate(payloads):
        put(data, payload | {"prompt_id": "p1"}, at=NOW + place)

    drain(data)

    assert [row["state"] for row in rows(data, "SELECT state FROM turns")] == ["complete", "complete"]
