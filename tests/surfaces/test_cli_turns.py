"""The command line: turns, as a person sees them in a search, a list, a session, a timeline and whole."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.helpers.chaos import MINUTE, Json, bash, tool_use
from tests.helpers.embedder import loaded_embedder  # noqa: F401  for all tests here
from tests.helpers.terminal import plain_lines, seen_at_terminal
from tests.helpers.turn_payloads import commit, edit, happened

Turn = Callable[..., None]

ANSWER = """# What was wrong

`parse_date` crashed on `None`: a guard was missing.

- the guard returns early
- all tests pass

Next: add a test for None input."""


@pytest.fixture
def turn(data: Path, project: str) -> Turn:
    """A turn of a moment ago."""

    def taken(asked: str | tuple[str, ...], *uses: Json, minutes: float = 1, **how: object) -> None:
        at = int(time.time() * 1000 - minutes * MINUTE)
        happened(data, project, asked, *uses, at=at, **how)  # type: ignore[arg-type]

    return taken


@pytest.fixture
def fixed(turn: Turn, project: str, run: Run) -> str:
    """A turn that fixed something and committed it; its id."""
    failure = tool_use("Bash", {"command": "pytest -q"}, None) | {
        "hook_event_name": "PostToolUseFailure",
        "error": "Exit code 1\nAttributeError: 'NoneType' object has no attribute 'strip'",
    }
    read = tool_use("Read", {"file_path": f"{project}/README.md"}, {"type": "text"})
    uses = [read, failure, edit(f"{project}/src/dates.py"), bash("pytest -q", "3 passed"), commit("Guard it")]
    turn(("parse_date crashes", "find out\nwhy"), *uses, answer=ANSWER)
    found: str = run("list", "--kind", "turn", "--json").json[0]["id"]
    return found


def test_a_search_shows_what_was_asked_what_fits_and_the_commits(fixed: str, run: Run) -> None:
    head, *lines = run("search", "parse_date None").out.splitlines()
    assert re.fullmatch(rf" 1\. {fixed}  20\S+ \S+  turn/episodic  score \d\.\d\d", head)
    assert lines == [
        "    asked: parse_date crashes / find out why",
        "      answered: # What was wrong",
        "        `parse_date` crashed on `None`: a guard was missing.",
        "        - the guard returns early",
        "        - all tests pass",
        "        Next: add a test for None input.",
        "      failed, then passed: pytest -q: AttributeError: 'NoneType' object has no attribute 'strip'",
        "      edited: src/dates.py",
        "      commit 3f2c1ab: Guard it (dates.py)",
    ]


def test_a_turn_as_json_has_what_was_asked_an_excerpt_and_the_whole(fixed: str, run: Run) -> None:
    (hit,) = run("search", "parse_date None", "--json").json
    assert (hit["id"], hit["kind"], hit["asked"]) == (fixed, "turn", "parse_date crashes / find out why")
    assert hit["excerpt"].startswith("asked: parse_date crashes / find out why\nanswered: # What was wrong\n")
    below = ANSWER.replace("\n", "\n  ")
    assert f"answered: {below}" in hit["content"]
    (by_id,) = run("search", fixed, "--json").json
    assert by_id["excerpt"].startswith("asked: parse_date crashes\n")


def test_the_id_of_a_turn_finds_it_with_what_was_asked_and_answered(fixed: str, run: Run) -> None:
    lines = run("search", fixed).out.splitlines()
    assert lines[1] == "    asked: parse_date crashes"
    assert "      asked: find out why" in lines
    assert any(line.startswith("      answered: # What was wrong `parse_date` crashed") for line in lines)


def test_a_search_that_nothing_fits_says_so_beside_the_nearest(turn: Turn, run: Run) -> None:
    turn("rename the walrus service", answer="renamed")
    far = run("search", "how are walrus invoices rounded for Norway", "--mode", "keyword")
    assert (far.code, far.err) == (0, "Nothing fits well; these are the nearest.\n")
    assert "walrus service" in far.out
    assert run("search", "walrus service", "--mode", "keyword").err == ""


def test_a_search_finds_turns_or_tool_uses_on_request(fixed: str, run: Run) -> None:
    assert [hit["id"] for hit in run("search", "pytest", "--kind", "turn", "--json").json] == [fixed]
    kinds = {hit["kind"] for hit in run("search", "pytest", "--kind", "tool", "--json").json}
    assert kinds == {"tool"}
    refused = run("search", "pytest", "--kind", "prompt")
    assert (refused.code, "'prompt' is not one of 'tool', 'turn'" in refused.err) == (2, True)


def test_a_turn_is_shown_whole_part_by_part(fixed: str, run: Run) -> None:
    head, _, told = run("show", fixed[4:10]).out.partition("\n\n")
    assert head.startswith(f"{fixed}\n     kind  turn, complete\n  created  ")
    assert "author" not in head
    assert told == (
        "asked\nparse_date crashes\n\nasked\nfind out\nwhy\n\n"
        f"answered\n{ANSWER}\n\n"
        "commits\ncommit 3f2c1ab: Guard it (dates.py)\n\n"
        "failed, then passed\npytest -q: AttributeError: 'NoneType' object has no attribute 'strip'\n\n"
        "edited\nsrc/dates.py\n\n"
        "read\nREADME.md\n"
    )


def test_a_list_has_a_line_for_a_turn_and_none_for_tool_uses(fixed: str, turn: Turn, run: Run) -> None:
    turn("lay the keel", bash("saw oak"), answer=None, session="s2", minutes=0.5)
    note = run("add", "the walrus sleeps").id
    lines = run("list").out.splitlines()
    assert [line.split()[0] for line in lines][0::2] == [note, fixed]
    assert lines[1].endswith("  turn        lay the keel — open")
    assert lines[2].endswith("  turn        parse_date crashes / find out why — What was wrong")
    assert "Command: saw oak" in run("list", "--kind", "tool").out
    trace = run("list", "--kind", "tool", "--json").json[0]["id"]
    run("forget", trace)
    assert [one["id"] for one in run("list", "--forgotten", "--json").json] == [trace]
    assert "--kind tool" in run("list", "--help").out


def test_a_list_of_nothing_but_tool_uses_says_how_to_see_them(data: Path, project: str, run: Run) -> None:
    happened(data, project, (), bash("saw oak"), answer=None)
    empty = run("list")
    assert (empty.code, "--kind tool lists tool uses" in empty.err) == (1, True)
    assert run("list", "--kind", "tool").code == 0


def test_a_session_is_told_turn_by_turn(fixed: str, turn: Turn, run: Run) -> None:
    turn("lay the keel", edit("/elsewhere/x"), answer=None, minutes=0.5)
    lines = run("sessions", "session-1").out.splitlines()
    assert lines[0] == "session-1  active, 2 turns, 0 memories, 6 traces"
    assert lines[1].endswith(f"{fixed}  > parse_date crashes / find out why")
    assert lines[2].startswith("      answered: # What was wrong · `parse_date` crashed on `None`")
    assert lines[2].endswith("Next: add a test for None input.")
    assert lines[3] == "      commit 3f2c1ab: Guard it (dates.py)"
    assert lines[4].startswith("      failed, then passed: pytest -q: ")
    assert lines[5] == "      edited: src/dates.py"
    assert lines[6].endswith("  > lay the keel")
    assert lines[7:] == ["      open"]


def test_the_sessions_are_listed_with_as_many_memories_as_a_list_of_one_has(fixed: str, run: Run) -> None:
    run("add", "the walrus sleeps")  # at the terminal, in no session
    (session,) = run("sessions", "--json").json
    assert (
        session["turns"] + session["memories"]
        == len(run("list", "--session", "session-1", "--json").json)
        == 1
    )


def test_a_turn_that_was_forgotten_is_not_told_with_its_session(fixed: str, run: Run) -> None:
    run("forget", fixed)
    assert "parse_date" not in run("sessions", "session-1").out
    run("restore", fixed)
    assert "> parse_date" in run("sessions", "session-1").out


def test_a_timeline_has_a_line_for_a_turn(fixed: str, turn: Turn, run: Run) -> None:
    turn("lay the keel", answer="laid", minutes=0.5)
    lines = run("timeline", fixed).out.splitlines()
    assert re.fullmatch(
        rf">>> 20\S+ \S+  {fixed}  parse_date crashes / find out why — What was wrong", lines[1]
    )
    assert lines[2].endswith("  lay the keel — laid")
    assert "turn by turn" in run("timeline", "--help").out
    as_json = run("timeline", fixed, "--json").json
    assert [one["kind"] for one in as_json["after"]] == ["turn"]


def test_nothing_in_a_turn_can_drive_the_terminal(turn: Turn, project: str, run: Run) -> None:
    evil = "evil \x1b[2J\x1b]0;title\x07 [red]markup[/red] \x9b31m \u202e"
    turn(evil, edit(f"{project}/{evil}"), commit(evil), answer=f"{evil}\n\n{evil}")
    (hit,) = run("search", "evil", "--json").json
    for command in ("search evil", f"search {hit['id']}", f"show {hit['id']}", "list", "sessions session-1"):
        told = run(*command.split()).out
        assert not set("\x1b\x9b\x07\u202e") & set(told), command
        assert "[red]markup[/red]" in told, command
    assert "evil" in run("timeline", hit["id"]).out


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_terminal_gets_no_wall_of_text(columns: int, turn: Turn, project: str) -> None:
    for number in range(3):
        paragraphs = [f"The walrus {number} of paragraph {n} sleeps. " * 5 for n in range(30)]
        turn(f"tell me about walrus {number} " * 9, answer="\n\n".join(paragraphs), session=f"s{number}")
    lines = plain_lines("search walrus", project, columns)
    assert [line for line in lines if len(line) > columns] == []
    heads = [place for place, line in enumerate(lines) if re.match(r" \d\. mem_", line)]
    sizes = [after - before for before, after in zip(heads, [*heads[1:], len(lines)], strict=True)]
    assert sizes[0] <= 13
    assert max(sizes[1:]) <= 7
    assert "\x1b[1m    asked: " in seen_at_terminal("search walrus", project, columns)
    listed = plain_lines("list", project, columns)
    assert len([line for line in listed if line.startswith("mem_")]) == 3
    assert len(listed) <= (3 if columns >= 100 else 9)  # narrow: two rows below each, whole words
    assert all(len(line) <= columns for line in listed)
