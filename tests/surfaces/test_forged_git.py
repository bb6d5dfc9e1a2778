"""A folder from a stranger whose `.git` names another repository, as the tools and the hook see it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backstory.intake.note import keep
from backstory.surfaces.opened import open_drained
from tests.helpers import docmem_desk, forged_git, memory_desk
from tests.helpers.brief import NOW
from tests.helpers.chaos import event, run_hook
from tests.helpers.forged_git import FORGERIES, git
from tests.helpers.mcp_client import Server

pytestmark = pytest.mark.slow

SAID = "The walrus is bought for nine millions in March."


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    made = forged_git.victim(tmp_path / "work" / "victim")
    (made / "plans.md").write_text(f"# Plans\n\n{SAID}\n")
    return made


def forged(victim: Path, tmp_path: Path, forgery: str) -> Path:
    evil = tmp_path / forgery / "evil"
    evil.mkdir(parents=True)
    FORGERIES[forgery](evil, victim)
    return evil


def test_no_tool_tells_a_forged_folder_what_another_project_remembers(
    memory_server: tuple[Server, Path, Path], victim: Path, tmp_path: Path
) -> None:
    desk = memory_desk.Desk(*memory_server, victim)
    memory = desk.note(SAID)
    desk.ask("docs_ingest", path="plans.md")
    assert SAID in desk.ask("memory_search", query="walrus")
    told = []
    for forgery in FORGERIES:
        desk.sit_at(forged(victim, tmp_path, forgery))
        replies = [
            desk.call("memory_search", query="walrus"),
            desk.call("memory_search", query=memory),
            desk.call("memory_timeline", anchor_id=memory),
            desk.call("docs_search", query="walrus"),
        ]
        told += [(forgery, number) for number, reply in enumerate(replies) if "nine millions" in str(reply)]
    assert told == []


def test_no_document_is_read_through_a_forged_git(
    memory_server: tuple[Server, Path, Path],
    docmem_server: tuple[Server, Path, Path],
    victim: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0:root")
    memories = memory_desk.Desk(*memory_server, victim)
    trees = docmem_desk.Desk(*docmem_server, victim)
    read: list[tuple[str, str]] = []
    for forgery in FORGERIES:
        evil = forged(victim, tmp_path, forgery)
        memories.sit_at(evil)
        trees.sit_at(evil)
        for path in (str(victim / "plans.md"), "/etc/passwd", str(tmp_path / "passwd")):
            replies = (
                memories.call("docs_ingest", path=path),
                trees.call("docmem_import", path=path, format="txt", root_id=f"x{len(read)}"),
            )
            read += [(forgery, path) for reply in replies if "lies outside of" not in str(reply)]
    assert read == []


def test_no_export_is_written_through_a_forged_git(
    docmem_server: tuple[Server, Path, Path], victim: Path, tmp_path: Path
) -> None:
    desk = docmem_desk.Desk(*docmem_server, victim)
    beyond = tmp_path / "beyond"
    beyond.mkdir()
    for forgery in FORGERIES:
        desk.sit_at(forged(victim, tmp_path, forgery))
        desk.call("docmem_create", root_id="notes")
        for folder in (victim, victim / ".git", beyond):
            desk.call("docmem_export", root_id="notes", format="md", path=str(folder / f"{forgery}.md"))
    written = [path.name for folder in (victim, beyond) for path in folder.rglob("*.md")]
    assert written == ["plans.md"]


def test_the_brief_in_a_forged_folder_tells_nothing_of_another_project(
    data: Path, victim: Path, tmp_path: Path
) -> None:
    with open_drained(str(data), now=NOW) as db:
        keep(db, str(victim), SAID, now=NOW)
    started = event("SessionStart", source="startup", cwd=str(victim))
    assert SAID.encode() in run_hook(started, "start").stdout
    for forgery in list(FORGERIES) if os.environ.get("BACKSTORY_EVERY_FORGERY") else ("file", "commondir"):
        started["cwd"] = str(forged(victim, tmp_path, forgery))
        started["session_id"] = f"session-{forgery}"
        ran = run_hook(started, "start")
        assert ran.code == 0
        assert b"walrus" not in ran.stdout


def test_a_session_in_a_worktree_reads_and_writes_there_and_is_told_how_to_get_at_the_rest(
    memory_server: tuple[Server, Path, Path], docmem_server: tuple[Server, Path, Path], victim: Path
) -> None:
    linked = victim.with_name("linked")
    (linked / "guide.md").write_text("# Guide\n\nFeed the walrus.\n")
    memories = memory_desk.Desk(*memory_server, victim)
    memories.note(SAID)
    memories.sit_at(linked)
    assert SAID in memories.ask("memory_search", query="walrus")  # the memory is shared, the files are not
    assert "Document ingested" in memories.ask("docs_ingest", path="guide.md")
    refusal = memories.refusal("docs_ingest", path=str(victim / "plans.md"))
    assert (
        f"lies outside of {linked}; copy it there, or add its folder to the setting docs.folders" in refusal
    )
    trees = docmem_desk.Desk(*docmem_server, linked)
    trees.create()
    refusal = trees.refusal("docmem_export", root_id="notes", format="md", path=str(victim / "out.md"))
    assert f"lies outside of {linked}; name a file inside" in refusal
    trees.ask("docmem_export", root_id="notes", format="md", path="out.md")
    assert git(linked, "status", "--short", "out.md") == "?? out.md"
