"""Registering the plugin with Claude Code, and taking it out again; what is said and asked on the way.

Claude Code runs a plugin from a directory marketplace in place, so the plugin is laid out once in the data
folder: a copy that outlives the virtual environment it came from, so that hooks never point into nothing.
The copy has the repository's own layout; both ways of installing run the same files.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

import click

import backstory
from backstory import paths
from backstory.errors import ClientError
from backstory.surfaces.cli import common, output, status_line, worker_status
from backstory.surfaces.cli import config as settings
from backstory.surfaces.cli.common import prints
from backstory.surfaces.shapes import Reply

PLUGIN = "backstory@backstory"
MARKETPLACE = "backstory"
PACKAGE = os.path.dirname(os.path.abspath(backstory.__file__))
claude_option = partial(click.option, "--claude", metavar="PATH")


@click.command()
@claude_option(help="The Claude Code to register with.  [default: from PATH]")
@click.option(
    "--synthesizer",
    type=click.Choice(["auto", "local"]),
    help="Who makes memories of what was captured: auto (a small model through your own Claude Code; it is"
    " sent prompts, answers and excerpts of tool uses) or local (rules; nothing is sent).",
)
@click.option(
    "--statusline/--no-statusline",
    default=None,
    help="Whether Claude Code's status line shows one of backstory. Another one is never replaced.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@prints
def install(claude: str | None, synthesizer: str | None, statusline: bool | None, yes: bool) -> Reply:
    """Register the plugin with Claude Code.

    Safe to repeat, and to run after an upgrade. It says first what would be sent to a model, and at a
    terminal lets you choose."""
    from backstory.surfaces.cli import backfill

    may_ask = (
        not (yes or common.is_script()) and sys.stderr.isatty() and bool(sys.stdin and sys.stdin.isatty())
    )
    client = find_client(claude)
    sentences = settle_synthesizer(common.folder(), synthesizer, may_ask)
    sentences += register(common.folder(), client)
    sentences += status_line.offer(os.environ, statusline, may_ask)
    sentences += filter(None, [backfill.offer(common.folder())])
    return Reply(sentences, sentences)


@click.command()
@claude_option(help="The Claude Code to remove it from.  [default: from PATH]")
@prints
def uninstall(claude: str | None) -> Reply:
    """Remove the plugin from Claude Code. The memories stay."""
    sentences = unregister(common.folder(), find_client(claude))
    return Reply(sentences, sentences)


def settle_synthesizer(folder: str, chosen: str | None, may_ask: bool) -> list[str]:
    """Say who makes memories and what that sends, before there is anything to send; a person may choose."""
    is_settled = settings.is_set(folder, "synthesizer") or chosen is not None
    if chosen is None and may_ask and not is_settled:
        click.echo(output.wrapped(f"{worker_status.what_is_sent(os.environ)}\n"), err=True)
        choice = click.Choice(["auto", "local"])
        chosen = click.prompt("Who makes memories?", type=choice, default="auto", err=True)
        if chosen == "auto":
            settings.put(folder, "synthesizer", chosen)
            return ["memories: made as said above (synthesizer auto)"]
    if chosen:
        settings.put(folder, "synthesizer", chosen)
    return [worker_status.what_is_sent(os.environ)]


def register(folder: str, client: str) -> list[str]:
    root = plugin_folder(folder)
    known = {market["name"]: market for market in ask(client, "marketplace", "list")}
    lay_out(root)
    done = [f"plugin {version('backstory')} laid out in {root}"]
    there = str(known.get(MARKETPLACE, {}).get("path", ""))
    if MARKETPLACE in known and os.path.realpath(there) != os.path.realpath(root):
        _call(client, "marketplace", "remove", MARKETPLACE)
        done.append("replaced a marketplace of the same name that pointed elsewhere")
    _call(client, "marketplace", "add", root)
    _call(client, "install", PLUGIN)
    if registered(client) is None:
        raise ClientError("Claude Code accepted the plugin but does not list it; try: claude plugin list")
    done.append(f"registered with Claude Code as {PLUGIN}")
    done.append("done: new sessions are remembered; `backstory doctor` checks every part")
    return done


def unregister(folder: str, client: str) -> list[str]:
    done = []
    if registered(client) is not None:
        _call(client, "uninstall", PLUGIN, "--keep-data")
        done.append(f"{PLUGIN} removed from Claude Code")
    if any(market["name"] == MARKETPLACE for market in ask(client, "marketplace", "list")):
        _call(client, "marketplace", "remove", MARKETPLACE)
        done.append("marketplace removed")
    done += status_line.take_out(os.environ)
    done += _take_link_out()
    shutil.rmtree(plugin_folder(folder), ignore_errors=True)
    if not done:
        done.append("the plugin was not installed")
    done.append(f"your memories stay in {folder}; delete that folder to forget everything")
    return done


def _take_link_out() -> list[str]:
    """The link in ~/.local/bin that the plugin's own set-up made (plugin/bin/setup.py)."""
    link = os.path.expanduser(os.path.join("~", ".local", "bin", "backstory"))
    if not os.path.islink(link) or not re.search(
        r"/plugins/data/[^/]+/venv/bin/backstory$", os.readlink(link)
    ):
        return []
    os.unlink(link)
    return [f"{link} removed"]


def find_client(claude: str | None) -> str:
    found = shutil.which(claude or "claude")
    if found is None:
        missing = f"{claude} is not a program" if claude else "Claude Code is not on PATH"
        raise ClientError(f"{missing}; name it with: --claude PATH")
    return found


def plugin_folder(folder: str) -> str:
    return os.path.join(folder, "plugin")


def registered(client: str) -> dict[str, Any] | None:
    """What Claude Code says about our plugin."""
    return next((plugin for plugin in ask(client, "list") if plugin.get("id") == PLUGIN), None)


def ask(client: str, *args: str) -> list[dict[str, Any]]:
    answer = _call(client, *args, "--json")
    try:
        found = json.loads(answer)
    except ValueError as error:
        raise ClientError(
            f"{client} gave no JSON for `plugin {' '.join(args)}`; is it Claude Code?"
        ) from error
    return [item for item in found if isinstance(item, dict)]


def lay_out(root: str) -> None:
    """Copy the plugin there, file by file and each at once: sessions may be running from it right now."""
    wanted = {os.path.join(root, place): source for source, place in _files()}
    for target, source in wanted.items():
        paths.make_folder(os.path.dirname(target))
        with _replacing(target) as new:
            shutil.copy(source, new)
    interpreter = os.path.join(root, "interpreter")
    with _replacing(interpreter) as new, open(new, "x", encoding="utf-8") as file:
        file.write(sys.executable + "\n")
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if path not in wanted and path != interpreter and not path.endswith(".pyc"):
                os.unlink(path)


@contextmanager
def _replacing(path: str) -> Iterator[str]:
    """A file to write that takes the place of another at once."""
    new = f"{path}.new"
    if os.path.lexists(new):  # a kill left it, or it is a link, which would lead elsewhere
        os.unlink(new)
    yield new
    os.replace(new, path)


def _files() -> Iterator[tuple[str, str]]:
    """(where it is, where it goes) of every file of the plugin."""
    manifest = os.path.join(PACKAGE, "plugin", "manifest")  # in a wheel
    if not os.path.isdir(manifest):
        manifest = os.path.join(PACKAGE, "..", "..", ".claude-plugin")  # in a checkout
    for name in sorted(os.listdir(manifest)):
        yield os.path.join(manifest, name), os.path.join(".claude-plugin", name)
    for folder, folders, names in os.walk(PACKAGE):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "manifest"))
        for name in sorted(names):
            path = os.path.join(folder, name)
            yield path, os.path.join("src", "backstory", os.path.relpath(path, PACKAGE))


def _call(client: str, *args: str) -> str:
    command = [client, "plugin", *args]
    if sys.stderr.isatty():  # some of them fetch something first, and say nothing meanwhile
        click.echo(f"waiting for `claude plugin {' '.join(args)}`", err=True)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClientError(f"`claude plugin {' '.join(args)}` did not run: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise ClientError(f"`claude plugin {' '.join(args)}` failed: {said}")
    return done.stdout
