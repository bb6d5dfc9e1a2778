"""What is remembered: searched, listed, shown, and added to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from backstory import paths
from backstory.blob import stale
from backstory.clients import claude_code
from backstory.memory.kinds import KINDS, SECTORS, TIERS
from backstory.memory.turn import Turn, commit_line
from backstory.model import MODES, Excerpt, Filters, Hit, Memory
from backstory.store import life, memories, projects
from backstory.store import turns as stored_turns
from backstory.store.file.connection import Connection
from backstory.surfaces.cli import common, output
from backstory.surfaces.cli.common import memory_id, moment, prints, project_option, store, typed
from backstory.surfaces.shapes import (
    LINES,
    ROOM_AS_JSON,
    SHOWN,
    WHOLE,
    WRAP,
    Facts,
    Line,
    Piece,
    Reply,
    Shown,
    done,
    gist,
    is_title_in_text,
    one_line,
    plain,
    score_parts,
    session_gist,
    title,
    titled,
    when,
)

if TYPE_CHECKING:
    from backstory.recall.timeline import Timeline

MOST_LISTED = 1_000
NO_MEMORIES = (
    "No memories. `backstory add` keeps a note; sessions bring the rest. --kind tool lists tool uses."
)
NOTHING_FORGOTTEN = "Nothing of the kind is forgotten here; without --forgotten it lists what is remembered."
SHORTEST = 20  # characters of a turn in a line
ROOM = (700, 400)  # characters of a turn: of the best hit, of the others
ROWS_OF_BEST_TURN, ROWS_OF_TURN = 10, 4  # of its pieces, in a terminal
NARROW, ROWS_LISTED = 100, 2  # columns; rows of a memory in a list below that

FILTERS = (
    click.option("--sector", type=click.Choice(SECTORS), help="Only this sector of memory."),
    click.option(
        "--kind", type=click.Choice(KINDS), help="Only this kind of memory; tool: traces of single tool uses."
    ),
    click.option(
        "--tier", type=click.Choice(TIERS), help="Only what belongs to a session, the project, or everywhere."
    ),
    click.option("--tag", "tags", multiple=True, help="Only with this tag; may be given more than once."),
    click.option(
        "--file", "files", multiple=True, metavar="PATH", help="Only about this file; may be repeated."
    ),
    click.option("--session", "session_id", metavar="ID", help="Only of this session."),
    click.option("--since", metavar="WHEN", help="Only after: 2026-11-15, today, or 7d, 12h, 90m ago."),
    click.option("--until", metavar="WHEN", help="Only before."),
)


def _filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that choose among memories; `_filters` makes Filters of what was given."""
    for option in reversed(FILTERS):
        command = option(command)
    return command


def _filters(db: Connection, now: int, given: dict[str, Any]) -> Filters:
    for bound in ("since", "until"):
        given[bound] = moment(given[bound], now, bound == "until") if given[bound] else None
    for name in ("tags", "files"):
        given[name] = tuple(typed([one]) for one in given[name])
    if given["session_id"]:
        given["session_id"] = common.session_id(db, given["session_id"])
    return Filters(**given)


# --- search -------------------------------------------------------------------------------------------------


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--mode", type=click.Choice(MODES), default="hybrid", show_default=True, help="How to look.")
@_filter_options
@click.option("--superseded", is_flag=True, help="Also what something newer replaced.")
@click.option("--everywhere", is_flag=True, help="In all projects, not only in this one.")
@click.option("--explain", is_flag=True, help="Show what each score is made of.")
@click.option("--limit", default=10, show_default=True, help="How many, 1 to 100.")
@project_option
@prints
def search(
    query: tuple[str, ...],
    mode: str,
    limit: int,
    project: str,
    superseded: bool,
    everywhere: bool,
    explain: bool,
    **filters: Any,
) -> Reply:
    """Find memories by what they say and mean, or one by its id.

    A turn is shown with what was asked, what of it fits, and its commits; `backstory show ID` has it whole.
    Traces of single tool uses are found where nothing else fits, or with --kind tool or --sector episodic."""
    from backstory.recall.answer import answer as find
    from backstory.recall.index import Index

    with store() as (db, now):
        chosen = _filters(db, now, filters)
        with common.busy("searching"):  # the first search makes vectors
            answer = find(
                Index.configured(),
                db,
                project,
                typed(query),
                now=now,
                mode=mode,
                limit=limit,
                filters=chosen,
                include_superseded=superseded,
                patience=common.FILL_SECONDS,
                everywhere=everywhere,
                room=ROOM_AS_JSON if common.is_script() else ROOM,
            )
        sentence = "No memories found. Other words may do; `backstory sessions` lists what there is."
        none = "" if answer.hits else common.nothing(db, sentence, project)
    far = "" if answer.fits or not answer.hits else "Nothing fits well; these are the nearest."
    notes = [note for note in (far, answer.notice) if note]
    return Reply(answer.hits, _hits(answer.hits, paths.place(project).root, explain), notes, none)


def _hits(hits: Sequence[Hit], here: str, explain: bool) -> Iterator[Shown]:
    for place, hit in enumerate(hits, 1):
        memory, root = hit.memory, hit.project.root if hit.project else here
        head = (f"{place:>2}. ", (memory.id, "cyan"), (f"  {when(memory.created_at)}", "dim"))
        kind = (f"  {memory.kind}/{memory.sector}", "magenta")
        yield Line((*head, kind), end=(f"  score {hit.score:.2f}", "green"))
        if memory.valid_until:
            yield _below(f"superseded by {hit.superseded_by or 'something newer'}", "yellow")
        if hit.project:
            yield _below(f"in {hit.project.name}  {root}", "yellow")
        if hit.excerpt:
            yield from _excerpt(hit.excerpt, root, is_best=place == 1)
        elif is_title_in_text(memory):
            yield _below(gist(memory, root))
        else:
            yield _below(title(memory), "bold")
            yield _below(one_line(memory.content.replace(root + "/", "")))
        for change in hit.stale:
            yield _below(change, "yellow")
        if explain:
            yield score_parts(hit.parts)


def _below(text: str, style: str = "") -> Line:
    return Line(((f"    {text}", style),))


def _excerpt(excerpt: Excerpt, root: str, *, is_best: bool) -> Iterator[Line]:
    """What was asked, the pieces that fit below it, and the commits. A terminal's rows are few: a long piece
    takes some of them, and the whole turn is a command away."""
    if excerpt.asked:
        yield _below(one_line(excerpt.asked.replace(root + "/", ""), SHOWN + 20), "bold")
    lines = [line for piece in excerpt.pieces for line in piece.splitlines() if line.strip()]
    if lines:
        text = "\n".join(lines).replace(root + "/", "")
        yield Line((" " * 6, text), LINES, 6, ROWS_OF_BEST_TURN if is_best else ROWS_OF_TURN)
    for commit in excerpt.commits:
        yield Line((" " * 6, (one_line(commit), "green")))


# --- list ---------------------------------------------------------------------------------------------------


@click.command("list")
@_filter_options
@click.option("--forgotten", is_flag=True, help="What was forgotten, for `backstory restore`.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, MOST_LISTED), help="How many.")
@project_option
@prints
def list_memories(forgotten: bool, limit: int, project: str, **filters: Any) -> Reply:
    """List memories of this project, newest first.

    Your global ones are listed as well. A turn is one line: what was asked, and how it was answered. Traces
    of single tool uses are listed with --kind tool or --forgotten."""
    with store() as (db, now):
        ranges = projects.ranges(db, projects.at(db, paths.place(project)))
        chosen = _filters(db, now, filters)
        # What was forgotten is little, and somebody chose it.
        of_tools = {"forgotten": forgotten, "traces": forgotten or chosen.kind == "tool"}
        every = memories.newest(db, ranges, chosen, **of_tools, limit=MOST_LISTED + 1, now=now)
        newest = every[:limit]
        turns = stored_turns.by_ids(db, [memory.id for memory in newest if memory.kind == "turn"])
        none = "" if newest else common.nothing(db, NOTHING_FORGOTTEN if forgotten else NO_MEMORIES, project)
    total = f"{len(every)}" if len(every) <= MOST_LISTED else f"more than {MOST_LISTED:,}"
    notes = [f"{limit} of {total}; --limit shows more"] if len(every) > limit else []
    return Reply(newest, _lines(newest, turns, paths.place(project).root), notes, none)


def _lines(newest: Sequence[Memory], turns: Mapping[str, Turn], root: str) -> Iterator[Shown]:
    columns = output.columns()
    is_narrow = 0 < columns < NARROW
    room = ROWS_LISTED * (columns - 8) if is_narrow else columns - 48 if columns else SHOWN
    for memory in newest:
        head: list[Piece] = [(memory.id, "cyan"), (f"  {when(memory.created_at)}  ", "dim")]
        head.append((f"{memory.kind:<10}  ", "magenta"))
        turn = turns.get(memory.id)
        text = _gist_of_turn(turn, root, room) if turn else gist(memory, root)
        if is_narrow:  # in what is left of the row nothing can be said
            yield Line(tuple(head))
            yield Line((" " * 4, text), WRAP, 4, ROWS_LISTED)
        else:
            yield Line((*head, text))


def _gist_of_turn(turn: Turn, root: str, room: int = SHOWN) -> str:
    """What was asked, and how it was answered."""
    from backstory.recall.excerpt import in_a_line

    return one_line(in_a_line(turn, max(SHORTEST, min(SHOWN, room))).replace(root + "/", ""))


# --- show ---------------------------------------------------------------------------------------------------


@click.command()
@click.argument("memory", metavar="ID")
@project_option
@prints
def show(memory: str, project: str) -> Reply:
    """Show one memory or turn whole.

    The beginning of its id is enough; `backstory search` and `backstory list` show ids."""
    with store() as (db, now):
        known = memory_id(db, memory, project, anywhere=True)
        living = memories.get(db, known, now)
        archived = life.archived(db, known) or {}
        relations = life.relations(db, known)
        turn = stored_turns.by_ids(db, [known]).get(known)
    if living is None:
        return Reply(archived, _archived(archived))
    changes = stale(living, paths.checkout(project))
    named = [dict(zip(("source", "relation", "target"), one, strict=True)) for one in relations]
    value = {**plain(living), "stale": changes, "relations": named}
    return Reply(value, _memory(living, turn, changes, relations))


def _memory(
    memory: Memory, turn: Turn | None, changes: Sequence[str], relations: Sequence[tuple[str, str, str]]
) -> Iterator[Shown]:
    state = "forgotten" if memory.deleted_at else "superseded" if memory.valid_until else ""
    yield Line(((memory.id, "bold cyan"), (f"  {state}" if state else "", "yellow")))
    facts = {
        "kind": f"{memory.kind}, {turn.state}" if turn else memory.kind,
        "sector": memory.sector,
        "tier": memory.tier,
        "source": memory.source,
        "created": when(memory.created_at),
        "salience": f"{memory.salience:.2f}",
        "session": memory.session_id or "-",
        "author": memory.author or "-",
        "tags": ", ".join(memory.tags) or "-",
        "files": ", ".join(memory.files) or "-",
        "concepts": ", ".join(memory.concepts),
        "times": str(memory.times) if memory.times > 1 else "",
    }
    of_turns = ("kind", "created", "salience", "session")
    yield Facts([fact for fact in facts.items() if not turn or fact[0] in of_turns], 9)
    for change in changes:
        yield Line((" " * 11, (change, "yellow")), WRAP, 11)
    yield Facts([("relation", " ".join(relation)) for relation in relations], 9)
    yield ""
    if turn:
        yield from _whole_turn(turn)
        return
    if not is_title_in_text(memory):
        yield Line(((title(memory), "bold"),), WRAP)
    yield Line((memory.content,), WHOLE)  # a command copied from here must stay whole


def _whole_turn(turn: Turn) -> Iterator[Shown]:
    parts: list[tuple[str, str]] = [("asked", text) for text, _ in turn.prompts]
    parts += [(f"the user was asked: {question}", answer) for question, answer in turn.choices]
    parts += [("approved plan", plan) for plan in turn.plans]
    parts += [("answered", turn.answer)]
    parts += [("commits", "\n".join(map(commit_line, turn.commits)))]
    parts += [("failed, then passed", "\n".join(f"{command}: {error}" for command, error in turn.passed))]
    parts += [("failed", "\n".join(f"{command}: {error}" for command, error in turn.failed))]
    parts += [("edited", "\n".join(turn.edited)), ("read", "\n".join(turn.read))]
    parts += [(f"agent: {task}", came) for task, came in turn.agents]
    parts += [("the conversation was compacted to", text) for text in turn.compactions]
    there = [(name, text.strip()) for name, text in parts if text.strip()]
    for place, (name, text) in enumerate(there):
        if place:
            yield ""
        yield Line(((one_line(name), "bold"),), WRAP)
        yield Line((text,), WHOLE)


def _archived(memory: Mapping[str, object]) -> Iterator[Shown]:
    """A memory that was put away."""
    yield Line(((str(memory["id"]), "bold cyan"), ("  archived", "yellow")))
    yield Line(((f"`backstory restore {memory['id']}` brings it back", "dim"),), WRAP)
    yield ""
    yield Line((str(memory["content"]),), WHOLE)


# --- timeline -----------------------------------------------------------------------------------------------


@click.command()
@click.argument("anchor", metavar="ID")
@click.option(
    "--before",
    default=5,
    show_default=True,
    help="How many turns, or memories outside any, before it: 0 to 50.",
)
@click.option(
    "--after",
    default=5,
    show_default=True,
    help="How many turns, or memories outside any, after it: 0 to 50.",
)
@project_option
@prints
def timeline(anchor: str, before: int, after: int, project: str) -> Reply:
    """Show what happened around a memory, turn by turn."""
    from backstory.recall.timeline import timeline as around

    with store() as (db, now):
        known = life.living(db, memory_id(db, anchor, project, anywhere=True))
        answer = around(db, known, before, after, now)
        turns = stored_turns.by_ids(db, [entry.id for entry in answer.entries if entry.kind == "turn"])
    return Reply(answer, _timeline(answer, turns, paths.place(project).root))


def _timeline(answer: Timeline, turns: Mapping[str, Turn], root: str) -> Iterator[Shown]:
    """A line each, oldest first, with the session's name where it changes."""
    by_id = {session.id: session for session in answer.sessions}
    session_id = None
    entries = [
        one
        for entry in answer.entries
        for one in ((entry, answer.anchor) if entry is answer.turn else (entry,))
    ]
    for memory in entries:
        if memory.session_id != session_id and (session := by_id.get(memory.session_id or "")):
            about = session_gist(session) or "no summary"
            yield Line(((f"session {session.id[:8]}  {when(session.started_at)}  {about}", "bold"),))
        session_id = memory.session_id
        is_anchor = memory.id == answer.anchor.id
        turn = turns.get(memory.id)
        text = _gist_of_turn(turn, root) if turn else titled(memory, root)
        yield Line(
            (
                "    " if is_anchor and answer.turn else "",  # it stands within its turn
                (">>> " if is_anchor else "    ", "green"),
                (f"{when(memory.created_at)}  ", "dim"),
                (memory.id, "cyan"),
                ("  superseded" if memory.valid_until else "", "yellow"),
                (f"  {text}", "bold" if is_anchor else ""),
            )
        )


# --- open, add ----------------------------------------------------------------------------------------------


@click.command("open")
@project_option
@prints
def list_open(project: str) -> Reply:
    """List what the last session left open.

    A question, a failing check, files without a commit, next steps: of the last session on this branch, as
    the brief of the next one has them. `backstory show ID` tells the turn that left them."""
    from backstory.recall.brief import left_open
    from backstory.surfaces.cli.slash import NOTHING_OPEN

    with store() as (db, _):
        lines = left_open(db, project, claude_code.session_id(os.environ))
        none = "" if lines else common.nothing(db, NOTHING_OPEN, project)
    value = [{"memory_id": line.memory_id, "text": line.text} for line in lines]
    return Reply(value, [line.text for line in lines], no=none)


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--sector", type=click.Choice(SECTORS), help="What kind of memory it is.")
@click.option("--tag", "tags", multiple=True, help="A tag; may be given more than once.")
@click.option("--importance", type=float, help="From 0 to 1.  [default: 0.5]")
@click.option(
    "--global", "is_global", is_flag=True, help="For all your projects: it is about you, not about one."
)
@project_option
@prints
def add(text: tuple[str, ...], project: str, **given: Any) -> Reply:
    """Remember a note. `-` reads it from standard input."""
    from backstory.intake.note import keep

    content = typed(text)
    if content == "-":
        content = sys.stdin.read() if sys.stdin else ""
    with store() as (db, now):
        kept = keep(db, project, content, now=now, source="user", **given)
    return done(str(kept), created=kept.is_new, **plain(kept.memory))
