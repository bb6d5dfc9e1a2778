"""`backstory docs`: reference documents, apart from memories."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict

import click

from backstory import errors, paths
from backstory.model import MODES
from backstory.store import documents, projects
from backstory.store.file.connection import Connection, transaction
from backstory.surfaces.cli import output
from backstory.surfaces.cli.common import FILL_SECONDS, json_option, only, project_and_json, store, typed


@click.group()
def docs() -> None:
    """Documents kept for reference.

    Markdown, text, reStructuredText and HTML; a model finds them with docs_search."""


@docs.command("ingest")
@click.argument("sources", nargs=-1, required=True, metavar="PATH|URL...")
@click.option("--title", help="What to call it.  [default: its first heading]")
@project_and_json
def ingest(sources: tuple[str, ...], title: str | None, project: str, as_json: bool) -> None:
    """Take in files, whole folders or web pages. What did not change is skipped; `-` reads standard input."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from backstory.recall.documents import ingest as recall
    from backstory.recall.documents.file import SUPPORTED
    from backstory.surfaces.cli import terminal

    done: list[recall.Ingested] = []
    problems: list[str] = []
    every = [one for given in sources for one in recall.files_in(os.path.expanduser(given))]
    if not every:
        raise errors.NotFound(f"There are no documents in {', '.join(sources)}; {SUPPORTED} can be read.")
    if title and len(every) > 1:
        raise errors.BadInput("--title names one document; give one source with it")
    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with store() as (db, now), Progress(*bar, **terminal.progress()) as shown:
        for given in shown.track(every, description="reading documents"):
            what = "content" if given == "-" else "url" if recall.is_url(given) else "path"
            value = given if what == "url" else os.path.abspath(given)
            if given == "-":
                value = sys.stdin.read() if sys.stdin else ""
            try:
                one = recall.ingest(db, project, title=title, now=now, **{what: value})
            except errors.BackstoryError as error:
                problems.append(f"{given}: {error}")
            else:
                done.append(one)
    if as_json:
        output.as_json({"documents": [asdict(one) for one in done], "problems": problems})
    else:
        for one in done:
            click.echo(output.visible(str(one)))
    for problem in problems:
        click.echo(f"backstory: {output.visible(problem)}", err=True)
    if problems:
        raise errors.NotFound(f"{len(problems)} of {len(every)} could not be ingested.")


@docs.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("--mode", type=click.Choice(MODES), default="hybrid", show_default=True, help="How to look.")
@click.option("--explain", is_flag=True, help="Show what each score is made of.")
@click.option("--limit", default=5, show_default=True, help="How many, 1 to 100.")
@project_and_json
def search(query: tuple[str, ...], mode: str, explain: bool, limit: int, project: str, as_json: bool) -> None:
    """Find passages in this project's documents."""
    from backstory.recall.index import Index
    from backstory.recall.search import search_documents
    from backstory.surfaces.cli import terminal

    with store() as (db, _):
        found = search_documents(
            Index.configured(), db, project, typed(query), mode=mode, limit=limit, patience=FILL_SECONDS
        )
    if as_json:
        output.as_json(found.hits)
    else:
        terminal.document_hits(found.hits, explain)
    if found.notice:
        click.echo(found.notice, err=True)
    if not found.hits:
        raise errors.NotFound("No documents found. `backstory docs list` shows what there is.")


@docs.command("list")
@project_and_json
def listing(project: str, as_json: bool) -> None:
    """List this project's documents."""
    from backstory.surfaces.cli import terminal

    with store() as (db, _):
        here = projects.at(db, paths.place(project))
        found = documents.listed(db, here.id) if here else []
    if as_json:
        output.as_json([asdict(document) for document in found])
    else:
        terminal.documents(found)
    if not found:
        raise errors.NotFound("No documents here yet. `backstory docs ingest PATH` takes one in.")


@docs.command("show")
@click.argument("document", metavar="ID")
@json_option
def show(document: str, as_json: bool) -> None:
    """Show a document as it was cut into chunks."""
    with store() as (db, _):
        known = _document_id(db, document)
        chunks = documents.chunks(db, known)
    if as_json:
        output.as_json([{"heading": heading, "text": text} for heading, text in chunks])
        return
    for heading, text in chunks:
        click.secho(output.visible(heading), bold=True)
        click.echo(output.visible(text) + "\n")


@docs.command("remove")
@click.argument("document", metavar="ID")
@json_option
def remove(document: str, as_json: bool) -> None:
    """Remove a document from what can be searched. The file itself stays."""
    with store() as (db, _):
        known = _document_id(db, document)
        with transaction(db):
            documents.remove(db, known)
    output.answer(as_json, {"removed": known}, f"Document removed: {known}")


def _document_id(db: Connection, prefix: str) -> str:
    found = [one.id for one in documents.starting_with(db, typed([prefix]))]
    return only("document", prefix, found, "backstory docs list")
