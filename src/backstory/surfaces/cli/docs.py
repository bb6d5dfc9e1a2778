"""`backstory docs`: reference documents, apart from memories."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

import click

from backstory import errors, paths
from backstory.model import MODES, DocumentHit
from backstory.store import documents, projects
from backstory.store.file.connection import Connection, transaction
from backstory.surfaces.cli.common import FILL_SECONDS, bar, only, prints, project_option, store, typed
from backstory.surfaces.shapes import (
    WHOLE,
    Column,
    Line,
    Piece,
    Reply,
    Shown,
    done,
    listing,
    one_line,
    score_parts,
    when,
)

DOCUMENTS = (
    Column("document", lambda one: one.id),
    Column("updated", lambda one: when(one.updated_at), gives_way=1),
    Column("chunks", right=True, gives_way=2),
    Column("title", lambda one: one_line(one.title or "untitled", 60)),
    Column("source", lambda one: one.source_path or one.source_url or "inline", least=20),
)


@click.group()
def docs() -> None:
    """Documents kept for reference.

    Markdown, text, reStructuredText and HTML; a model finds them with docs_search."""


@docs.command("ingest")
@click.argument("sources", nargs=-1, required=True, metavar="PATH|URL...")
@click.option("--title", help="What to call it.  [default: its first heading]")
@project_option
@prints
def ingest(sources: tuple[str, ...], title: str | None, project: str) -> Reply:
    """Take in files, whole folders or web pages. What did not change is skipped; `-` reads standard input."""
    from backstory.recall.documents import ingest as recall
    from backstory.recall.documents.file import SUPPORTED

    taken: list[recall.Ingested] = []
    problems: list[str] = []
    every = [one for given in sources for one in recall.files_in(os.path.expanduser(given))]
    if not every:
        raise errors.NotFound(f"There are no documents in {', '.join(sources)}; {SUPPORTED} can be read.")
    if title and len(every) > 1:
        raise errors.BadInput("--title names one document; give one source with it")
    with store() as (db, now), bar("reading documents", len(every)) as advance:
        for given in every:
            what = "content" if given == "-" else "url" if recall.is_url(given) else "path"
            value = given if what == "url" else os.path.abspath(given)
            if given == "-":
                value = sys.stdin.read() if sys.stdin else ""
            try:
                one = recall.ingest(db, project, title=title, now=now, **{what: value})
            except errors.BackstoryError as error:
                problems.append(f"{given}: {error}")
            else:
                taken.append(one)
            advance(1)
    no = f"{len(problems)} of {len(every)} could not be ingested." if problems else ""
    notes = [f"backstory: {problem}" for problem in problems]
    return Reply({"documents": taken, "problems": problems}, map(str, taken), notes, no)


@docs.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("--mode", type=click.Choice(MODES), default="hybrid", show_default=True, help="How to look.")
@click.option("--explain", is_flag=True, help="Show what each score is made of.")
@click.option("--limit", default=5, show_default=True, help="How many, 1 to 100.")
@project_option
@prints
def search(query: tuple[str, ...], mode: str, explain: bool, limit: int, project: str) -> Reply:
    """Find passages in this project's documents."""
    from backstory.recall.index import Index
    from backstory.recall.search import search_documents

    with store() as (db, _):
        found = search_documents(
            Index.configured(), db, project, typed(query), mode=mode, limit=limit, patience=FILL_SECONDS
        )
    none = "No documents found. `backstory docs list` shows what there is."
    notes = [found.notice] if found.notice else []
    return Reply(found.hits, _hits(found.hits, explain), notes, "" if found.hits else none)


def _hits(hits: Sequence[DocumentHit], explain: bool) -> Iterator[Shown]:
    for place, hit in enumerate(hits, 1):
        document = hit.chunk.document
        title = (one_line(document.title or "untitled", 60), "bold")
        heading = (f"  {hit.chunk.heading}" if hit.chunk.heading else "", "magenta")
        yield Line((f"{place:>2}. ", title, heading), end=(f"  score {hit.score:.2f}", "green"))
        yield Line(("    " + one_line(hit.chunk.text),))
        where = hit.stale or document.source_path or document.source_url or "inline"
        yield Line(("    ", (where, "yellow" if hit.stale else "dim")))
        if explain:
            yield score_parts(hit.parts)


@docs.command("list")
@project_option
@prints
def list_documents(project: str) -> Reply:
    """List this project's documents."""
    with store() as (db, _):
        here = projects.at(db, paths.place(project))
        found = documents.listed(db, here.id) if here else []
    none = "No documents here yet. `backstory docs ingest PATH` takes one in."
    return listing(found, DOCUMENTS, none=none)


@docs.command("show")
@click.argument("document", metavar="ID")
@prints
def show(document: str) -> Reply:
    """Show a document as it was cut into chunks."""
    with store() as (db, _):
        known = _document_id(db, document)
        chunks = documents.chunks(db, known)
    value = [{"heading": heading, "text": text} for heading, text in chunks]
    return Reply(value, (Line(piece, WHOLE) for chunk in chunks for piece in _chunk(*chunk)))


def _chunk(heading: str, text: str) -> Iterator[tuple[Piece, ...]]:
    yield ((heading, "bold"),)
    yield (text + "\n",)


@docs.command("remove")
@click.argument("document", metavar="ID")
@prints
def remove(document: str) -> Reply:
    """Remove a document from what can be searched. The file itself stays."""
    with store() as (db, _):
        known = _document_id(db, document)
        with transaction(db):
            documents.remove(db, known)
    return done(f"Document removed: {known}", removed=known)


def _document_id(db: Connection, prefix: str) -> str:
    found = [one.id for one in documents.starting_with(db, typed([prefix]))]
    return only("document", prefix, found, "backstory docs list")
