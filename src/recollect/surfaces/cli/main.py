"""The command line. A command parses, calls one function, prints; only `main` turns errors into exit codes.

0  done    1  the answer is no, or not found    2  wrong use    3  a fault of ours
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from sqlite3 import Connection

import click

from recollect import errors, log, paths
from recollect.model import SECTORS, Session

SECTOR = click.Choice(SECTORS)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
project_option = click.option(
    "--project",
    default=".",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="The project to look at.  [default: the current folder]",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="recollect", message="recollect %(version)s")
def cli() -> None:
    """A memory for Claude Code: what happened, kept and found again."""


@cli.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--sector", type=SECTOR, help="Only this kind of memory.")
@click.option("--limit", default=10, show_default=True, help="How many, 1 to 100.")
@project_option
@json_option
def search(query: tuple[str, ...], sector: str | None, limit: int, project: str, as_json: bool) -> None:
    """Find memories by their words (or one by its id)."""
    from recollect.recall.search import search as find
    from recollect.surfaces.cli import output

    with _store() as (db, now):
        found = find(db, project, _words(query), now=now, sector=sector, limit=limit)
    if as_json:
        output.as_json([{"score": round(hit.score, 4), **asdict(hit.memory)} for hit in found])
    elif found:
        output.hits(found, paths.place(project).root)
    if not found:
        raise errors.NotFound(
            "No memories found. Other words may do; `recollect sessions` lists what there is."
        )


@cli.command()
@click.argument("memory_id")
@json_option
def show(memory_id: str, as_json: bool) -> None:
    """Show one memory whole."""
    from recollect.store import memories
    from recollect.surfaces.cli import output

    with _store() as (db, now):
        memory = memories.get(db, _words([memory_id]), now)
    if memory is None:
        raise errors.NotFound(f"There is no memory {memory_id}; `recollect search` shows ids.")
    if as_json:
        output.as_json(asdict(memory))
    else:
        output.memory(memory)


@cli.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--sector", type=SECTOR, help="What kind of memory it is.")
@click.option("--tag", "tags", multiple=True, help="A tag; may be given more than once.")
@click.option("--importance", type=float, help="From 0 to 1.  [default: 0.5]")
@project_option
@json_option
def add(
    text: tuple[str, ...],
    sector: str | None,
    tags: tuple[str, ...],
    importance: float | None,
    project: str,
    as_json: bool,
) -> None:
    """Remember a note. `-` reads it from standard input."""
    from recollect.intake.note import keep
    from recollect.surfaces.cli import output

    content = _words(text)
    if content == "-":
        content = sys.stdin.read() if sys.stdin else ""
    with _store() as (db, now):
        kept = keep(db, project, content, now=now, sector=sector, tags=tags, importance=importance)
    if as_json:
        output.as_json({"created": kept.is_new, **asdict(kept.memory)})
    else:
        click.echo(kept)


@cli.command()
@click.argument("session_id", metavar="[ID]", required=False)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many.")
@project_option
@json_option
def sessions(session_id: str | None, limit: int, project: str, as_json: bool) -> None:
    """List this project's sessions, or tell what one of them did (the beginning of its id is enough)."""
    if session_id:
        _tell(session_id, project, as_json)
    else:
        _list_sessions(project, limit, as_json)


def _list_sessions(project: str, limit: int, as_json: bool) -> None:
    from recollect.store import projects
    from recollect.store import sessions as stored
    from recollect.surfaces.cli import output

    with _store() as (db, _):
        here = projects.at(db, paths.place(project))
        found = stored.recent(db, here.id, limit) if here else []
    if as_json:
        output.as_json([asdict(session) for session in found])
    elif found:
        output.sessions(found)
    if not found:
        raise errors.NotFound("No sessions here yet. They appear with the first Claude Code session.")


def _tell(prefix: str, project: str, as_json: bool) -> None:
    from recollect.store import memories
    from recollect.store import sessions as stored
    from recollect.surfaces.cli import output

    with _store() as (db, now):
        session = _only(prefix, stored.starting_with(db, _words([prefix])))
        prompts = stored.prompts(db, session.id)
        made = memories.of_session(db, session.id, now)
    if as_json:
        said = [{"created_at": at, "prompt": prompt} for at, prompt in prompts]
        output.as_json({**asdict(session), "prompts": said, "memories": [asdict(memory) for memory in made]})
    else:
        output.session(session, prompts, made, paths.place(project).root)


def _only(prefix: str, found: list[Session]) -> Session:
    exact = [session for session in found if session.id == prefix]
    if not found:
        raise errors.NotFound(f"There is no session {prefix}; `recollect sessions` lists them.")
    if len(found) > 1 and not exact:
        ids = ", ".join(session.id for session in found)
        raise errors.BadInput(f"more than one session starts with {prefix}: {ids}; give more of the id")
    return (exact or found)[0]


@cli.command()
@click.option("--claude", metavar="PATH", help="The Claude Code to register with.  [default: from PATH]")
@json_option
def install(claude: str | None, as_json: bool) -> None:
    """Register the plugin with Claude Code. Safe to repeat, and to run after an upgrade."""
    from recollect.surfaces.cli import install as plugin

    _report(plugin.install(_folder(), claude), as_json)


@cli.command()
@click.option("--claude", metavar="PATH", help="The Claude Code to remove it from.  [default: from PATH]")
@json_option
def uninstall(claude: str | None, as_json: bool) -> None:
    """Remove the plugin from Claude Code. The memories stay."""
    from recollect.surfaces.cli import install as plugin

    _report(plugin.uninstall(_folder(), claude), as_json)


@cli.command()
@click.option("--claude", metavar="PATH", help="The Claude Code to look at.  [default: from PATH]")
@json_option
def doctor(claude: str | None, as_json: bool) -> None:
    """Check every part, with a test event sent all the way through."""
    from recollect.surfaces.cli import doctor as checks

    found = checks.examine(_folder(), os.environ, claude)
    checks.report(found, as_json=as_json)
    if any(check.level == "bad" for check in found):
        sys.exit(1)


@cli.group()
def mcp() -> None:
    """The MCP servers; Claude Code starts them."""


@mcp.command("memory")
def mcp_memory() -> None:
    """Search and add memories, over stdio."""
    from recollect.surfaces.mcp_memory import serve

    serve()


def main() -> None:
    """Every error ends here, as one sentence and an exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # no locale is too small to print in
    sys.exit(_run(cli))


def _run(command: click.Command) -> int:  # noqa: PLR0911  one line an error
    try:
        command(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    except (errors.NotFound, errors.ClientError) as error:
        return _complain(error, 1)
    except errors.BadInput as error:
        return _complain(error, 2)
    except errors.RecollectError as error:
        return _complain(error, 3)
    except BrokenPipeError:
        _silence()  # the reader has had enough
        return 0
    except OSError as error:
        _silence()
        if isinstance(error, FileNotFoundError) and not error.filename:
            return _complain("the current folder is gone; go to one that exists", 2)
        return _complain(error, 3)
    except Exception as error:  # noqa: BLE001  the edge of the program
        log.crash("cli")
        return _complain(f"{type(error).__name__}: {error} (a fault of recollect; the log has more)", 3)
    return 0


def _silence() -> None:
    """Python flushes at the end; what could not be printed before must not fail there again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _words(given: Iterable[str]) -> str:
    """What was typed, as text: signs that are not UTF-8 cannot be stored, so they cannot be found either."""
    return os.fsencode(" ".join(given)).decode("utf-8", "backslashreplace")


def _complain(message: object, code: int) -> int:
    from recollect.surfaces.cli.output import visible

    click.echo(f"recollect: {visible(str(message))}", err=True)
    return code


@contextmanager
def _store() -> Iterator[tuple[Connection, int]]:
    from recollect.intake.drain import open_store

    now = int(time.time() * 1000)
    with open_store(_folder(), now=now, progress=_progress if sys.stderr.isatty() else None) as db:
        yield db, now


def _progress(stored: int, total: int) -> None:
    if total >= 1_000:  # fewer are stored before anyone could read this
        click.echo(f"\rstoring what was captured: {stored:,} of {total:,}", err=True, nl=stored == total)


def _folder() -> str:
    folder = paths.data_folder(os.environ)
    if folder is None:
        raise errors.BadInput("there is no data folder; set HOME, or RECOLLECT_HOME to where it should be")
    return os.path.abspath(folder)


def _report(lines: list[str], as_json: bool) -> None:
    from recollect.surfaces.cli import output

    if as_json:
        output.as_json(lines)
    else:
        for line in lines:
            click.echo(line)
