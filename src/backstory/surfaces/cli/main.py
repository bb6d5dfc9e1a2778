"""The command line. A command parses, calls one function, returns what there is to say; only `main` turns
errors into exit codes.

0  done    1  the answer is no, or not found    2  wrong use    3  a fault of ours
"""

from __future__ import annotations

import io
import os
import sys

import click

from backstory import errors, log, paths
from backstory.surfaces.cli.groups import Commands, Late


@click.group(cls=Commands, commands=Late(), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="backstory", message="backstory %(version)s")
def cli() -> None:
    """A memory for Claude Code: what happened, kept and found again."""


@click.command()
def statusline() -> None:
    """Print a line for Claude Code's status line.

    It reads what Claude Code tells on standard input. `backstory install` offers to put it into your
    settings; or do so yourself, in ~/.claude/settings.json:

    "statusLine": {"type": "command", "command": "backstory statusline"}"""
    from backstory.surfaces.statusline import main as line

    line()


@click.group(invoke_without_command=True)
@click.pass_context
def mcp(context: click.Context) -> None:
    """Serve the MCP tools, over stdio; Claude Code starts this."""
    if context.invoked_subcommand is None:
        _serve("backstory")


@mcp.command("memory")
def mcp_memory() -> None:
    """Only the tools to search, add to and correct memories."""
    _serve("memory")


@mcp.command("docmem")
def mcp_docmem() -> None:
    """Only the tools to write and read trees of nodes, and to show them in CLAUDE.md."""
    _serve("docmem")


def _serve(server: str) -> None:
    from backstory.surfaces.mcp.start import serve

    serve(server)


def main() -> None:
    """Every error ends here, as one sentence and an exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # no locale is too small to print in
    # An empty or relative entry is the current folder, somebody's project, of which nothing is run.
    os.environ["PATH"] = paths.whole_entries(os.environ.get("PATH", ""))
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
    except (errors.NotFound, errors.ClientError, errors.EmbedderAway) as error:
        return _complain(error, 1)
    except errors.BadInput as error:
        return _complain(error, 2)
    except errors.BackstoryError as error:
        return _complain(_unusable(error.__cause__) or error, 3)
    except BrokenPipeError:
        _silence()  # the reader has had enough
        return 0
    except OSError as error:
        _silence()
        if isinstance(error, FileNotFoundError) and not error.filename:
            return _complain("the current folder is gone; go to one that exists", 2)
        return _complain(_unusable(error) or error, 3)
    except Exception as error:  # noqa: BLE001  the edge of the program
        if what_to_do := _unusable(error):
            return _complain(what_to_do, 3)
        log.crash("cli")
        return _complain(f"{type(error).__name__}: {error} (a fault of backstory; the log has more)", 3)
    return 0


def _unusable(error: BaseException | None) -> str | None:
    from backstory.surfaces.cli.common import unusable

    return unusable(error)


def _silence() -> None:
    """Python flushes at the end; what could not be printed before must not fail there again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _complain(message: object, code: int) -> int:
    from backstory.surfaces.cli.output import visible

    click.echo(f"backstory: {visible(str(message))}", err=True)
    return code
