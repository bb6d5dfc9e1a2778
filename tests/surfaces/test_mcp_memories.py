"""The MCP server `memory`: memories are added, weighed, deleted and superseded."""

from __future__ import annotations

import re
import time
from itertools import pairwise
from pathlib import Path

import pytest

from backstory.store import life
from backstory.store.file.connection import transaction
from backstory.surfaces import erasing
from tests.helpers.chaos import assert_sound, drain, event, put
from tests.helpers.mcp_client import Server, ids
from tests.helpers.memory_desk import MINUTE, NOTHING, SECTORS, Desk, store
from tests.helpers.turn_payloads import happened

pytestmark = pytest.mark.slow


@pytest.fixture
def desk(memory_server: tuple[Server, Path, Path], tmp_path: Path) -> Desk:
    return Desk(*memory_server, tmp_path / "project")


def shown_salience(reply: str) -> float:
    found = re.search(r"salience: (\d\.\d\d)\)", reply)
    assert found, reply
    return float(found[1])


# --- memory_add ---------------------------------------------------------------------------------------------


def test_a_memory_is_classified_when_it_is_added(desk: Desk) -> None:
    reply = desk.ask("memory_add", content="User prefers TypeScript")
    assert re.fullmatch(r"Memory created: mem_\w+ \(sector: emotional, salience: 0\.50\)", reply)
    (known,) = desk.rows(
        "SELECT * FROM memories WHERE content = 'User prefers TypeScript'"
        " AND project_id = (SELECT id FROM projects WHERE root = ?)",
        str(desk.project),
    )
    assert (known["kind"], known["sector"], known["tier"]) == ("note", "emotional", "project")


@pytest.mark.parametrize(
    ("content", "sector"),
    [
        ("To deploy: run make build, then push the image, then restart the service", "procedural"),
        ("The API uses JWT with RS256 keys", "semantic"),
        ("Yesterday the build failed because the disk was full", "episodic"),
        ("Lesson learned: in hindsight a monolith would have been simpler", "reflective"),
    ],
)
def test_each_sector_is_recognised(desk: Desk, content: str, sector: str) -> None:
    assert f"(sector: {sector}, " in desk.ask("memory_add", content=content)


@pytest.mark.parametrize("sector", SECTORS)
def test_a_sector_that_is_given_wins(desk: Desk, sector: str) -> None:
    reply = desk.ask("memory_add", content="User prefers TypeScript", sector=sector)
    assert f"(sector: {sector}, salience: 0.50)" in reply


def test_tags_and_importance_are_kept_and_importance_is_the_first_salience(desk: Desk) -> None:
    memory = desk.add("The walrus sleeps", tags=["zoo", "größe"], importance=0.9)
    (known,) = desk.rows("SELECT tags, importance, salience FROM memories WHERE id = ?", memory)
    assert known == {"tags": '["zoo", "größe"]', "importance": 0.9, "salience": 0.9}
    assert desk.search("zoo", mode="keyword") == [memory]


@pytest.mark.parametrize("importance", [0, 1])
def test_importance_may_be_nothing_or_all(desk: Desk, importance: int) -> None:
    desk.add("The walrus sleeps", importance=importance)


@pytest.mark.parametrize(
    ("content", "again"),
    [
        ("The queue waits when the lock is held.", "The queue waits when the lock is held."),
        ("The queue waits when the lock is held.", "  The queue waits when the lock is held.\n"),
        ("The queue waits when the lock is held.", "When the lock is held, the queue waits."),
        ("Always run the migrations before the tests.", "always run migrations before tests"),
    ],
)
def test_a_duplicate_reinforces_what_is_known(desk: Desk, content: str, again: str) -> None:
    memory = desk.add(content)
    reply = desk.ask("memory_add", content=again)
    assert re.fullmatch(rf"Memory reinforced: {memory} \(new salience: 0\.5[5-9]\)", reply)
    assert desk.search("queue lock migrations tests", mode="keyword") == [memory]
    links = "SELECT usage_type FROM session_memories WHERE memory_id = ? AND session_id = 'a-session'"
    assert {"created", "reinforced"} <= {row["usage_type"] for row in desk.rows(links, memory)}


@pytest.mark.parametrize(
    ("content", "other"),
    [
        ("The service listens on port 8080", "The service listens on port 8081"),
        ("Do not cache the answers", "Do cache the answers"),
        ("The token is read in src/auth.py", "The token is read in src/auth2.py"),
    ],
)
def test_texts_that_differ_in_a_fact_are_two_memories(desk: Desk, content: str, other: str) -> None:
    assert desk.add(content) != desk.add(other)


def test_what_was_deleted_is_no_duplicate(desk: Desk) -> None:
    first = desk.add("The walrus sleeps")
    desk.ask("memory_delete", memory_id=first)
    assert desk.add("The walrus sleeps") != first


def test_secrets_are_redacted_before_anything_is_stored(desk: Desk) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    memory = desk.add(f"The walrus token is {secret} <private>and the pin is 7731</private>", tags=[secret])
    assert "[redacted:" in desk.ask("memory_search", query=memory)
    for path in desk.data.glob("backstory.db*"):
        assert secret.encode() not in path.read_bytes()
        assert b"pin is 7731" not in path.read_bytes()


def test_a_memory_belongs_to_the_session_of_its_server(desk: Desk) -> None:
    memory = desk.add("The walrus sleeps")
    (known,) = desk.rows("SELECT session_id FROM memories WHERE id = ?", memory)
    assert known["session_id"] == "a-session"
    links = desk.rows("SELECT session_id, usage_type FROM session_memories WHERE memory_id = ?", memory)
    assert links == [{"session_id": "a-session", "usage_type": "created"}]


def test_recalled_text_does_not_go_in_again(desk: Desk) -> None:
    desk.add("The walrus sleeps")
    recalled = desk.ask("memory_search", query="walrus")
    memory = desk.add(f"As we know:\n{recalled}\nand so we feed it.")
    content = desk.rows("SELECT content FROM memories WHERE id = ?", memory)[0]["content"]
    assert "sleeps" not in content
    assert "and so we feed it" in content


ODD_TEXTS = {
    "emoji": "The walrus 🦭 is 👩‍👩‍👧 family",
    "right to left": "הסוס walrus الفظ \u202eesrever\u202c",
    "control characters": "walrus \x01\x02\x1b[31mred\x1b[0m \x7f bell\x07",
    "NUL": "walrus \0 between",
    "Chinese": "海象 walrus 在睡觉",
    "combining": "walrus z̸̢̛̗̹a̷̧l̶͎g̵o",
    "quotes and SQL": "walrus'); DROP TABLE memories; -- \" OR 1=1 %_ \\",
    "markup": "walrus <b>&amp;</b> ]]> <!-- {{x}} ${y}",
}


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
def test_odd_texts_are_kept_and_found(desk: Desk, text: str) -> None:
    memory = desk.add(text)
    assert desk.search("walrus") == [memory]
    assert desk.search(memory) == [memory]
    assert desk.call("memory_search", query=text).is_error is False


# --- memory_reinforce and memory_deemphasize ----------------------------------------------------------------


def test_reinforcing_increases_salience_with_diminishing_returns(desk: Desk) -> None:
    memory = desk.add("High salience fact")
    seen = [0.5]
    for _ in range(5):
        reply = desk.ask("memory_reinforce", memory_id=memory, amount=0.2)
        assert reply.startswith(f"Memory reinforced: {memory} (new salience: ")
        seen.append(shown_salience(reply))
    gains = [later - earlier for earlier, later in pairwise(seen)]
    assert all(gain > 0 for gain in gains)
    assert gains == sorted(gains, reverse=True)
    assert 0.8 < seen[-1] < 1
    (known,) = desk.rows("SELECT salience FROM memories WHERE id = ?", memory)
    assert known["salience"] == pytest.approx(1 - 0.5 * 0.8**5, abs=0.001)


def test_however_often_it_is_reinforced_salience_stays_below_one(desk: Desk) -> None:
    memory = desk.add("High salience fact")
    for _ in range(5):
        assert shown_salience(desk.ask("memory_reinforce", memory_id=memory, amount=1)) == 0.99


def test_a_reinforcement_is_a_tenth_unless_told(desk: Desk) -> None:
    memory = desk.add("Important fact")
    desk.ask("memory_reinforce", memory_id=memory)
    (known,) = desk.rows("SELECT salience FROM memories WHERE id = ?", memory)
    assert known["salience"] == pytest.approx(0.55, abs=0.001)


def test_deemphasizing_reduces_salience_by_the_amount(desk: Desk) -> None:
    memory = desk.add("Less important")
    reply = desk.ask("memory_deemphasize", memory_id=memory, amount=0.3)
    assert reply == f"Memory de-emphasized: {memory} (new salience: 0.20)"
    assert desk.search("important") == [memory]


def test_deemphasizing_takes_a_fifth_unless_told_also_from_what_was_used_often(desk: Desk) -> None:
    memory = desk.add("Less important")
    before = 0.0
    for _ in range(4):
        before = shown_salience(desk.ask("memory_reinforce", memory_id=memory))
    after = shown_salience(desk.ask("memory_deemphasize", memory_id=memory))
    assert after == pytest.approx(before - 0.2, abs=0.011)


@pytest.mark.parametrize("uses", [0, 5])
def test_salience_never_falls_below_the_floor_and_rises_again(desk: Desk, uses: int) -> None:
    memory = desk.add("Least important")
    for _ in range(uses):
        desk.ask("memory_reinforce", memory_id=memory)
    for _ in range(3):
        reply = desk.ask("memory_deemphasize", memory_id=memory, amount=1)
    assert shown_salience(reply) >= 0.05
    assert shown_salience(reply) == pytest.approx(0.05, abs=0.051)
    assert desk.search("least important") == [memory]
    assert shown_salience(desk.ask("memory_reinforce", memory_id=memory, amount=0.5)) > 0.4


def test_both_are_linked_to_the_session(desk: Desk) -> None:
    memory = desk.add("A fact")
    desk.ask("memory_reinforce", memory_id=memory)
    desk.ask("memory_deemphasize", memory_id=memory)
    links = desk.rows("SELECT session_id, usage_type FROM session_memories WHERE memory_id = ?", memory)
    assert {link["session_id"] for link in links} == {"a-session"}
    assert {link["usage_type"] for link in links} == {"created", "reinforced", "updated"}


# --- memory_delete ------------------------------------------------------------------------------------------


def test_delete_is_soft_by_default_and_preserves_history(desk: Desk) -> None:
    memory = desk.add("To be deleted soon")
    assert desk.search("deleted soon") == [memory]
    reply = desk.ask("memory_delete", memory_id=memory)
    assert reply == f"Memory soft-deleted: {memory} (can be restored)"
    (known,) = desk.rows("SELECT is_deleted, content FROM memories WHERE id = ?", memory)
    assert known == {"is_deleted": 1, "content": "To be deleted soon"}
    for query in ("deleted soon", memory):
        assert desk.ask("memory_search", query=query, include_superseded=True) == NOTHING


def test_what_was_soft_deleted_can_be_restored(desk: Desk) -> None:
    memory = desk.add("To be deleted soon")
    desk.ask("memory_delete", memory_id=memory)
    with store(desk.data) as db, transaction(db):
        life.restore(db, memory, None, int(time.time() * 1000))
    assert desk.search("deleted soon") == [memory]


def test_a_hard_delete_leaves_nothing_behind(desk: Desk) -> None:
    memory, other = desk.add("Permanently gone quokka"), desk.add("The other animal stays")
    desk.ask("memory_supersede", old_memory_id=other, new_memory_id=memory)
    desk.ask("memory_search", query="quokka")
    (known,) = desk.rows("SELECT row FROM memories WHERE id = ?", memory)
    assert desk.rows("SELECT 1 FROM vectors WHERE row = ?", known["row"])
    reply = desk.ask("memory_delete", memory_id=memory, hard=True)
    assert reply == f"Memory permanently deleted: {memory}"
    for table, column, value in (
        ("memories", "id", memory),
        ("vectors", "row", known["row"]),
        ("memories_fts", "memories_fts", "quokka"),
        ("session_memories", "memory_id", memory),
        ("memory_relationships", "source_id", memory),
        ("memory_relationships", "target_id", memory),
    ):
        assert desk.rows(f"SELECT * FROM {table} WHERE {column} = ?", value) == []  # noqa: S608
    assert_sound(desk.data)
    for query in ("quokka", memory):
        assert desk.ask("memory_search", query=query, include_superseded=True) == NOTHING
    assert "there is no memory" in desk.refusal("memory_delete", memory_id=memory, hard=True)


def test_a_turn_that_is_hard_deleted_while_it_goes_on_stays_away(desk: Desk) -> None:
    at = int(time.time() * 1000) - 60_000
    happened(desk.data, desk.project, "count the quolls", answer=None, session="going-on", at=at)
    drain(desk.data, at + 1_000)
    of_session = "SELECT id FROM memories WHERE session_id = 'going-on'"
    (turn,) = desk.rows(f"{of_session} AND kind = 'turn'")
    desk.ask("memory_delete", memory_id=turn["id"], hard=True)
    said = {"session_id": "going-on", "cwd": str(desk.project)}
    put(desk.data, event("Stop", last_assistant_message="nine quolls") | said, at=at + 50_000)
    assert desk.ask("memory_search", query="quolls") == NOTHING
    assert desk.rows(of_session) == []


def test_of_what_was_hard_deleted_the_next_worker_leaves_no_byte(desk: Desk) -> None:
    desk.ask("memory_delete", memory_id=desk.add("The numbat is secret"), hard=True)
    assert erasing.is_unfinished(str(desk.data))
    with store(desk.data) as db:
        assert erasing.finish(str(desk.data), db, int(time.time() * 1000)).is_clean
    assert not erasing.is_unfinished(str(desk.data))
    files = [path for path in desk.data.rglob("*") if path.is_file()]
    assert not [path for path in files if b"numbat" in path.read_bytes().lower()]


def test_what_was_soft_deleted_can_still_be_hard_deleted(desk: Desk) -> None:
    memory = desk.add("Gone in two steps")
    desk.ask("memory_delete", memory_id=memory)
    desk.ask("memory_delete", memory_id=memory, hard=True)
    assert desk.rows("SELECT 1 FROM memories WHERE id = ?", memory) == []


# --- memory_search and superseded memories ------------------------------------------------------------------


@pytest.fixture
def replaced(desk: Desk) -> tuple[str, str]:
    old, new = desk.add("Old API endpoint is /v1"), desk.add("New API endpoint is /v2")
    assert desk.ask("memory_supersede", old_memory_id=old, new_memory_id=new) == (
        f"Memory {old} marked as superseded by {new}"
    )
    return old, new


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_search_excludes_superseded_memories_by_default(
    desk: Desk, replaced: tuple[str, str], mode: str
) -> None:
    assert desk.search("API endpoint", mode=mode) == [replaced[1]]


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_search_includes_superseded_memories_when_asked_to_and_says_by_what(
    desk: Desk, replaced: tuple[str, str], mode: str
) -> None:
    old, new = replaced
    reply = desk.ask("memory_search", query="API endpoint", mode=mode, include_superseded=True)
    assert set(ids(reply)) == {old, new}
    assert f"ID: {old}\n⚠️ SUPERSEDED by: {new}\n" in reply
    assert reply.count("SUPERSEDED") == 1


# --- memory_supersede ---------------------------------------------------------------------------------------


def test_superseding_creates_the_relationship(desk: Desk, replaced: tuple[str, str]) -> None:
    old, new = replaced
    (relation,) = desk.rows("SELECT * FROM memory_relationships WHERE target_id = ?", old)
    assert relation["source_id"] == new
    assert relation["relationship_type"] == "SUPERSEDES"
    assert relation["said_by"] == "model"
    links = desk.rows("SELECT memory_id FROM session_memories WHERE usage_type = 'updated'")
    assert {old, new} <= {link["memory_id"] for link in links}


def test_superseding_sets_valid_until_on_the_old_memory(desk: Desk, replaced: tuple[str, str]) -> None:
    old, new = replaced
    (known,) = desk.rows("SELECT valid_until FROM memories WHERE id = ?", old)
    assert abs(known["valid_until"] - time.time() * 1000) < 5 * MINUTE
    assert desk.rows("SELECT valid_until FROM memories WHERE id = ?", new) == [{"valid_until": None}]


def test_superseding_again_changes_nothing(desk: Desk, replaced: tuple[str, str]) -> None:
    old, new = replaced
    before = desk.rows("SELECT valid_until FROM memories WHERE id = ?", old)
    desk.ask("memory_supersede", old_memory_id=old, new_memory_id=new)
    assert len(desk.rows("SELECT * FROM memory_relationships WHERE target_id = ?", old)) == 1
    assert desk.rows("SELECT valid_until FROM memories WHERE id = ?", old) == before


def test_of_a_chain_of_three_only_the_last_is_current(desk: Desk) -> None:
    first, second, third = (desk.add(f"The API endpoint is /v{number}") for number in (1, 2, 3))
    desk.ask("memory_supersede", old_memory_id=first, new_memory_id=second)
    desk.ask("memory_supersede", old_memory_id=second, new_memory_id=third)
    assert desk.search("API endpoint") == [third]
    reply = desk.ask("memory_search", query="API endpoint", include_superseded=True)
    assert set(ids(reply)) == {first, second, third}
    assert reply.count(f"SUPERSEDED by: {third}\n") == 2


def test_a_circle_is_refused_and_changes_nothing(desk: Desk) -> None:
    first, second, third = (desk.add(f"The API endpoint is /v{number}") for number in (1, 2, 3))
    desk.ask("memory_supersede", old_memory_id=first, new_memory_id=second)
    desk.ask("memory_supersede", old_memory_id=second, new_memory_id=third)
    for old in (second, third):
        refusal = desk.refusal("memory_supersede", old_memory_id=old, new_memory_id=first)
        assert f"{old} supersedes {first} already" in refusal
    assert desk.search("API endpoint") == [third]


def test_nothing_supersedes_itself_or_what_is_not_there(desk: Desk) -> None:
    memory = desk.add("The API endpoint is /v1")
    itself = desk.refusal("memory_supersede", old_memory_id=memory, new_memory_id=memory)
    assert "cannot supersede itself" in itself
    for old, new in ((memory, "mem_nothere"), ("mem_nothere", memory)):
        refusal = desk.refusal("memory_supersede", old_memory_id=old, new_memory_id=new)
        assert "there is no memory 'mem_nothere'" in refusal
    assert desk.search("API endpoint") == [memory]


def test_what_was_deleted_supersedes_nothing(desk: Desk) -> None:
    """Or both would be out of sight, and nobody would know the fact any more."""
    memory, deleted = desk.add("The API endpoint is /v1"), desk.add("The API endpoint is /v2")
    desk.ask("memory_delete", memory_id=deleted)
    desk.refusal("memory_supersede", old_memory_id=memory, new_memory_id=deleted)
    assert desk.search("API endpoint") == [memory]
