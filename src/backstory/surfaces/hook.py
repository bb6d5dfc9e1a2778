"""The part of a hook that is Python: the brief at a session's start, what changed at the end of a turn, and
what goes on after Claude Code has its answer: drain the spool, and start the worker where there is work for
it.

hook.sh starts it with `python -I -S`: the standard library and this package, nothing else. stdout carries the
brief or the block decision and nothing else; what goes wrong is a line in the log, and the payloads stay in
the spool for the next drain.
"""

from __future__ import annotations

import os
import sys
import time

from backstory import config, dirty, log, paths
from backstory.capture import changes, spool
from backstory.clients import claude_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from backstory.store.file.connection import Connection

MINIMUM = (3, 11)
SECONDS = 2.0  # a backlog beyond that is left to the worker
SECONDS_AWAITED = 0.05  # the same where the user waits
SECONDS_LOOKING = 0.1  # for changes in the spool; those that were not seen are told of next time
MOST_FILES = 20  # named at the end of a turn
LONGEST_NAME = 200  # characters shown of a path
UNSAFE = (
    "'\"`>\\<＜﹤‹«\u2329\u3008《⟨⟪❬❮❰˂˱ᐸᐊ≪⋘≮≺⪻⋖⧼⦉⦑⦓⊰⊲⪡⪦⫷◁◀◂◃◄◅⏴⯇"  # fence.BRACKETS, which would load `re`
)
START = """
import sys
sys.path.insert(0, sys.argv[1])
from backstory import log
try:
    from {} import {}
    {}
except Exception:
    log.crash("{}")  # nobody is there to see it
"""
START_WORKER = START.format("backstory.surfaces", "worker", "worker.main()", "worker")
START_SYNC = START.format("backstory.surfaces.cli", "claude_md", "claude_md.background(sys.argv[2])", "sync")


def main(mode: str, payload: str = "") -> None:
    if sys.version_info < MINIMUM or os.environ.get("BACKSTORY_WORKER") == "1":
        return
    folder = paths.data_folder(os.environ)
    if folder is None:
        return
    try:
        if mode == "start":
            begin(folder, sys.stdin.buffer.read())
        elif mode == "announce":
            announce(folder, payload)
        else:
            go_on(folder)
            if mode == "stop":
                bring_up_to_date(folder)
    except Exception:  # noqa: BLE001  the edge of a hook: nothing may surface
        log.crash("hook")


def begin(folder: str, payload: bytes) -> None:
    """Tell the model what happened before; it is all that the user waits for. Where the store cannot be had
    at once, nothing is told, and the worker sees to it."""
    import json

    from backstory.errors import StoreError, Unavailable
    from backstory.recall import brief
    from backstory.store.file.connection import may_be_unavailable
    from backstory.surfaces.opened import open_drained

    event = claude_code.read(json.loads(payload))
    env = _shared(event.session_id)
    now = int(time.time() * 1000)
    try:
        with open_drained(folder, now=now, seconds=SECONDS_AWAITED, hurried=True) as db:
            tokens = int(config.number("brief.tokens", os.environ))
            told = brief.brief(db, event.cwd, event.session_id, event.source, tokens)
            if told.text:
                sys.stdout.buffer.write(told.text.encode("utf-8", "replace") + b"\n")
                sys.stdout.buffer.flush()
            needed = _is_work(db, folder, now, env)
            try:
                with may_be_unavailable():
                    _note(db, event.session_id)
                    brief.note(db, event.session_id, told.ids, now)
            except Unavailable:
                pass  # others write. The prompt's hook notes it again; what was shown can wait
    except StoreError as error:
        log.write("warning", f"no brief: {error}")
        needed = True
    if needed:
        start_worker(folder, env)


def announce(folder: str, payload: str) -> None:
    """Tell the model which files changed, and how to get CLAUDE.md updated; of each change once. The user
    waits for this, so neither SQLite nor json is loaded. `payload` is the name of this event's in the spool.
    """
    root = _root()
    if root is None or _on_stop(folder) != "agent":
        return
    if claude_code.is_sent_on(changes.parse(spool.read(paths.spool(folder), payload) or b"")):
        return  # the model has just been told
    # The spool before the list: what a drain takes out of the one is in the other by then.
    new = dirty.announce(root, folder, _undrained(folder, root))
    if new:
        sys.stdout.buffer.write(claude_code.block(told(new, root)))
        sys.stdout.buffer.flush()


def told(changed: list[str], root: str) -> str:
    """What the model is told. A repository decides what its files are called, so no sign in a name may end
    the prompt, or the string of JSON it stands in, or look like a bracket that opens a tag."""
    names = []
    for path in changed[:MOST_FILES]:
        name = path[len(root.rstrip("/")) + 1 :] or "."
        shown = "".join(sign if sign.isprintable() and sign not in UNSAFE else "?" for sign in name)
        names.append(shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 3]}...")
    more = len(changed) - MOST_FILES
    listed = ", ".join(names) + (f" (and {more} more)" if more > 0 else "")
    update = claude_code.spawn("backstory:memory-updater", f"Update CLAUDE.md for changed files: {listed}")
    return f"Files were modified this turn. {update}"


def go_on(folder: str) -> None:
    """Nobody waits for this; Claude Code ends the hook's process group when the session ends, not ours."""
    try:
        os.setsid()
    except OSError:
        pass  # already the leader of one
    from backstory.surfaces.opened import open_drained

    session_id = claude_code.session_id(os.environ)
    env = _shared(session_id)
    now = int(time.time() * 1000)
    with open_drained(folder, now=now, seconds=SECONDS) as db:
        _note(db, session_id)
        needed = _is_work(db, folder, now, env)
    if needed:
        start_worker(folder, env)


def bring_up_to_date(folder: str) -> None:
    """Where CLAUDE.md is to follow without a model, start a process that sees to it."""
    root = _root()
    if root is None:
        return
    if not spool.waiting(paths.spool(folder)):
        dirty.prune(root, folder)
    if config.on_stop(os.environ) == "auto" and dirty.read(root):
        _spawn(START_SYNC, os.environ, root)


def _root() -> str | None:
    """The initialised project that the session is in."""
    return dirty.root_of(claude_code.project_folder(os.environ))


def _on_stop(folder: str) -> str:
    """As config.on_stop; but to load a parser takes as long as all the rest, and few files speak of it."""
    if config.variable_of("claude_md.on_stop") not in os.environ:
        try:
            with open(os.path.join(folder, "config.toml"), "rb") as file:
                is_set = b"on_stop" in file.read()
        except FileNotFoundError:
            is_set = False
        if not is_set:
            return config.DEFAULTS["claude_md.on_stop"]
    return config.on_stop(os.environ)


def _undrained(folder: str, root: str) -> list[str]:
    """What changed according to payloads that wait in the spool."""
    deadline = time.monotonic() + SECONDS_LOOKING
    roots: dict[str, str | None] = {}
    found: dict[str, None] = {}
    for payload in spool.waiting(paths.spool(folder)):
        if time.monotonic() > deadline:
            break
        try:
            raw = spool.read(paths.spool(folder), payload.name)
        except OSError:
            continue  # the drain puts it aside
        for above, path in dirty.listed(changes.of_payload(raw or b""), roots):
            if above == root:
                found[path] = None
    return list(found)


def _note(db: Connection, session_id: str) -> None:
    """What only the session's own environment says: whether a person is there, and how it wants to be
    observed: who keeps one session from the model does not want it sent by a worker that another started."""
    from backstory.store import sessions

    sessions.attend(db, session_id, claude_code.is_attended(os.environ))
    if "BACKSTORY_SYNTHESIZER" in os.environ:
        sessions.choose(db, session_id, config.synthesizer(os.environ))


def _shared(session_id: str) -> Mapping[str, str]:
    """The environment of a worker. It serves every session, so what was chosen for this one stays out of it,
    unless the client does not say which one this is: then it can be kept in no other way."""
    if not session_id:
        return os.environ
    return {name: value for name, value in os.environ.items() if name != "BACKSTORY_SYNTHESIZER"}


def _is_work(db: Connection, folder: str, now: int, env: Mapping[str, str]) -> bool:
    """Something to observe, to back up, or more in the spool than this hook could take."""
    from backstory.store import queue
    from backstory.store.file import backup

    if queue.due(db, now, config.synthesizer(env)):
        return True
    return backup.due(folder, now) or bool(spool.waiting(paths.spool(folder)))


def start_worker(folder: str, env: Mapping[str, str]) -> None:
    """A process of its own, unless one runs already."""
    from backstory import locks

    lock = locks.try_to_take(paths.worker_lock(folder))
    if lock is not None:
        os.close(lock)
        _spawn(START_WORKER, env)


def _spawn(code: str, env: Mapping[str, str], *args: str) -> None:
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    # -I without -s: what `pip install --user` brought is seen, the project's folder is not.
    command = [sys.executable, "-E", "-P", "-X", "utf8", "-c", code, package, *args]
    os.posix_spawn(sys.executable, command, env, file_actions=nothing, setsid=True)
