"""Short runs of benchmarks: that they measure, and that what they measure is sane."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest
from mcp.client.stdio import StdioServerParameters

from tests.conftest import REPOSITORY
from tests.helpers.bench import bench as run_bench
from tests.helpers.mcp_client import forked_backstory
from tests.helpers.transcripts import THEN, Log

pytestmark = pytest.mark.slow

# One conversation in LoCoMo's format. The ids of evidence are as odd as some in the real file.
CONVERSATION = {
    "conversation": {
        "speaker_a": "Ines",
        "speaker_b": "Otto",
        "session_1_date_time": "9:10 am on 3 March, 2025",
        "session_1": [
            {"speaker": "Ines", "dia_id": "D1:1", "text": "I finally adopted a greyhound from the shelter."},
            {"speaker": "Otto", "dia_id": "D1:2", "text": "Lovely! What is the dog called?"},
            {"speaker": "Ines", "dia_id": "D1:3", "text": "She is called Biscuit, and she sleeps all day."},
            {
                "speaker": "Otto",
                "dia_id": "D1:4",
                "text": "My sourdough failed again, the oven runs too hot.",
            },
            {
                "speaker": "Ines",
                "dia_id": "D1:5",
                "text": "Look where we walked on Sunday.",
                "blip_caption": "a photo of a lighthouse above grey cliffs",
            },
        ],
        "session_2_date_time": "6:45 pm on 21 April, 2025",
        "session_2": [
            {"speaker": "Otto", "dia_id": "D2:1", "text": "I signed up for a pottery course in May."},
            {"speaker": "Ines", "dia_id": "D2:2", "text": "Good. I am learning to play the cello."},
            {"speaker": "Otto", "dia_id": "D2:3", "text": "My sister Paula moved to Lisbon for her new job."},
        ],
    },
    "qa": [
        {"question": "What is Ines's greyhound called?", "evidence": ["D1:3"], "category": 4},
        {"question": "Which instrument is Ines learning?", "evidence": ["D2:02"], "category": 4},
        {"question": "What hobbies does Otto have?", "evidence": ["D1:4; D:2:1"], "category": 1},
        {"question": "When did Ines see the lighthouse?", "evidence": ["D1:5"], "category": 2},
        {"question": "Where does Otto's sister live?", "evidence": ["D2:3", "D"], "category": 3},
        {"question": "What colour is Otto's car?", "evidence": [], "category": 3},
        {"question": "What is Otto's greyhound called?", "evidence": ["D1:3"], "category": 5},
    ],
}
MANUAL = """
Kiln
====

Firing the clay
---------------

Raise the heat by sixty degrees an hour until the cone bends, then hold it for a quarter of an hour, so that
the pot hardens through and the moisture can leave it slowly.

Mixing a glaze
--------------

Stir silica, feldspar and whiting into water, sieve the slurry twice, and let it rest for a night before you
dip the first bowl. A drop of vinegar keeps the powder from settling on the ground of the bucket.
"""

FAILURE = "Exit code 1\nsrc/kiln.py:12:5: undefined name fire_at in the glaze schedule (F821)"
AGAIN = "Exit code 1\nsrc/kiln.py:40:9: undefined name fire_at in the glaze schedule (F821)"


def transcript(session: str, day: int, *entries: tuple[str, object]) -> str:
    """Lines as Claude Code writes them, a minute apart: (type, content of the message)."""
    lines = ['{"type": "summary", "summary": "no time, no session"}', '{"cut off']
    for minute, (kind, content) in enumerate(entries):
        known = {"sessionId": session, "cwd": "/home/ines/kiln", "uuid": f"{session}-{minute}"}
        at = f"2026-02-{day:02}T09:{minute:02}:00.000Z"
        message = {"role": kind, "content": content, "id": f"msg-{minute}"}
        lines.append(json.dumps({"type": kind, **known, "timestamp": at, "message": message}))
    return "\n".join(lines)


def use(number: int, command: str) -> tuple[str, object]:
    given = {"command": command}
    return "assistant", [{"type": "tool_use", "id": f"use-{number}", "name": "Bash", "input": given}]


def result(number: int, output: str, *, error: bool = False) -> tuple[str, object]:
    known = {"type": "tool_result", "tool_use_id": f"use-{number}", "is_error": error}
    return "user", [{**known, "content": output}]


FIRST_DAY = transcript(
    "first",
    2,
    ("user", "<system-reminder>be kind</system-reminder>which cone do we fire the stoneware to?"),
    ("assistant", "Stoneware goes to cone six, held for a quarter of an hour."),
    ("user", "<command-name>/model</command-name>"),
    ("user", "the linter complains about the glaze schedule, please look at it"),
    use(1, "cd /home/ines/kiln && mise run lint 2>&1 | tail"),
    result(1, FAILURE, error=True),
    use(2, "rm -rf /home/ines/kiln-2"),
    result(2, "The user doesn't want to proceed with this tool use. It was rejected", error=True),
    use(3, "mise run lint"),
    result(3, "all checks passed"),
    ("assistant", "The schedule imports fire_at now, and the linter is content."),
)
NEXT_DAY = transcript(
    "second",
    3,
    ("user", "add the raku programme to the kiln"),
    use(4, "mise run lint"),
    result(4, AGAIN, error=True),
    ("user", "[Request interrupted by user]"),
    ("user", "leave it for today"),
    ("assistant", "Stopped; the raku programme is half done."),
)


class Bench(Protocol):
    def __call__(self, script: str, *options: str | Path) -> str: ...


def forked(command: str, args: list[str], **options: Any) -> StdioServerParameters:
    """How to start a server that is forked: `command` is a Python, whose start takes longer than the work."""
    program = os.path.join(forked_backstory(), "backstory")
    return StdioServerParameters(command=program, args=args[args.index("mcp") :], **options)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Bench:
    for script in ("recall_quality", "real_sessions", "docmem"):  # recall_speed.py measures the start as well
        monkeypatch.setattr(f"{script}.StdioServerParameters", forked)
    return partial(run_bench, patch=monkeypatch, captured=capfd)


def test_a_conversation_is_told_and_its_questions_are_answered_in_every_mode(
    bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([CONVERSATION]))

    shown = bench("recall_quality.py", "--locomo", file, "--docs", "0", "--json", tmp_path / "figures.json")

    found = json.loads((tmp_path / "figures.json").read_text())
    told = found["conversations"]
    assert (told["turns"], told["memories"]) == (8, 8)
    assert told["questions"] == {"asked": 6, "counted": 5, "without": 1, "mended": 2, "lost": 1}
    rows = {row["case"]: row for row in told["rows"]}
    assert list(rows) == ["hybrid", "keyword", "semantic", "plain FTS5 BM25"]
    assert all(row["questions"] == 5 for row in rows.values())
    assert all(0 < row["r1"] <= row["mrr"] <= row["r10"] <= 1 for row in rows.values())
    assert rows["hybrid"]["r10"] == 1  # eight memories, and ten are asked for
    assert {row["case"]: row["questions"] for row in told["categories"]} == {
        "several facts": 1,
        "time": 1,
        "inference": 1,
        "one fact": 2,
    }
    assert told["notices"] == {}
    assert all(row["case"] in shown for row in (*told["rows"], *told["categories"]))
    assert [budget["name"] for budget in found["budgets"]] == ["hybrid R@10", "hybrid R@1", "hybrid MRR"]


def test_headings_are_looked_up_with_and_without_them_in_the_text(bench: Bench, tmp_path: Path) -> None:
    manuals = tmp_path / "manuals"
    manuals.mkdir()
    (manuals / "kiln.rst").write_text(MANUAL)

    shown = bench("recall_quality.py", "--docs", "5", "--docs-from", manuals)

    assert "conversations: skipped, no LoCoMo file" in shown
    assert "2 of 2 headings" in shown
    assert all(
        f"{name}: {case}" in shown for name in ("manuals", "bodies") for case in ("hybrid", "plain FTS5")
    )


SKIPPED = "conversations: skipped, no LoCoMo file (--locomo FILE names one)\n"


@pytest.mark.parametrize("options", [[], ["--locomo", "nowhere.json"]])
def test_without_conversations_one_line_says_so(bench: Bench, options: list[str]) -> None:
    assert bench("recall_quality.py", *options, "--docs", "0") == SKIPPED


def test_a_transcript_becomes_the_payloads_that_its_hooks_were_given() -> None:
    import transcripts

    payloads = transcripts.payloads(FIRST_DAY.encode().splitlines(), "/elsewhere")

    assert [payload["hook_event_name"] for payload in payloads] == [
        "SessionStart",
        "UserPromptSubmit",
        "Stop",
        "UserPromptSubmit",
        "PostToolUseFailure",
        "PostToolUse",
        "Stop",
        "SessionEnd",
    ]
    assert payloads[1]["prompt"] == "which cone do we fire the stoneware to?"
    assert payloads[2]["last_assistant_message"].startswith("Stoneware goes to cone six")
    assert payloads[4]["tool_input"]["command"].startswith("cd /elsewhere && mise")
    assert payloads[5]["tool_response"] == {"stdout": "all checks passed", "stderr": ""}
    assert {payload["cwd"] for payload in payloads} == {"/elsewhere"}
    times = [payload["at"] for payload in payloads]
    assert times == sorted(set(times))
    turns = transcripts.turns(payloads)
    assert [(len(turn.prompts), turn.stopped) for turn in turns] == [(1, True), (1, True)]
    interrupted = transcripts.turns(transcripts.payloads(NEXT_DAY.encode().splitlines(), "/elsewhere"))
    assert [len(turn.prompts) for turn in interrupted] == [2]
    assert transcripts.payloads([b"", b"{}"], "/elsewhere") == []


def test_an_error_is_the_same_whatever_its_line_number_and_folder() -> None:
    import seen_errors

    (first,), (again,) = seen_errors.error_lines(FAILURE), seen_errors.error_lines(AGAIN)
    assert seen_errors.signature(first) == seen_errors.signature(again.replace("src/", "/tmp/x/"))
    assert seen_errors.signature(first) != seen_errors.signature(first.replace("kiln.py", "oven.py"))
    assert seen_errors.kind(first) == seen_errors.kind(first.replace("kiln.py", "oven.py"))
    assert seen_errors.checks("cd /x && CI=1 mise run lint ./... 2>&1 | tail") == ("mise run lint",)


def test_copies_of_transcripts_are_backfilled_with_ids_of_their_own(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "transcripts"
    folder.mkdir()
    named = "5dd7775c-3161-4ad5-bf25-eb59a6ffa8e6"
    entries = [json.loads(line) for line in FIRST_DAY.splitlines() if '"sessionId"' in line]
    session = entries[0]["sessionId"]
    (folder / f"{named}.jsonl").write_text(FIRST_DAY.replace(session, named) + " " * 400_000 + "\n")
    figures = tmp_path / "figures.json"

    shown = bench("backfill.py", folder, "--megabytes", "1", "--json", figures)

    found = json.loads(figures.read_text())
    assert (found["files"], found["sessions"], found["turns"]) == (3, 3, 6)
    assert [row["case"] for row in found["rows"]] == ["backstory backfill", "read and json.loads"]
    assert "of memory" in shown


def test_real_sessions_are_lived_again_and_asked_about(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "transcripts"
    folder.mkdir()
    (folder / "b.jsonl").write_text(FIRST_DAY)
    (folder / "a.jsonl").write_text(NEXT_DAY)
    questions = [
        {"question": "what do we fire the stoneware to", "answer": "which cone|cone six", "type": "text"},
        {"question": "which glaze contains cobalt", "answer": "", "type": "none"},
    ]
    opened, unopened = tmp_path / "opened.json", tmp_path / "unopened.json"
    opened.write_text(json.dumps({"questions": questions}))
    unopened.write_text(json.dumps([{**questions[0], "answer": "porcelain"}]))
    figures = tmp_path / "figures.json"

    shown = bench(
        *("real_sessions.py", folder, "--questions", opened, "--unopened", unopened, "--json", figures),
        *("--seen-errors", "--facts", "1", "--verbose"),
    )

    found = json.loads(figures.read_text())
    assert (found["sessions"], found["turns"], found["payloads_put_aside"]) == (2, 3, 0)
    assert found["events"] == 14
    assert 0 < found["median_text"] <= found["median_text_with_tools"]
    assert found["database_bytes"] > 0
    asked, sealed = found["questions"]
    assert (asked["answerable"], asked["unanswerable"], asked["missed"]) == (1, 1, [])
    assert [row["five"] for row in asked["rows"]] == [1, 1, 1, 1]
    assert all(row["first"] <= row["five"] and row["tokens"] > 0 for row in asked["rows"])
    assert [row["five"] for row in sealed["rows"]] == [0, 0, 0, 0]
    assert (sealed["missed"], sealed["by_type"]) == ([], {})
    assert [one["cases"] for one in found["seen_errors"]] == [1, 1, 1, 1]
    assert found["seen_errors"][0]["session_five"] == 1
    assert "missed" not in shown.partition("budget")[0]
    assert "opened.json: 1 questions with an answer" in shown


def test_what_is_told_unasked_is_measured_on_labelled_prompts(bench: Bench, tmp_path: Path) -> None:
    folder, branch, day = tmp_path / "transcripts", "ines/kiln", 86_400_000
    for number in range(12):
        log = Log(f"other{number}", "/Users/ines/pots", THEN + number * 1_000_000, gitBranch="main")
        log.prompt(f"sweep room {number}").say(f"Room {number} is swept.").write(folder)
    before = Log("before", "/Users/ines/pots", THEN + day, gitBranch=branch)
    before.prompt("fire the stoneware kiln to cone six").say("The kiln holds cone six for ten minutes.")
    before.prompt("thanks, that is all for the day").say("Good night.").write(folder)
    for number in range(3):  # so that the brief tells these
        log = Log(
            f"after{number}", "/Users/ines/pots", THEN + day + (number + 1) * 1_000_000, gitBranch=branch
        )
        log.prompt(f"count the glaze buckets {number}").say(f"There are {number}.").write(folder)
    now = Log("now", "/Users/ines/pots", THEN + day + day // 2, gitBranch=branch)
    now.prompt("why does the stoneware kiln stop at cone six?").say("Because of the relay.")
    now.prompt("unplug it").say("Done.").write(folder)
    turns = [
        {"id": f"{log.session}#{number}", "session": log.session, "at": at}
        for log in (before, now)
        for number, at in enumerate(
            at for at, one in log.payloads if one["hook_event_name"] == "UserPromptSubmit"
        )
    ]
    labels = [
        {"id": "now#0", "need": True, "right": ["before#0"]},
        {"id": "now#1", "need": False, "right": []},
    ]
    files = {"turns": turns, "labels": labels, "foreign": ["translate the sonata into Portuguese verse"]}
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    given = [part for name in files for part in (f"--{name}", tmp_path / f"{name}.json")]
    figures = tmp_path / "figures.json"

    bench("telling.py", folder, *given, "--json", figures, "--moments", tmp_path / "moments.json")

    found = json.loads(figures.read_text())
    assert (found["sessions"], found["labelled"], found["labels_without_a_moment"]) == (17, 2, 0)
    assert found["all"]["first_right"] == found["all"]["first_in_need"] == 1
    assert (found["all"]["others_told"], found["all"]["foreign"], found["all"]["foreign_told"]) == (0, 2, 0)
    assert (tmp_path / "figures.svg").read_text().startswith("<svg")
    again = bench("telling.py", folder, *given, "--moments", tmp_path / "moments.json")
    assert "17 sessions" in again


def test_a_benchmark_is_a_program() -> None:
    command = [sys.executable, str(REPOSITORY / "bench" / "recall_quality.py"), "--docs", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert (done.stdout, done.stderr) == (SKIPPED, "")


def test_a_small_store_is_filled_searched_and_weighed(bench: Bench, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"

    shown = bench("recall_speed.py", "--sizes", "500", "--samples", "2", "--dir", tmp_path, "--json", figures)

    (size,) = json.loads(figures.read_text())["sizes"]
    assert size["memories"] == 500
    assert [row["case"] for row in size["rows"]] == [
        "hybrid",
        "keyword",
        "semantic",
        "one memory by its id",
        "plain FTS5 BM25",
        "float32 matmul",
    ]
    assert all(0 < row["p50_ms"] <= row["p95_ms"] < 10_000 for row in size["rows"])
    assert 70 < size["words"] < 120
    assert size["bytes_a_memory"] > size["text_bytes_a_memory"] > 300
    assert size["inserts_per_second"] > 100
    assert size["vectors_per_second"] > 100
    assert 0 < size["tools_list_s"] < 60
    if sys.platform == "linux":
        assert 0 < size["server_anonymous_mb"] < size["server_mb"] < 1_000
    assert all(row["case"] in shown for row in size["rows"])
    assert "tools/list after a start, 500 memories" in shown


def test_small_trees_are_expanded_grown_and_shown(bench: Bench, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"

    shown = bench("docmem.py", "--size", "600", "--samples", "2", "--dir", tmp_path, "--json", figures)

    found = json.loads(figures.read_text())
    assert found["nodes"] == 600
    rows = {row["case"]: row for row in (*found["rows"], *found["calls"])}
    assert all(0 < row["p50_ms"] <= row["p95_ms"] < 10_000 for row in rows.values())
    assert {row["against"] for row in rows.values() if row["ratio"]} == {
        "reading these rows, flat",
        "reading these rows, bushy",
        "reading these rows, deep",
        "one INSERT",
        "write, fsync, rename",
    }
    assert [budget["name"] for budget in found["budgets"]] == [
        "expand to 10,000 tokens, flat",
        "expand to 10,000 tokens, bushy",
        "expand to 10,000 tokens, deep",
        "insert append-child, flat",
        "insert after, flat",
        "insert append-child, bushy",
        "insert before, bushy",
        "view rewritten, 40 KB",
    ]
    assert "docmem_update_content, bushy, in a view" in rows
    assert "below 50 ms" in shown


def test_init_and_sync_are_timed_beside_bare_python(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claude_md.WARM_UP", 0)
    figures = tmp_path / "figures.json"

    shown = bench("claude_md.py", "--speed-only", "--files", "30", "--rounds", "1", "--json", figures)

    found = json.loads(figures.read_text())
    assert found["files"] == 30
    assert set(found["p50_seconds"]) == {
        "bare Python",
        "reading every file once",
        "init",
        "sync after 20 changes",
        "sync --all after 20 changes",
    }
    assert found["p50_seconds"]["init"] > found["p50_seconds"]["bare Python"] > 0
    assert [budget["bound"] for budget in found["budgets"]] == ["below"] * 3
    assert "below 3 s" in shown


def test_a_fact_too_many_and_a_fact_too_few_both_count() -> None:
    import claude_md

    one = claude_md._score(
        "one", ["language: Go", "tests Go: *_test.go"], ["language: Go", "framework: gin"], 0.1
    )
    two = claude_md._score("two", ["language: C", "naming C: _"], ["language: C", "naming C: _"], 0.1)

    assert (one.precision, one.recall) == (0.5, 0.5)
    assert (one.missing, one.wrong) == (("tests Go: *_test.go",), ("framework: gin",))
    told = claude_md._told([one, two])
    assert (told["precision"], told["recall"]) == (0.75, 0.75)


def test_what_init_should_find_is_written_down_for_packages_of_five_languages() -> None:
    expected = [json.loads(path.read_text()) for path in (REPOSITORY / "bench/init_expected").glob("*.json")]

    assert len(expected) >= 8
    facts = {fact for one in expected for fact in one["facts"]}
    languages = {f"language: {name}" for name in ("Python", "JavaScript", "TypeScript", "Go", "Rust", "Java")}
    assert languages <= facts
    assert all(len(one["facts"]) == len(set(one["facts"])) for one in expected)


def test_a_flow_is_traced_through_the_rooms_that_it_crosses(bench: Bench, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"

    bench("flows.py", "--flow", "memory_search, warm", "--crossed", "--json", figures)

    flow = json.loads(figures.read_text())["flows"]["memory_search, warm"]
    rooms = {function.partition("/")[0] for function in flow["crossed"]}
    assert {"surfaces", "recall", "store"} <= rooms
    assert flow["modules"] <= flow["functions"] == len(flow["crossed"])


def test_a_small_store_is_exported_and_imported(bench: Bench, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"

    shown = bench("exchange.py", "--size", "90", "--dir", tmp_path, "--json", figures)

    found = json.loads(figures.read_text())
    rows = {row["case"]: row for row in found["results"]}
    assert found["memories"] == 90
    assert rows["export"]["file_mb"] > 0.05
    assert all(row["seconds"] >= 0 and row["peak_mb"] > 5 for row in rows.values())
    assert {"every row as SQL text", "plain INSERTs"} < set(rows)
    # Whether they are met is not asked here: a child's peak counts what the test process had when it forked.
    assert [budget["name"] for budget in found["budgets"]] == [
        "most memory of an export",
        "most memory of an import",
    ]
    assert "most memory of an import" in shown


def test_the_verdicts_of_readers_are_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statement = {"text": "x", "true": True, "useful": False}
    for reader, commits in (("one", True), ("two", False)):
        verdict = {
            "statements": [statement, {**statement, "useful": True}],
            "needs": {"n1": "met", "n2": "partly", "n3": "missing", "n4": "missing"},
            "commit": commits,
        }
        path = tmp_path / "verdicts" / "after" / reader / "zoo.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(verdict), "utf-8")
    options = ("--verdicts", tmp_path / "verdicts", "--json", "-")
    told = json.loads(run_bench("newcomer.py", *options, patch=monkeypatch, captured=capsys))
    (figures,) = told["figures"]
    assert (figures["true"], figures["useful"], figures["recall"]) == (1.0, 0.5, 0.375)
    assert (figures["committed"], figures["committed_by_all"]) == (0.5, 0)
