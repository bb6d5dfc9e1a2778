"""Projects that become one, and sessions that go to another: all is there, and found where it is now."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from backstory import paths
from backstory.docmem import tree
from backstory.recall.answer import answer as search
from backstory.recall.documents.ingest import ingest
from backstory.recall.index import Index
from backstory.recall.search import search_documents
from backstory.store import life, memories, moving, nodes, projects, vectors
from backstory.store.file.connection import connect, transaction
from tests.helpers.chaos import drain, event, prompt, put
from tests.helpers.search import NOW, add, found
from tests.helpers.trees import append, assert_trees_sound, project_at


class Two:
    """Two projects with some of everything in each."""

    def __init__(self, data: Path, folder: Path) -> None:
        self.data = data
        self.folders = [str(folder / name) for name in ("api", "web")]
        for name in self.folders:
            Path(name).mkdir()
            common = {"session_id": f"s-{Path(name).name}", "cwd": name}
            put(data, prompt(f"Rotate the {Path(name).name} certificates.", **common), at=NOW)
            put(data, event("Stop", last_assistant_message="Rotated, with certbot.", **common), at=NOW + 1)
            drain(data, now=NOW + 2)
        self.db = connect(str(data / "backstory.db"))
        for name in self.folders:
            own = Path(name).name
            ours = [add(self.db, name, f"the {own} uses postgres number {number}") for number in range(3)]
            with transaction(self.db):
                life.supersede(self.db, ours[0], ours[1], None, NOW, "user")
                life.archive(self.db, ours[2:], NOW)
            add(self.db, name, "a global thing" + own, session=f"s-{own}", tier="global")
            project = project_at(self.db, name)
            tree.create(self.db, project, now=NOW, root_id="plan")
            append(self.db, project, append(self.db, project, "plan", f"roof of {own}").id, f"tiles of {own}")
            ingest(self.db, name, now=NOW, content=f"# Handbook\n\nHow {own} is deployed.", title=own)

    @property
    def ids(self) -> list[str]:
        known = [projects.id_at(self.db, paths.place(folder)) for folder in self.folders]
        return [one for one in known if one]

    def sound(self) -> None:
        for check in (
            "INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)",
            "INSERT INTO document_chunks_fts (document_chunks_fts, rank) VALUES ('integrity-check', 1)",
        ):
            self.db.execute(check)
        assert_trees_sound(self.db)
        for misplaced in (
            "SELECT row FROM memories JOIN projects p ON p.id = project_id WHERE row >> 32 <> p.number",
            "SELECT row FROM turn_pieces WHERE row >> 32 <> turn >> 32",
            "SELECT row FROM docmem_nodes WHERE row >> 32 <> project",
        ):
            assert self.db.execute(misplaced).fetchall() == []


@pytest.fixture
def two(data: Path, tmp_path: Path) -> Iterator[Two]:
    made = Two(data, tmp_path)
    yield made
    made.db.close()


def everything(db: sqlite3.Connection) -> dict[str, object]:
    """What there is, whatever its rows and projects are."""
    asked = {
        "memories": "SELECT id, kind, content, salience, valid_until FROM memories ORDER BY id",
        "turns": "SELECT m.id, t.state, t.record FROM turns t JOIN memories m ON m.row = t.row ORDER BY m.id",
        "pieces": "SELECT m.id, p.part, p.text FROM turn_pieces p JOIN memories m ON m.row = p.turn"
        " ORDER BY m.id, p.row",
        "archived": "SELECT id FROM archived_memories ORDER BY id",
        "relations": "SELECT source_id, target_id FROM memory_relationships ORDER BY 1, 2",
        "links": "SELECT session_id, memory_id, usage_type FROM session_memories ORDER BY 1, 2, 3",
        "sessions": "SELECT id, user_prompt FROM sessions ORDER BY id",
        "chunks": "SELECT document_id, content FROM document_chunks ORDER BY 1, row",
        "nodes": "SELECT text FROM docmem_nodes ORDER BY 1",
    }
    return {name: [tuple(row) for row in db.execute(sql)] for name, sql in asked.items()}


def test_after_a_merge_everything_is_there_and_found_in_both_places(two: Two) -> None:
    before = everything(two.db)
    source, target = two.ids
    with transaction(two.db):
        moving.merge(two.db, source, target)
    assert everything(two.db) == before
    two.sound()
    assert two.ids == [target, target]
    for folder in two.folders:
        assert len(found(two.db, folder, "postgres")) == 2
        assert len(found(two.db, folder, "certificates")) == 2
        answer = search_documents(Index(None), two.db, folder, "deployed")
        assert len(answer.hits) == 2
    with transaction(two.db):
        (archived,) = (
            row["id"]
            for row in two.db.execute(
                "SELECT id FROM archived_memories WHERE memory ->> 'content' LIKE '%api%'"
            )
        )
        life.restore(two.db, archived, None, NOW)
    assert len(found(two.db, two.folders[1], "postgres")) == 3


def test_a_tree_whose_name_is_taken_gets_a_number(two: Two) -> None:
    source, target = two.ids
    with transaction(two.db):
        moving.merge(two.db, source, target)
    number = projects.by_id(two.db, target).number
    assert [root.id for root in nodes.roots(two.db, number)] == ["plan", "plan-2"]
    texts = [node.text for node in nodes.subtree(two.db, number, "plan-2")]
    assert texts[1:] == ["roof of api", "tiles of api"]


def test_vectors_go_along_and_an_index_that_is_running_sees_it(two: Two) -> None:
    index = Index(None)
    source, target = (projects.by_id(two.db, one) for one in two.ids)
    with transaction(two.db):
        model = vectors.ensure_model(two.db, "m", 4)
        rows = [row[0] for row in two.db.execute("SELECT row FROM memory_lines")]
        vectors.put(two.db, model, "memory_lines", [(row, bytes([row & 63, 1, 2, 3])) for row in rows])
    with index.lock:
        before = index.corpus(two.db, memories, source).size
    kept = sorted(bytes(row[0]) for row in two.db.execute("SELECT vector FROM vectors"))
    with transaction(two.db):
        moving.merge(two.db, source.id, target.id)
    assert sorted(bytes(row[0]) for row in two.db.execute("SELECT vector FROM vectors")) == kept
    lines = {row[0] for row in two.db.execute("SELECT row FROM memory_lines")}
    assert {row[0] for row in two.db.execute("SELECT row FROM vectors")} == lines
    with index.lock:
        corpus = index.corpus(two.db, memories, target)
        assert corpus.size - int(np.count_nonzero(corpus.column("state") & 1)) == len(lines)
    assert before < len(lines)


def test_sessions_go_to_another_project_with_what_was_made_in_them(two: Two) -> None:
    _, target = two.ids
    before = everything(two.db)
    with transaction(two.db):
        moving.move_sessions(two.db, ["s-api"], target)
    assert everything(two.db) == before
    two.sound()
    assert len(found(two.db, two.folders[1], "certificates")) == 2
    assert found(two.db, two.folders[0], "certificates") == []
    assert len(found(two.db, two.folders[0], "postgres")) == 1, "notes of no session stay"


def test_a_merge_that_does_not_end_leaves_all_as_it_was(two: Two) -> None:
    before, ids = everything(two.db), two.ids
    with pytest.raises(RuntimeError), transaction(two.db):
        moving.merge(two.db, *ids)
        raise RuntimeError
    assert (everything(two.db), two.ids) == (before, ids)
    two.sound()
    assert search(Index(None), two.db, two.folders[0], "certificates", now=NOW).hits
