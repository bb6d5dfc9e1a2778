"""`backstory sessions`: a project's sessions, and one of them turn by turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from backstory import paths
from backstory.memory.turn import COMPLETE, Turn, facts
from backstory.model import Memory, Session, Summary
from backstory.store import memories, projects, summaries, turns
from backstory.store import sessions as stored
from backstory.surfaces.cli import common
from backstory.surfaces.cli.common import prints, project_option, store
from backstory.surfaces.shapes import (
    WRAP,
    Column,
    Facts,
    Line,
    Reply,
    Shown,
    listing,
    number_of,
    one_line,
    plain,
    session_gist,
    titled,
    when,
)

COLUMNS = (
    Column("session", lambda one: one.id[:8]),  # its beginning is enough to name a session
    Column("started", lambda one: when(one.started_at), gives_way=5),
    Column("status", gives_way=4, style=lambda one: "green" if one.status == "active" else ""),
    Column("branch", lambda one: one_line(one.branch or "", 20), gives_way=1),
    Column("turns", right=True, gives_way=3),
    Column("memories", right=True, gives_way=2),
    Column("about", session_gist, least=20),
)


@click.command()
@click.argument("prefix", metavar="[ID]", required=False)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many.")
@project_option
@prints
def sessions(prefix: str | None, limit: int, project: str) -> Reply:
    """List sessions, or tell one of them turn by turn.

    Those of this project; the beginning of an id is enough. `backstory list --kind tool --session ID` lists
    every tool use of a session."""
    if prefix:
        return _one(prefix, paths.place(project).root)
    with store() as (db, _):
        here = projects.at(db, paths.place(project))
        recent = stored.recent(db, here.id, limit) if here else []
        sentence = "No sessions here yet. They appear with the first Claude Code session."
        none = "" if recent else common.nothing(db, sentence, project)
    return listing(recent, COLUMNS, none=none)


def _one(prefix: str, root: str) -> Reply:
    with store() as (db, now):
        session_id = common.session_id(db, prefix)
        session = stored.by_ids(db, [session_id])[session_id]
        summary, made_by = summaries.get(db, session_id), summaries.made_by(db, session_id)
        prompts = stored.prompts(db, session_id)
        of_session = turns.of_session(db, session_id)
        made = [one for one in memories.of_session(db, session_id, now) if one.kind != "turn"]
    value = {
        **plain(session),
        "summary_fields": summary,
        "summary_by": made_by,
        "prompts": [{"created_at": at, "prompt": prompt} for at, prompt in prompts],
        "turns": [
            {
                "id": turn.id,
                "state": turn.state,
                "asked": turn.asked,
                "answer": turn.answer,
                "facts": facts(turn),
            }
            for turn in of_session
        ],
        "memories": made,
    }
    return Reply(value, _lines(session, of_session, made, root, summary, made_by))


def _lines(
    session: Session,
    of_session: Sequence[Turn],
    made: Sequence[Memory],
    root: str,
    summary: Summary | None,
    made_by: str | None,
) -> Iterator[Shown]:
    """What it came to, and then as it went, turn by turn; what a tool use left only where no turn tells of
    it."""
    traces = [memory for memory in made if memory.kind == "tool"]
    counts = (
        session.status,
        f"on {session.branch}" if session.branch else "",
        number_of(len(of_session), "turn", "turns"),
        number_of(len(made) - len(traces), "memory", "memories"),
        number_of(len(traces), "trace", "traces"),
    )
    yield Line(((session.id, "bold cyan"), f"  {', '.join(filter(None, counts))}"), WRAP, 6)
    if summary:
        yield from _summary(summary, made_by)
    entries = [(turn.started_at, _turn(turn, root)) for turn in of_session]
    for memory in made:
        is_in_a_turn = any(turn.started_at <= memory.created_at <= turn.ended_at for turn in of_session)
        if not (memory.kind == "tool" and is_in_a_turn) and not (summary and memory.kind == "summary"):
            head = (f"{when(memory.created_at)}  ", "dim"), (memory.id, "cyan")
            entries.append((memory.created_at, [Line((*head, f"  {titled(memory, root)}"))]))
    for _, lines in sorted(entries, key=lambda entry: entry[0]):
        yield from lines


def _turn(turn: Turn, root: str) -> list[Line]:
    asked = f"  > {one_line(turn.asked)}" if turn.asked else ""
    ended = "" if turn.state == COMPLETE else turn.state
    below = filter(None, (f"answered: {turn.answer}" if turn.answer else ended, *facts(turn)))
    return [
        Line(((f"{when(turn.started_at)}  ", "dim"), (turn.id, "cyan"), (asked, "bold"))),
        *(Line(("      " + one_line(line.replace(root + "/", "")),)) for line in below),
    ]


def _summary(summary: Summary, made_by: str | None) -> Iterator[Shown]:
    yield Facts(
        [
            ("request", summary.request),
            ("investigated", summary.investigated),
            ("learned", summary.learned),
            ("completed", summary.completed),
            ("next steps", summary.next_steps),
            ("files read", ", ".join(summary.files_read)),
            ("files edited", ", ".join(summary.files_edited)),
            ("notes", summary.notes),
            ("summed up by", made_by or ""),
        ]
    )
    yield ""
