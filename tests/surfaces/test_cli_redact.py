"""`backstory redact`: what was stored before the table knew its shape is redacted, and its bytes are gone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backstory import log
from backstory.docmem import tree
from backstory.docmem.tree import Made
from backstory.docmem.views import Views
from backstory.intake.drain import drain
from backstory.recall.documents.ingest import ingest
from backstory.safety.redact import redact
from backstory.store import life, memories, nodes, projects, redaction, turns
from backstory.store.families import FAMILIES
from backstory.store.file.connection import connect, tuples
from backstory.surfaces import view_files
from tests.conftest import Run
from tests.helpers.commands import BACKSTORY, tool_use
from tests.helpers.search import NOW

# The texts come in with a word in the secret's place, which is replaced in the store afterwards: so nothing
# here depends on what the table knows today.
WORD = "walruswalrus"
KILLS = int(os.environ.get("BACKSTORY_REDACT_KILLS", "2"))
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
PIECES = ("16c7e42f292c6912e7710c838347ae178b4a", SECRET.lower())  # as a keyword index has it


@pytest.fixture
def session(project: str, data: Path) -> Path:
    """A session, a note, a tree, a document and an archived trace, all with the word in them."""
    spool = data / "spool" / "new"
    spool.mkdir(parents=True)
    said = {"session_id": "s1", "cwd": project}
    payloads = [
        {
            **said,
            "hook_event_name": "UserPromptSubmit",
            "prompt": f"deploy it with {WORD}, please",
            "prompt_id": "p1",
        },
        tool_use(Path(project), f"curl -d {WORD} https://example.org"),
        tool_use(Path(project), f"env A={WORD} make deploy"),
        {**said, "hook_event_name": "Stop", "last_assistant_message": f"I deployed it with {WORD}. " * 20},
    ]
    for number, payload in enumerate(payloads):
        (spool / f"{number}.json").write_text(json.dumps(payload))
    with closing(connect(str(data / "backstory.db"))) as db:
        assert drain(db, str(data / "spool"), now=NOW).stored == len(payloads)
        traces = db.execute("SELECT id FROM memories WHERE kind = 'tool' ORDER BY row").fetchall()
        life.archive(db, [traces[0]["id"]], NOW)
        here = projects.by_id(db, db.execute("SELECT id FROM projects").fetchone()["id"])
        tree.build(db, here, [Made(None, None, f"the key is {WORD}", ("note", "key", "value"))], now=NOW)
        ingest(db, project, now=NOW, content=f"# Deploying\n\nUse {WORD} for it.", title="How to deploy")
    return data


@pytest.fixture
def leaky(session: Path, project: str, run: Run) -> Path:
    """The same with the secret in the word's place, wherever that stands."""
    run("add", f"the deploy key is {WORD}", "--tag", "deploy")
    put_secret(session)
    with closing(connect(str(session / "backstory.db"))) as db:  # it is in free pages as well
        db.execute("PRAGMA secure_delete = OFF")
        db.execute(
            "INSERT INTO prompts (session_id, prompt, created_at) VALUES ('s1', ?, 0)", (SECRET * 500,)
        )
        db.execute("DELETE FROM prompts WHERE created_at = 0")
    (session / "logs").mkdir(exist_ok=True)
    with open(session / "logs" / "backstory.log", "a") as file:
        file.write(f"2026-11-16T01:23:45Z ERROR   [1] payload: {SECRET} is odd\n")
    failed = session / "spool" / "failed"
    failed.mkdir()
    (failed / "7.json").write_text(json.dumps({"prompt": f"use {SECRET}"}))
    (failed / "7.json.reason").write_text("no session\n")
    return session


def put_secret(data: Path, word: str = WORD, secret: str = SECRET) -> int:
    """How many columns have it."""
    found = 0
    with closing(connect(str(data / "backstory.db"))) as db:
        columns = tuples(db).execute(
            "SELECT t.name, x.name FROM pragma_table_list t, pragma_table_xinfo(t.name) x"
            " WHERE t.type = 'table' AND t.schema = 'main' AND t.name NOT LIKE 'sqlite_%' AND x.type = 'TEXT'"
            " AND x.hidden = 0"
        )
        for table, column in columns.fetchall():
            done = db.execute(
                f"UPDATE {table} SET {column} = replace({column}, ?1, ?2) WHERE instr({column}, ?1)",  # noqa: S608
                (word, secret),
            )
            found += done.rowcount > 0
        for index in ("memories", "document_chunks", "docmem_nodes"):
            db.execute(f"INSERT INTO {index}_fts ({index}_fts) VALUES ('rebuild')")  # noqa: S608
    return found


def holding(data: Path) -> list[str]:
    """The files of the data folder in which the secret, or what a keyword index has of it, is found."""
    needles = [SECRET.encode(), *(piece.encode() for piece in PIECES)]
    files = [path for path in sorted(data.rglob("*")) if path.is_file()]
    return [
        path.relative_to(data).as_posix() for path in files if any(n in path.read_bytes() for n in needles)
    ]


def indexed(data: Path) -> list[str]:
    """Words of the keyword indexes that are of the secret."""
    with closing(connect(str(data / "backstory.db"))) as db:
        return [
            row["term"]
            for table in ("memories", "document_chunks", "docmem_nodes")
            for row in db.execute(f"SELECT term FROM {table}_terms WHERE term LIKE '%16c7e42f%'")  # noqa: S608
        ]


def test_alone_it_only_shows_what_it_would_change_and_never_the_secret(leaky: Path, run: Run) -> None:
    before = (leaky / "backstory.db").read_bytes()
    shown = run("redact")
    assert shown.code == 0
    assert SECRET not in shown.out + shown.err
    for what in ("turns", "prompts", "sessions", "docmem nodes", "documents", "archived memories"):
        assert f"To be redacted: 1 in {what} (" in shown.out, what
    assert "the deploy key is [redacted:github-token]" in shown.out
    assert "spool/failed/7.json" in shown.out and "logs/backstory.log" in shown.out
    assert "Nothing was changed" in shown.out
    assert (leaky / "backstory.db").read_bytes() == before
    found = run("redact", "--json").json
    assert found["redacted"] is False
    assert {kind for one in found["found"] for kind in one["kinds"]} == {"github-token"}
    assert all(one["id"] and "[redacted:github-token]" in one["excerpt"] for one in found["found"])


def test_afterwards_no_byte_of_it_is_in_the_data_folder(leaky: Path, run: Run) -> None:
    assert holding(leaky) == ["backstory.db", "logs/backstory.log", "spool/failed/7.json"]
    assert indexed(leaky)
    done = run("redact", "--yes")
    assert done.code == 0
    assert holding(leaky) == []
    assert indexed(leaky) == []
    assert json.loads((leaky / "spool/failed/7.json").read_text()) == {
        "prompt": "use [redacted:github-token]"
    }
    (line,) = [line for line in (leaky / "logs/backstory.log").read_text().splitlines() if "is odd" in line]
    assert "payload: [redacted:github-token] is odd" in line
    again = run("redact")
    assert again.out == "Nothing that is stored needs to be redacted.\n"


def test_what_is_derived_from_a_text_follows_it(leaky: Path, run: Run) -> None:
    assert run("redact", "--yes").code == 0
    marker = "[redacted:github-token]"
    with closing(connect(str(leaky / "backstory.db"))) as db:
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        for index in ("memories", "document_chunks", "docmem_nodes"):
            db.execute(f"INSERT INTO {index}_fts ({index}_fts, rank) VALUES ('integrity-check', 1)")  # noqa: S608
        node = nodes.roots(db, 1)[0]
        context = node.context_type, node.context_name, node.context_value
        assert node.text == f"the key is {marker}"
        assert node.hash == nodes.digest(node.parent_id, context, node.text, node.order_value)
        assert node.token_count == -(-len(node.text) // 4)
        for row in db.execute("SELECT * FROM observation_queue"):
            json.loads(row["tool_input"]), json.loads(row["tool_output"])
            assert row["size"] == len(row["tool_input"]) + len(row["tool_output"])
        (turn,) = turns.of_session(db, "s1")
        pieces = [row["text"] for row in db.execute("SELECT text FROM turn_pieces ORDER BY row")]
        assert turn.asked == f"deploy it with {marker}, please" == pieces[0]
        archived = db.execute("SELECT id FROM archived_memories").fetchone()["id"]
        life.restore(db, archived, None, NOW)
        assert marker in (getattr(memories.get(db, archived, NOW), "content", ""))
        seen = db.execute("SELECT count(*) FROM line_changes").fetchone()[0]
        assert seen >= 3
    # The same note again, redacted on its way in, is known by its hash.
    assert "Memory reinforced" in run("add", f"the deploy key is {SECRET}").out


def test_a_column_of_a_later_migration_is_redacted_without_being_named(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE later (word TEXT, said TEXT NOT NULL CHECK (json_valid(said))) STRICT")
    db.execute("INSERT INTO later VALUES (?, ?)", (SECRET, json.dumps({"said": [SECRET, 7]})))
    found = redaction.find(db, redact)
    assert [one.table for one in found] == ["later"]
    redaction.rewrite(db, found, redact)
    (row,) = tuples(db).execute("SELECT * FROM later").fetchall()
    assert (row[0], json.loads(row[1])) == (
        "[redacted:github-token]",
        {"said": ["[redacted:github-token]", 7]},
    )


def test_only_ids_and_names_are_kept_as_they_are(db: sqlite3.Connection) -> None:
    there = set(
        tuples(db).execute(
            "SELECT t.name || '.' || x.name FROM pragma_table_list t, pragma_table_xinfo(t.name) x"
            " WHERE t.type = 'table' AND x.type = 'TEXT'"
        )
    )
    named = {f"{family.table}.{name}" for family in FAMILIES for name in family.names}
    assert {(name,) for name in named} <= there
    tables = redaction._tables(db).items()
    assert {f"{table}.{name}" for table, of in tables for name in of.names} - named == set(
        """archived_memories.id archived_memories.project_id archived_memories.session_id
        archived_memories.turn checkouts.path checkouts.project_id claude_files.path claude_sections.name
        claude_sections.path claude_texts.digest claude_texts.name claude_texts.place docmem_nodes.id
        docmem_nodes.parent_id docmem_nodes.root_id docmem_servers.id docmem_servers.session_id
        docmem_views.node_id docmem_views.server_id document_chunks.document_id documents.id
        documents.project_id edited_files.path erased_spans.session_id events.session_id
        forgotten_sessions.session_id memories.id memories.project_id memories.session_id memories.turn
        memory_relationships.relationship_type memory_relationships.source_id memory_relationships.target_id
        models.id observation_queue.memory_id observation_queue.session_id observation_queue.turn
        pauses.project_id projects.id projects.identity prompts.session_id prompts.turn
        session_memories.memory_id session_memories.session_id session_memories.usage_type
        session_summaries.memory_id session_summaries.project_id session_summaries.session_id sessions.id
        sessions.project_id spend.session_id tellings.project_id tellings.session_id told_memories.memory_id
        transcripts.path transcripts.session_id turns.session_id""".split()
    )


@pytest.mark.slow
def test_backups_that_hold_it_are_named_and_left_as_they_are(leaky: Path, project: str, run: Run) -> None:
    held = run("backup", "now", "--json").json["path"]
    (leaky / "set-aside").mkdir()
    aside = leaky / "set-aside" / "backstory-20260101T000000Z.db"
    shutil.copyfile(held, aside)
    broken = leaky / "backups" / "backstory-20260102T000000Z.db"
    broken.write_bytes(Path(held).read_bytes()[:8192])
    shelf = leaky / "backups" / "claude-md" / "api-CLAUDE.md-1"
    shelf.mkdir(parents=True)
    (shelf / "000001-x.md").write_text(f"key: {SECRET}\n")
    mine = Path(project) / "CLAUDE.md"
    mine.write_text(f"Deploy with {SECRET}.\n")
    with closing(connect(str(leaky / "backstory.db"))) as db:
        db.execute(
            "INSERT INTO claude_files (path, project, place, template) VALUES (?, 1, '', 'root')",
            (str(mine),),
        )
    done = run("redact", "--yes", "--json")
    left = {one["path"]: one for one in done.json["left"]}
    assert set(left) == {held, str(aside), str(broken), str(shelf / "000001-x.md"), str(mine)}
    assert "rows with a secret" in left[held]["why"]
    assert "backup now" in left[held]["then"]
    assert "cannot be read" in left[str(broken)]["why"]
    assert SECRET.encode() in Path(held).read_bytes()
    clean = run("backup", "now", "--json").json["path"]
    for path in left:
        os.unlink(path)
    assert run("redact").out == "Nothing that is stored needs to be redacted.\n"
    assert os.path.exists(clean)


def test_what_is_no_secret_can_be_left_as_it_is(leaky: Path, run: Run) -> None:
    found = run("redact", "--json").json["found"]
    note = next(one["id"] for one in found if "the deploy key" in one["excerpt"])
    run("redact", "--yes", "--except", note)
    assert SECRET in run("show", note).out
    (left,) = run("redact", "--json").json["found"]
    assert left["id"] == note


def test_an_id_that_spares_nothing_is_refused_and_nothing_is_changed(leaky: Path, run: Run) -> None:
    before = run("redact", "--json").json["found"]
    refused = run("redact", "--yes", "--except", "mem_nothing")
    assert refused.code == 2
    assert "nothing to redact has the id 'mem_nothing'; nothing was changed" in refused.err
    assert run("redact", "--json").json["found"] == before
    run("redact", "--yes", "--except", before[0]["id"][:9])
    assert before[0]["id"] in {row["id"] for row in run("redact", "--json").json["found"]}


def test_a_folder_whose_name_is_a_secret_is_named(tmp_path: Path, data: Path, run: Run) -> None:
    folder = tmp_path / SECRET
    folder.mkdir()
    assert run("add", "a note", "--project", str(folder)).code == 0
    done = run("redact", "--yes", "--json").json
    assert done["found"] == []
    assert SECRET not in json.dumps(done)
    assert "[redacted:github-token]" in done["left"][0]["path"]


def test_a_key_that_was_cut_into_chunks_or_pieces_is_redacted_whole(
    session: Path, project: str, run: Run
) -> None:
    line = "Qm9va3NoZWxmd2FscnVzc2VhbGFuZHdoYWxlaGVycmluZ2NvZA"
    body = "walrusopens\n" + f"{line}\n" * 160 + "walruscloses"
    with closing(connect(str(session / "backstory.db"))) as db:
        ingest(db, project, now=NOW, content=f"# Keys\n\nThe key:\n\n{body}\n\nThat was it.", title="Keys")
        (turn,) = turns.of_session(db, "s1")
        turn.answer = f"Here it is:\n\n{body}\n\nThat was it."
        turns.save(db, turn, db.execute("SELECT id FROM projects").fetchone()["id"])
        chunks = db.execute(
            "SELECT count(*) FROM document_chunks WHERE instr(content, ?)", (line,)
        ).fetchone()[0]
        assert chunks > 2
    put_secret(session, "walrusopens", "-----BEGIN OPENSSH PRIVATE KEY-----")
    put_secret(session, "walruscloses", "-----END OPENSSH PRIVATE KEY-----")
    assert run("redact", "--yes").code == 0
    with closing(connect(str(session / "backstory.db"))) as db:
        for table, column in (("document_chunks", "content"), ("turn_pieces", "text"), ("turns", "record")):
            held = db.execute(f"SELECT count(*) FROM {table} WHERE instr({column}, ?)", (line,)).fetchone()[0]  # noqa: S608
            assert held == 0, table
        whole = "\n".join(
            row["content"] for row in db.execute("SELECT content FROM document_chunks ORDER BY row")
        )
        assert "The key:\n\n[redacted:private-key]" in whole
        assert "That was it." in whole
    assert line.encode() not in (session / "backstory.db").read_bytes()
    assert run("redact").out.startswith("Nothing that is stored")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"env": {"DB_PASSWORD": "hunter2hunter2"}}, {"env": {"DB_PASSWORD": "[redacted:password]"}}),
        ({"password": 81726354, "port": 8080}, {"password": "[redacted:password]", "port": 8080}),
        ([["use it", "typed"]], [["use it", "typed"]]),
        (
            {"a": [f'x "{SECRET}" \\ y', None, 1.5, True]},
            {"a": ['x "[redacted:github-token]" \\ y', None, 1.5, True]},
        ),
    ],
)
def test_json_stays_json_of_the_same_shape(before: object, after: object) -> None:
    text = json.dumps(before)
    done = redaction.redacted(text, redact)
    assert json.loads(done) == after
    assert redaction.redacted(done, redact) == done
    assert before != after or done == text


def test_json_stays_json_where_a_secret_goes_from_one_string_into_the_next() -> None:
    def greedy(text: str) -> str:
        return text.replace('begin","end', "[redacted:key]")

    text = json.dumps({"a": ["begin", "end"], "b": ["\ud83d end", 7], "end": None}) + "\n"
    done = redaction.redacted(text, greedy)
    marker = "[redacted:key]"
    assert json.loads(done) == {"a": [marker, marker], "b": ["\ud83d end", 7], "end": None}
    assert done.endswith("}\n") and done.isascii()


def test_events_whose_ids_are_the_same_without_their_secrets_are_redacted(db: sqlite3.Connection) -> None:
    for key in (SECRET, SECRET[:-1] + "b"):
        db.execute("INSERT INTO events VALUES (?, 'Stop', 's1', 0)", (f"s1:{key}:Stop",))
    redaction.rewrite(db, redaction.find(db, redact), redact)
    assert tuples(db).execute("SELECT key FROM events").fetchall() == [("s1:[redacted:github-token]:Stop",)]


def test_parts_of_a_text_keep_what_is_theirs() -> None:
    marker = "[redacted:github-token]"
    parts = ["one", f"{marker} two", "", marker, f"three {marker}", "four"]
    assert redaction.redacted_parts(parts, redact) == parts
    leaky = [*parts, f"{SECRET} five", SECRET]
    assert redaction.redacted_parts(leaky, redact) == [*parts, f"{marker} five", marker]
    assert redaction.redacted_parts([], redact) == []


@pytest.fixture
def many(session: Path) -> Iterator[Path]:
    with closing(connect(str(session / "backstory.db"))) as db:
        project = db.execute("SELECT id FROM projects").fetchone()["id"]
        db.execute("BEGIN")
        for number in range(400):
            memories.add(
                db,
                project_id=project,
                session_id="s1",
                kind="note",
                sector="semantic",
                tier="project",
                content=f"note {number} says {SECRET} and more",
                importance=0.5,
                now=NOW,
            )
        db.execute("COMMIT")
    yield session


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_a_sound_store_and_the_next_run_finishes(many: Path, run: Run) -> None:
    untouched = many.parent / "untouched"
    shutil.copytree(many, untouched)
    for number in range(KILLS):
        shutil.rmtree(many)
        shutil.copytree(untouched, many)
        started = subprocess.Popen(
            [BACKSTORY, "redact", "--yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        deadline = time.monotonic() + 20
        while not (many / "erasing").exists() and time.monotonic() < deadline and started.poll() is None:
            time.sleep(0.002)
        time.sleep(number * 0.5 / KILLS)
        started.send_signal(signal.SIGKILL)
        started.communicate()
        with closing(sqlite3.connect(many / "backstory.db")) as db:
            assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        again = run("redact", "--yes")
        assert again.code == 0, again.err
        assert holding(many) == []
        with closing(connect(str(many / "backstory.db"))) as db:
            assert (
                db.execute("SELECT count(*) FROM memories WHERE content LIKE 'note %'").fetchone()[0] == 400
            )


def test_after_a_kill_the_next_look_says_that_old_bytes_are_left(session: Path, run: Run) -> None:
    for command in (["redact", "--yes"], ["erase"]):
        (session / "erasing").write_text("")
        looked = run("redact")
        assert looked.code == 1
        assert "an earlier redaction or erasing was not finished" in looked.err
        assert "`backstory erase`" in looked.err
        assert run(*command).code == 0
        assert run("redact").code == 0


def test_a_process_that_searched_before_does_not_find_it_afterwards(
    leaky: Path, project: str, run: Run
) -> None:
    from backstory.recall.answer import answer as search
    from backstory.recall.index import Index

    index = Index.configured()
    with closing(connect(str(leaky / "backstory.db"))) as db:
        assert search(index, db, project, "deploy key", now=NOW, mode="keyword").hits
        assert run("redact", "--yes").code == 0
        hits = search(index, db, project, "deploy key", now=NOW, mode="keyword").hits
        assert hits
        assert all(SECRET not in hit.memory.content for hit in hits)
        assert not search(index, db, project, SECRET, now=NOW, mode="keyword").hits


def test_while_a_process_reads_an_old_state_it_is_said_that_old_bytes_are_left(
    leaky: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backstory.store.file.connection.BUSY_SECONDS", 0.1)
    with closing(connect(str(leaky / "backstory.db"))) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memories").fetchone()
        done = run("redact", "--yes")
        assert done.code == 1
        assert "another process was reading the store" in done.err
        reader.execute("COMMIT")
    assert run("redact", "--yes").code == 0
    assert holding(leaky) == []


def test_the_other_lines_of_the_log_stay_and_later_ones_are_added(leaky: Path, run: Run) -> None:
    log_file = leaky / "logs" / "backstory.log"
    log_file.write_text(
        "one\npassword: hunter2x\nnp password = 'hunter2x' and more that is said after it\ntwo\n"
    )
    assert run("redact", "--yes").code == 0
    lines = log_file.read_text().splitlines()
    assert "hunter2x" not in log_file.read_text()
    assert [lines[0], lines[2].partition(" = ")[0], lines[3]] == ["one", "np password", "two"]
    assert lines[2].endswith(" and more that is said after it")
    assert log_file.stat().st_mode & 0o777 == 0o600
    log.write("error", "three", {"BACKSTORY_HOME": str(leaky)})
    assert log_file.read_text().splitlines()[4].endswith("three")
    assert run("redact").out.startswith("Nothing that is stored")


def test_live_views_and_what_waits_for_the_next_prompt_follow(session: Path, project: str, run: Run) -> None:
    file = Path(project, "CLAUDE.md")
    file.write_text("# Mine\n")
    server = Views(str(session), project, "s1")
    with closing(connect(str(session / "backstory.db"))) as db:
        here = projects.every(db)[0]
        node = nodes.roots(db, here.number)[0]
        put_secret(session)
        view_files.add(db, server, here, node.id, NOW, threading.Event())
        assert SECRET in file.read_text()
        assert run("redact", "--yes").code == 0
        assert "the key is [redacted:github-token]" in file.read_text()
        assert SECRET not in file.read_text()
        assert "[redacted:github-token]" in json.loads((session / "outbox" / "s1").read_text())
        assert holding(session) == []
        view_files.clear(db, server, NOW)


def test_what_waits_for_a_prompt_stays_a_string_of_json(leaky: Path, run: Run) -> None:
    (leaky / "outbox").mkdir()
    (leaky / "outbox" / "s9").write_text(json.dumps(f'say "{SECRET}"\n to it') + "\n")
    assert run("redact", "--yes").code == 0
    assert json.loads((leaky / "outbox" / "s9").read_text()) == 'say "[redacted:github-token]"\n to it'


@pytest.mark.parametrize("name", ["erasing", "redacting.tmp"])
def test_nothing_is_written_through_a_link(name: str, leaky: Path, run: Run, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    if name == "redacting.tmp":
        elsewhere.write_text("mine")
    (leaky / name).symlink_to(elsewhere)
    ran = run("redact", "--yes")
    assert ran.code == 0, ran.err
    assert not elsewhere.exists() or elsewhere.read_text() == "mine"
    assert holding(leaky) == []
