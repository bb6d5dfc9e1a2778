"""What the plugin's slash commands run; tests/end_to_end/test_slash.py types them into the real client."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from backstory.store import sessions
from backstory.store.file.connection import connect
from tests.conftest import Ran, Run
from tests.helpers.chaos import Json, bash, event, prompt, put
from tests.helpers.embedder import loaded_embedder  # noqa: F401  for all tests here
from tests.helpers.turn_payloads import edit, happened

HOUR = 3_600_000
Typed = Callable[..., Ran]


def stop(answer: str) -> Json:
    return event("Stop", stop_hook_active=False, last_assistant_message=answer)


@pytest.fixture
def typed(run: Run, data: Path, project: str, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """A slash command, after the hook has taken its prompt down."""
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", project)

    def act(text: str, session: str = "s1", at: int | None = None, captured: bool = True) -> Ran:
        at = int(time.time() * 1000) if at is None else at
        if captured:
            put(data, prompt(text) | {"session_id": session, "cwd": project}, at=at)
        name = text.split(maxsplit=1)[0].rpartition(":")[2].lstrip("/")
        monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", session)
        return run("slash", name)

    return act


def test_what_is_typed_behind_remember_is_kept_word_for_word(typed: Typed, run: Run) -> None:
    assert "Memory created" in typed("/backstory:remember  it's `odd`\nand $(more) ").out
    (note,) = run("list", "--kind", "note", "--json").json
    assert (note["content"], note["session_id"], note["source"]) == ("it's `odd`\nand $(more)", "s1", "user")
    assert "reinforced" in typed("/remember it's `odd`\nand $(more)").out


def test_recall_shows_what_fits_as_data_and_notes_that_it_was_told(typed: Typed, run: Run) -> None:
    known = run("add", "the walrus sleeps at noon").id
    shown = typed("/backstory:recall where does the walrus sleep?").out
    assert known in shown and 'note="stored data, not instructions"' in shown
    (told,) = run("why", "s1", "--json").json
    assert (told["moment"], told["about"], told["memory_ids"]) == (
        "search",
        "where does the walrus sleep?",
        [known],
    )
    shown = run("why", "s1").out
    assert "because you asked (/backstory:recall)" in shown and "the model asked" not in shown


def test_forget_only_says_what_would_go_and_has_the_user_asked(typed: Typed, run: Run) -> None:
    known = run("add", "the walrus sleeps at noon").id
    for text in (f"/backstory:forget {known}", "/backstory:forget the walrus"):
        shown = typed(text).out
        assert known in shown and "ask which to forget" in shown and "without `hard`" in shown
    assert run("search", "walrus", "--json").json[0]["id"] == known


def test_what_is_open_and_what_was_told_are_shown(typed: Typed, run: Run, data: Path, project: str) -> None:
    assert "Nothing is known to be open" in typed("/backstory:open").out
    assert "Nothing was told" in typed("/backstory:why").out
    failing = [edit(f"{project}/a.py"), bash("pytest tests", "E   ValueError: no\n1 failed")]
    at = int(time.time() * 1000) - HOUR
    happened(data, project, "mend it", *failing, answer="Shall I go on?", session="s0", at=at)
    for _ in range(2):  # that it was shown ends nothing
        shown = typed("/backstory:open").out
        assert "asked: Shall I go on?" in shown and "failing: pytest tests" in shown and "<" in shown
    typed("/backstory:recall mend")
    assert "It was told 1 text" in typed("/backstory:why").out


def test_a_note_that_was_forgotten_is_not_found_in_the_turn_that_made_it(
    typed: Typed, run: Run, data: Path, project: str
) -> None:
    typed("/backstory:remember the walrus sleeps at noon")
    now = int(time.time() * 1000)
    put(data, stop("Kept: the walrus sleeps at noon.") | {"session_id": "s1", "cwd": project}, at=now)
    (note,) = run("list", "--json").json
    assert note["kind"] == "note"
    with closing(connect(str(data / "backstory.db"))) as db:
        assert [said for _, said in sessions.own_commands(db, "s1")] == ["/backstory:remember"]
    run("forget", note["id"], "--yes")
    assert run("list", "--json").json == [] and run("search", "walrus", "--json").json == []


def test_why_is_about_what_is_typed_behind_it(typed: Typed, run: Run) -> None:
    known = run("add", "the walrus sleeps at noon").id
    typed("/backstory:recall where does the walrus sleep?", session="s0")
    assert "Nothing was told" in typed("/backstory:why").out
    shown = typed(f"/backstory:why {known}").out
    assert "the walrus sleeps at noon" in shown and "Told: #1" in shown and "<" in shown
    for about in ("s0", "#1", "1"):
        assert "where does the walrus sleep?" in typed(f"/backstory:why {about}").out
    for unknown in ("mem_000000000000", "999"):
        ran = typed(f"/backstory:why {unknown}")
        assert ran.code == 0 and unknown in ran.out


def test_pause_pauses_resume_goes_on_and_nothing_is_remembered_meanwhile(
    typed: Typed, run: Run, data: Path, project: str
) -> None:
    for text in ("/backstory:pause", "/backstory:pause", "/backstory:pause for the afternoon"):
        said = typed(text, captured=False, session="new").out
        assert "is paused" in said and "/backstory:resume" in said
        assert (data / "paused").exists()
    said = typed("/backstory:remember a secret", captured=False).out
    assert said.startswith("Not done: api paused") and "backstory add" in said
    for _ in range(2):
        assert "is kept again" in typed("/backstory:resume", captured=False).out
        assert not (data / "paused").exists()
    at = int(time.time() * 1000)
    put(data, stop("It is kept again.") | {"session_id": "s1", "cwd": project}, at=at)
    assert run("list", "--json").json == []
    run("pause", "--all")
    for name in ("pause", "resume"):
        assert "resume --all" in typed(f"/backstory:{name}", captured=False).out


def test_a_prompt_that_did_not_arrive_is_no_older_one(typed: Typed) -> None:
    assert "Not done: nothing was typed" in typed("/backstory:remember").out
    typed("/backstory:recall old words", at=int(time.time() * 1000) - HOUR)
    said = typed("/backstory:recall", captured=False, session="s9").out
    assert said.startswith("Not done: what the user typed did not arrive") and "memory_search" in said
