"""Is everything in order? One line each, and what to do where it is not.

The canary is a real event: through the hook script into the spool, through intake into the store, and found
by search; afterwards it is removed again.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version

import click

from backstory import config, paths, paused
from backstory.capture import spool
from backstory.clients import claude_code
from backstory.errors import BackstoryError, BadInput, ClientError, EmbedderAway
from backstory.ids import new_id
from backstory.model import now_ms
from backstory.recall.answer import answer
from backstory.recall.index import Index
from backstory.store import documents, memories, nodes, projects, sessions, vectors
from backstory.store.file import backup, recovery
from backstory.store.file.connection import connect, has_fts5, sqlite_version, transaction
from backstory.store.file.connection import version as schema_of
from backstory.store.file.disk import existing
from backstory.surfaces import erasing
from backstory.surfaces.cli import config as settings
from backstory.surfaces.cli import install, pausing
from backstory.surfaces.cli.common import busy, folder, lost, prints, unusable
from backstory.surfaces.opened import open_drained
from backstory.surfaces.shapes import WRAP, Line, Reply, number_of, size, when

OLDEST_CLIENT = (2, 1, 197)  # the oldest Claude Code this was tried with
LATE_MS = 3 * backup.DAY_MS  # of what was captured and is in no backup
HOOK = os.path.join("plugin", "hooks", "hook.sh")
SIGNS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "bad": ("✗", "red")}


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    level: str  # ok, warn, bad
    finding: str
    advice: str = ""


def examine(folder: str, env: Mapping[str, str], claude: str | None = None) -> list[Check]:
    checks: list[tuple[str, Callable[[], Check]]] = [
        ("python", lambda: _python(env)),
        ("data folder", lambda: _data_folder(folder)),
        ("disk", lambda: _disk(folder)),
        ("settings", lambda: _settings(env)),
        ("canary", lambda: _canary(folder, env)),
        ("database", lambda: _database(folder)),
        ("backup", lambda: _backup(folder)),
        ("search", lambda: _search(folder)),
        ("spool", lambda: _spool(folder)),
        ("capture", lambda: _capture(folder)),
        ("Claude Code", lambda: _client(claude)),
        ("plugin", lambda: _plugin(claude, env)),
    ]
    found: list[Check] = []
    for name, check in checks:
        is_told = any(one.name == "settings" and one.level == "bad" for one in found)
        made = _guarded(name, check, is_told=is_told)
        same = [one.name for one in found if one.level == "bad" and one.finding == made.finding]
        if same and made.level == "bad":
            made = Check(name, "bad", f"not checked, for the reason of {same[0]} above")
        found.append(made)
    return found


@click.command("doctor")
@click.option("--claude", metavar="PATH", help="The Claude Code to look at.  [default: from PATH]")
@prints
def doctor(claude: str | None) -> Reply:
    """Check every part, and say what to do where one fails.

    A test event is sent all the way through, from the hook to a search, and removed again."""
    with busy("checking every part"):
        checks = examine(folder(), os.environ, claude)
    bad = [check.name for check in checks if check.level == "bad"]
    return Reply(checks, map(_line, checks), no=f"to mend: {', '.join(bad)}" if bad else "")


def _line(check: Check) -> Line:
    sign, colour = SIGNS[check.level]
    advice = f" → {check.advice}" if check.advice else ""
    pieces = ((f"{sign} ", colour), (f"{check.name:<12}", "bold"), f" {check.finding}", (advice, colour))
    return Line(pieces, WRAP, 2)


def _guarded(name: str, check: Callable[[], Check], *, is_told: bool) -> Check:
    """A check, whatever happens in it. A setting that cannot be used `is_told` once."""
    try:
        return check()
    except BadInput as error:
        finding = "not checked, for a setting cannot be used; see above" if is_told else str(error)
        return Check(name, "bad", finding)
    except BackstoryError as error:
        # Whoever reads this looks closer already.
        said = re.sub(r"; `backstory doctor` [^;]*$", "", str(error))
        return Check(name, "bad", unusable(error.__cause__) or said)
    except Exception as error:  # noqa: BLE001  what is examined must not break the examination
        if cannot := unusable(error):
            return Check(name, "bad", cannot)
        return Check(name, "bad", f"{type(error).__name__}: {error}", "mend that, then run doctor again")


def _python(env: Mapping[str, str]) -> Check:
    found = f"{sys.version.split()[0]}, SQLite {sqlite_version()}"
    if not has_fts5():
        return Check("python", "bad", f"{found} without FTS5", "use a Python whose SQLite has FTS5")
    modules = env.get("PYTHONPATH", "")
    if modules and not all(map(os.path.isabs, modules.split(os.pathsep))):
        runs = "so `backstory` runs a sitecustomize.py of the folder that it is called in (hooks do not)"
        advice = "take the empty or relative entry out where your shell sets PYTHONPATH"
        return Check("python", "warn", f"PYTHONPATH is {modules!r}, {runs}", advice)
    return Check("python", "ok", found)


def _data_folder(folder: str) -> Check:
    at = existing(folder)
    if not os.path.isdir(at) or not os.access(at, os.W_OK | os.X_OK):
        problem = "is not a folder" if not os.path.isdir(at) else "cannot be written"
        return Check("data folder", "bad", f"{at} {problem}", "set BACKSTORY_HOME to a folder of yours")
    if at != folder:
        return Check("data folder", "ok", f"{folder} (made when the first event comes)")
    if not paths.close_to_others(folder):
        advice = f"set BACKSTORY_HOME to a folder for backstory alone, or: chmod 700 {shlex.quote(folder)}"
        return Check("data folder", "warn", f"{folder} is open to others", advice)
    return Check("data folder", "ok", folder)


def _disk(folder: str) -> Check:
    free = shutil.disk_usage(existing(folder)).free / 1e6
    finding = f"{free / 1000:.1f} GB free" if free >= 1000 else f"{free:.0f} MB free"
    if free < 50:
        return Check("disk", "bad", finding, "events are lost on a full disk; make room")
    return Check("disk", "warn" if free < 500 else "ok", finding, "make room soon" if free < 500 else "")


def _settings(env: Mapping[str, str]) -> Check:
    known = f"known: {', '.join(sorted({*config.DEFAULTS, *config.NUMBERS}))}"
    if wrong := settings.problems(env):
        try:
            strange = config.unknown(env)
        except BadInput:  # it is what is wrong
            strange = []
        wrong += [f"unknown in config.toml: {', '.join(strange)}"] if strange else []
        return Check("settings", "bad", ". ".join(wrong), known if strange else "")
    if strange := config.unknown(env):
        return Check("settings", "warn", f"unknown in config.toml: {', '.join(strange)}", known)
    return Check("settings", "ok", f"log.level = {config.setting('log.level', env)}")


def _canary(folder: str, env: Mapping[str, str]) -> Check:
    with open_drained(
        folder, now=now_ms()
    ) as db:  # without a store, the event would wait in the spool and stay
        if any(project_id is None for project_id, *_ in projects.paused(db)):
            return Check("canary", "warn", "not tried: everything is paused", "backstory resume --all")
    if paused.is_paused(folder, folder):
        finding = "not tried: the data folder lies in a project that is paused"
        return Check("canary", "warn", finding, "`backstory resume` there, then run doctor again")
    word = new_id("canary")
    session_id = f"backstory-doctor-{word}"
    event = json.dumps(claude_code.shell_use(session_id, folder, word, f"echo {word}", word)).encode()
    laid_out = os.path.join(install.plugin_folder(folder), "src", "backstory", HOOK)
    hook = laid_out if os.path.exists(laid_out) else os.path.join(install.PACKAGE, HOOK)
    # The event is of the data folder, so a pause of the project that doctor is run in does not concern it.
    hook_env = {**env, "BACKSTORY_HOME": folder, claude_code.PROJECT_DIR: folder}
    hook_env.pop("BACKSTORY_WORKER", None)
    started = time.perf_counter()
    ran = subprocess.run(
        ["sh", hook], input=event, env=hook_env, capture_output=True, timeout=30, check=False
    )
    milliseconds = (time.perf_counter() - started) * 1000
    if ran.returncode or ran.stdout or ran.stderr:
        said = ran.stderr.decode(errors="replace")
        return Check("canary", "bad", f"the hook said {said!r}", f"try: sh {hook}")
    now = now_ms()
    with open_drained(folder, now=now) as db:
        hits = answer(Index(None), db, folder, word, now=now, mode="keyword").hits
        found = any(hit.memory.session_id == session_id for hit in hits)
        with transaction(db):
            sessions.purge(db, session_id)
    if not found:
        log = paths.log_file(folder)
        has_log = f" and {log}" if os.path.exists(log) else ""  # its first line makes it
        advice = f"see {paths.spool(folder)}{has_log}"
        return Check("canary", "bad", "a test event did not arrive in search", advice)
    return Check("canary", "ok", f"hook → spool → intake → search; the hook took {milliseconds:.1f} ms")


def _database(folder: str) -> Check:
    path = paths.database(folder)
    recovery.verify(folder, now_ms())
    if erasing.is_unfinished(folder):
        finding = "an erasing or redaction was not finished: old text may be left in the file"
        return Check("database", "warn", finding, "backstory erase")
    with closing(connect(path)) as db:
        return Check("database", "ok", f"sound, schema {schema_of(db)}, {size(os.path.getsize(path))}")


def _backup(folder: str) -> Check:
    if said := recovery.notice(folder):
        return Check("backup", "warn", said, "`backstory backup now` makes a new one and ends this note")
    with open_drained(folder, now=now_ms()) as db:
        gone = lost(db, folder)
    if gone:
        return Check("backup", "warn", *gone)
    found = backup.listed(folder)
    if backup.only_in_the_database(folder) > LATE_MS:
        finding = f"the newest is of {when(found[0].at)}" if found else "there is none"
        return Check("backup", "warn", finding, "backstory backup now")
    if not found:
        return Check("backup", "ok", "none yet: one is made every day that Claude Code is used")
    total = size(sum(one.size for one in found))
    many = number_of(len(found), "backup", "backups")
    return Check("backup", "ok", f"{many}, the newest of {when(found[0].at)}, {total}")


def _search(folder: str) -> Check:
    """Which embedder, whether it answers, and how many memories have a vector of it."""
    index = Index.configured()
    if index.is_off:
        return Check("search", "ok", "by words only, as set")
    try:
        with closing(connect(paths.database(folder))) as db:
            model = index.embedder.id
            index.embedder.embed(["does it answer"])
            made = dict(vectors.counts(db)).get(model, 0)
            total = memories.count(db) + documents.count(db) + nodes.count(db)
    except EmbedderAway as away:
        return Check("search", "warn", f"by words only: {away}", "`backstory config embedder` tells which")
    waiting = f", {total - made:,} wait for theirs" if total > made else ""
    return Check("search", "ok", f"{model}, {number_of(made, 'vector', 'vectors')}{waiting}")


def _spool(folder: str) -> Check:
    place = paths.spool(folder)
    waiting = len(spool.waiting(place))
    failed = spool.failures(place)
    if failed:
        payloads = number_of(len(failed), "payload", "payloads")
        finding = f"{payloads} could not be stored; the last: {failed[-1][1]}"
        return Check("spool", "warn", finding, f"look at {place}/failed; delete what is not needed")
    return Check("spool", "ok", f"{waiting} waiting, none failed")


def _capture(folder: str) -> Check:
    """Is anything paused, and do the hooks know as much of it as the store?"""
    with open_drained(folder, now=now_ms()) as db:
        pauses, is_right = pausing.sentence(db), pausing.refresh(folder, db)
    if not is_right:
        advice = f"delete {paused.path(folder)}, or make room for it, then run doctor again"
        return Check("capture", "bad", "the file that tells hooks what is paused is wrong", advice)
    if pauses:
        return Check("capture", "warn", pauses)
    return Check("capture", "ok", "nothing is paused")


def _client(claude: str | None) -> Check:
    client = install.find_client(claude)
    said = subprocess.run(
        [client, "--version"], capture_output=True, text=True, timeout=30, check=False
    ).stdout
    number = re.match(r"(\d+)\.(\d+)\.(\d+)", said)
    if number is None:
        return Check("Claude Code", "warn", f"{client} does not tell its version", "is it Claude Code?")
    if tuple(int(part) for part in number.groups()) < OLDEST_CLIENT:
        oldest = ".".join(map(str, OLDEST_CLIENT))
        return Check("Claude Code", "warn", f"{number[0]} is older than {oldest}", "claude update")
    return Check("Claude Code", "ok", f"{number[0]} at {client}")


def _plugin(claude: str | None, env: Mapping[str, str]) -> Check:  # noqa: PLR0911  one line a problem
    try:
        plugin = install.registered(install.find_client(claude))
    except ClientError as error:
        return Check("plugin", "warn", str(error))
    if plugin is None:
        return Check("plugin", "warn", "not registered with Claude Code", "backstory install")
    if not plugin.get("enabled"):
        advice = f"claude plugin enable {install.PLUGIN}"
        return Check("plugin", "warn", "registered but switched off", advice)
    root = str(plugin.get("readFromFolder") or plugin.get("installPath") or "")
    if not os.path.isabs(root) or not os.path.exists(os.path.join(root, "src", "backstory", HOOK)):
        where = f" from {root}" if root else ""
        return Check("plugin", "bad", f"its files are missing{where}", "backstory install")
    runs = str(plugin.get("folderVersion") or plugin.get("version") or "another version")
    if runs != version("backstory"):
        finding = f"Claude Code runs {runs}, this is {version('backstory')}"
        return Check("plugin", "warn", finding, "backstory install")
    if problem := _server_problem(root, env):
        return Check("plugin", "bad", f"its server does not start: {problem}", "backstory install")
    return Check("plugin", "ok", f"{runs}, enabled, from {root}")


def _server_problem(root: str, env: Mapping[str, str]) -> str | None:
    """What the plugin's launcher says when it is asked for backstory, as Claude Code would ask it."""
    launcher = os.path.join(root, "src", "backstory", "plugin", "bin", "backstory.sh")
    # Set up from a marketplace, we run from an environment in the folder that Claude Code gives the plugin.
    asking = {claude_code.PLUGIN_DATA: os.path.dirname(sys.prefix), **env}
    asking.pop("BACKSTORY_WORKER", None)
    asked = subprocess.run(
        ["sh", launcher, "--version"], env=asking, capture_output=True, text=True, timeout=30, check=False
    )
    return None if asked.returncode == 0 else asked.stderr.strip().removeprefix("backstory: ")
