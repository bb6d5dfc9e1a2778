"""The part of a hook that is Python: the brief and a line for the user at a session's start, what changed at
the end of a turn, whether the user need be asked about a tool of ours, and what goes on after Claude Code has
its answer: drain the spool, and start the worker where there is work for it. What is asked of the memory
server is in asking.py.

hook.sh starts it with `python -I -S`: the standard library and this package, nothing else. stdout carries the
client's answer and nothing else; what goes wrong is a line in the log, and the payloads stay in the spool for
the next drain.
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

    from backstory.clients.canonical import Event
    from backstory.recall.brief import Brief
    from backstory.store.file.connection import Connection

MINIMUM = (3, 11)
SECONDS = 2.0  # a backlog beyond that is left to the worker
SECONDS_AWAITED = 0.05  # the same where the user waits
SECONDS_LOOKING = 0.1  # of computing, for changes in the spool; what was not seen is told of next time
MOST_FILES = 20  # named at the end of a turn
LONGEST_NAME = 200  # characters shown of a path
LONGEST_LINE = 300  # characters of what the user is told at the start
NAME = "backstory: "  # before it
DAY_MS = 24 * 3600 * 1000
TALLY_DAYS = 7  # after which a session without a sign of life is told things anew
MOST_TRANSCRIPTS = 5_000  # names that are looked at
MOST_KNOWN = 5_000  # files or tests that hook.sh looks through
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
# A repository that was made to cost takes no more than this of a machine that nobody asked.
LIMITS = (
    "import resource as r; r.setrlimit(r.RLIMIT_AS, (4 << 30,) * 2); r.setrlimit(r.RLIMIT_CPU, (120,) * 2)\n"
)
START_SYNC = LIMITS + START.format(
    "backstory.surfaces.cli", "claude_md", "claude_md.background(sys.argv[2])", "sync"
)


def main(mode: str, given: str = "") -> None:
    if sys.version_info < MINIMUM or os.environ.get("BACKSTORY_WORKER") == "1":
        return
    folder = paths.data_folder(os.environ)
    if folder is None:
        return
    try:
        if mode == "start":
            begin(folder, sys.stdin.buffer.read(), given)
        elif mode == "announce":
            announce(folder, given)
        elif mode == "allow":
            allow(sys.stdin.buffer.read())
        else:
            go_on(folder, turn_ended=mode in ("stop", "end"))
            if mode == "stop":
                bring_up_to_date(folder)
    except Exception:  # noqa: BLE001  the edge of a hook: nothing may surface
        log.crash("hook")


# --- the start of a session ---------------------------------------------------------------------------------


def begin(folder: str, payload: bytes, notice: str = "") -> None:
    """Tell the model what happened before, and the user that we are there; it is all that the user waits for.
    Where the store cannot be had at once, nothing is told, and the worker sees to it. `notice` is what
    hook.sh has to say: that backstory is being set up, that nothing can be captured."""
    import json

    from backstory.errors import Busy, Damaged, SchemaTooNew, SchemaTooOld, StoreError, Unavailable
    from backstory.recall import brief
    from backstory.store.file.connection import may_be_unavailable
    from backstory.surfaces import prose_note
    from backstory.surfaces.opened import open_drained

    event = claude_code.read(json.loads(payload))
    env = _shared(event.session_id)
    now = int(time.time() * 1000)
    _ask_no_more(folder, event.session_id)
    try:
        with open_drained(folder, now=now, seconds=SECONDS_AWAITED, hurried=True) as db:
            room = int(config.number("brief.tokens", os.environ))
            opening = brief.brief(db, event.cwd, event.session_id, event.source, room)
            fault = notice or _fault(folder, now)
            _answer(fault or _line(db, event, opening, now), opening.text)
            _adopt(db)
            needed = _is_work(db, folder, now, env)
            prose_note.take_over(db, folder, event.session_id, event.cwd)
            try:
                with may_be_unavailable():
                    _note(db, event.session_id)
                    _note_brief(db, event, opening, now)
            except Unavailable:
                pass  # others write. The prompt's hook notes it again; what was shown can wait
    except StoreError as error:
        log.write("warning", f"no brief: {error}")
        is_other = isinstance(error, SchemaTooNew | SchemaTooOld)
        is_fault = is_other or (isinstance(error, Damaged | Unavailable) and not isinstance(error, Busy))
        _answer(notice or (f"{NAME}nothing is told: {error}" if is_fault else ""), "")
        needed = not is_other  # the worker could not open it either
    if needed:
        start_worker(folder, env)


def _note_brief(db: Connection, event: Event, opening: Brief, now: int) -> None:
    """The session has seen these memories. Nobody asked for them, so they are no more salient for it."""
    from backstory.gist import tokens
    from backstory.store import standing, tellings
    from backstory.store.file.connection import transaction, unhurried

    if not opening.text or not opening.project_id:
        return
    unhurried(db)
    moment = tellings.COMPACT if event.source == "compact" else tellings.START
    text, ids = opening.text, opening.ids
    with transaction(db):
        standing.note(db, event.session_id, ids, now)
        tellings.note(
            db, event.session_id, opening.project_id, moment, text, ids, tokens=tokens(text), at=now
        )


def _adopt(db: Connection) -> None:
    """A worktree or a clone of an initialised project is initialised from its first session on."""
    from backstory.errors import BackstoryError
    from backstory.store import claude_files

    try:
        project = claude_code.project_folder(os.environ)
        dirty.adopt(project, lambda path: claude_files.get(db, path))
    except BackstoryError as error:
        log.write("warning", f"changes are not tracked: {error}")


def _answer(line: str, text: str) -> None:
    line = "".join(sign if sign.isprintable() else " " for sign in line)
    if line or text:
        _print(claude_code.session_started(line[:LONGEST_LINE], text))


def _print(answer: Mapping[str, object]) -> None:
    import json

    sys.stdout.buffer.write(json.dumps(answer).encode("ascii") + b"\n")
    sys.stdout.buffer.flush()


def _fault(folder: str, now: int) -> str:
    """What is wrong with capture, or was with the store, and what to do."""
    count = spool.recently_failed(paths.spool(folder), now - DAY_MS)
    if not count:
        return _recovered(folder)
    events = "event" if count == 1 else "events"
    return f"{NAME}{count} {events} of the last day could not be read; backstory doctor says which, and why"


def _recovered(folder: str) -> str:
    """What a recovery leaves to do, until somebody has acknowledged it."""
    try:
        with open(paths.recovered(folder), encoding="utf-8") as file:
            _, offer, rest = file.read().rpartition("`backstory backfill")
    except OSError:
        return ""
    if not offer:
        return ""  # nothing was lost
    command = offer + rest.partition("`")[0]
    return (
        f"{NAME}the database was damaged and is restored; {command}` brings back what Claude Code has of the"
        " rest; `backstory doctor` says more, and `backstory backup now` ends this note"
    )


def _line(db: Connection, event: Event, opening: Brief, now: int) -> str:
    """`backstory: 41 sessions remembered, 2 things open, 455 tokens told`"""
    from backstory.gist import tokens
    from backstory.store import sessions

    if config.choice("display", os.environ) == "quiet":
        return ""
    parts = [f"{tokens(opening.text):,} tokens told"] if opening.text else []
    if event.source == "compact":
        return NAME + parts[0] if parts else ""
    count, first = 0, None
    if opening.project_id:
        count, first = sessions.remembered(db, opening.project_id, event.session_id)
    if opening.open:
        parts.insert(0, f"{opening.open} {'thing' if opening.open == 1 else 'things'} open")
    if count:
        parts.insert(0, f"{count:,} {'session' if count == 1 else 'sessions'} remembered")
    line = NAME + (", ".join(parts) or "nothing remembered here yet")
    if first is None or first > now - DAY_MS:
        others = sessions.unknown(db, _transcripts(event))
        if others:
            earlier = "an earlier session" if others == 1 else f"{others:,} earlier sessions"
            line += f"; backstory backfill would read {earlier}"
        if command := _command():
            line += f"; the command is {command}"
    return line


def _command() -> str:
    """How to call backstory, where the plugin's set-up could not put it on PATH (plugin/bin/setup.py)."""
    try:
        with open(
            os.path.join(os.environ[claude_code.PLUGIN_DATA], "setup.command"), encoding="utf-8"
        ) as file:
            return file.readline(LONGEST_NAME).strip()
    except (KeyError, OSError, ValueError):
        return ""


def _transcripts(event: Event) -> list[str]:
    """The other sessions in this folder that the client has transcripts of, by their files' names."""
    top = claude_code.config_folder(os.environ)
    try:
        names = os.listdir(claude_code.transcripts_folder(top, event.cwd)) if top else []
    except OSError:
        return []
    every = [name.removesuffix(".jsonl") for name in names[:MOST_TRANSCRIPTS] if name.endswith(".jsonl")]
    return [session_id for session_id in every if session_id != event.session_id]


def _ask_no_more(folder: str, session_id: str) -> None:
    """Where nothing is to be told at prompts, hook.sh need not start Python to find that out."""
    from backstory.surfaces import asking

    if config.choice("recall.prompt", os.environ) == "off" and asking.is_name(session_id):
        paths.make_folder(asking.run_folder(folder))
        asking.put(os.path.join(asking.run_folder(folder), session_id + ".prompts"), "done")


# --- before a tool of ours is used --------------------------------------------------------------------------

QUERIES = frozenset(
    "memory_search memory_timeline docs_search docmem_find docmem_serialize docmem_structure docmem_get_root"
    " docmem_expand_to_length docmem_list docmem_query_nodes docmem_search".split()
)
WRITES = frozenset(
    "memory_add memory_reinforce memory_deemphasize memory_supersede memory_delete docmem_create"
    " docmem_create_node docmem_add_summary docmem_view docs_ingest docmem_import".split()
)
OUTSIDE = ("path", "url")  # arguments that lead to files and to the network


def allow(payload: bytes) -> None:
    """Tell the client that the user need not be asked about a tool of ours, where `may_use` says so."""
    import json

    try:
        use = claude_code.own_tool(json.loads(payload))
    except (ValueError, RecursionError):
        return
    if use and may_use(*use, config.choice("permissions", os.environ)):
        _print(claude_code.allowed("backstory's own memory; `permissions` is the setting"))


def may_use(tool: str, given: Mapping[str, object], permissions: str) -> bool:
    """False leaves it to the client: what erases for good, overwrites, or leads out of the store."""
    if permissions == "ask" or any(given.get(name) is not None for name in OUTSIDE):
        return False
    if tool in QUERIES or tool == "docmem_export":
        return True
    if tool == "docs_ingest" and given.get("title") is not None:
        return False  # it takes the place of the text of that title
    return permissions == "write" and tool in WRITES and given.get("hard") in (None, False)


# --- the end of a turn --------------------------------------------------------------------------------------


def announce(folder: str, payload: str) -> None:
    """Tell the model which files changed, and how to get CLAUDE.md updated; of each change once. The user
    waits for this, so neither SQLite nor json is loaded, and hook.sh asks only where `claude_md.on_stop` may
    be `agent`. `payload` is the name of this event's in the spool."""
    root = _root()
    if root is None or config.on_stop(os.environ) != "agent":
        return
    if claude_code.is_sent_on(changes.parse(spool.read(paths.spool(folder), payload) or b"")):
        return  # the model has just been told
    # The spool before the list: what a drain takes out of the one is in the other by then.
    new = dirty.announce(root, folder, _undrained(folder, root))
    if new:
        sys.stdout.buffer.write(claude_code.block(update_request(new, root)))
        sys.stdout.buffer.flush()


def update_request(changed: list[str], root: str) -> str:
    """What the model is asked to do. A repository decides what its files are called, so no sign in a name may
    end the prompt, or the string of JSON it stands in, or look like a bracket that opens a tag."""
    names = []
    for path in changed[:MOST_FILES]:
        name = path[len(root.rstrip("/")) + 1 :] or "."
        shown = "".join(sign if sign.isprintable() and sign not in UNSAFE else "?" for sign in name)
        names.append(shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 3]}...")
    more = len(changed) - MOST_FILES
    listed = ", ".join(names) + (f" (and {more} more)" if more > 0 else "")
    update = claude_code.spawn("backstory:memory-updater", f"Update CLAUDE.md for changed files: {listed}")
    return f"Files were modified this turn. {update}"


def go_on(folder: str, *, turn_ended: bool) -> None:
    """Drain and start the worker, after the answer. Claude Code ends the hook's process group when the
    session ends, so this leaves it."""
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
        if turn_ended:
            _list_what_is_known(db, folder, now)
    _remove_old_tallies(folder, now)
    if needed:
        start_worker(folder, env)


def _list_what_is_known(db: Connection, folder: str, now: int) -> None:
    """The files and tests that there is something to tell about. hook.sh looks into these lists before it
    starts Python."""
    from backstory.errors import BadInput
    from backstory.store import known
    from backstory.whole_file import whole_file

    is_on = config.choice("recall.files", os.environ) == "on"
    top = os.path.join(folder, "known")
    for name, find in (("files", known.files), ("tests", known.tests)):
        found = find(db, now) if is_on else []
        lines = [line for line in found if line.strip() and "\n" not in line][:MOST_KNOWN]
        content = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        path = os.path.join(top, name)
        try:
            with open(path, "rb") as file:
                before = file.read()
        except OSError:
            before = b""
        if content != before:
            paths.make_folder(top)
            try:
                with whole_file(path, replaces=True, mode=0o600) as file:
                    file.write(content)
            except BadInput as error:
                log.write("warning", f"what is known of files is told as it was before: {error}")


def _remove_old_tallies(folder: str, now: int) -> None:
    """Of sessions that were killed. Sockets are the servers' business."""
    from backstory.surfaces import asking

    try:
        with os.scandir(asking.run_folder(folder)) as entries:
            for entry in entries:
                is_old = entry.stat(follow_symlinks=False).st_mtime * 1000 < now - TALLY_DAYS * DAY_MS
                if is_old and not entry.name.endswith((asking.SOCKET, asking.SOCKET + ".")):
                    os.unlink(entry.path)
    except OSError:
        pass  # there is none yet, or another process was faster


def bring_up_to_date(folder: str) -> None:
    """Where CLAUDE.md is to follow by itself, start a process that sees to it."""
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


def _undrained(folder: str, root: str) -> list[str]:
    """What changed according to payloads that wait in the spool."""
    deadline = time.process_time() + SECONDS_LOOKING  # by the clock, a busy machine would leave none for it
    roots: dict[str, str | None] = {}
    found: dict[str, None] = {}
    for payload in spool.waiting(paths.spool(folder)):
        if time.process_time() > deadline:
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
    """Something to observe, a checkout to learn about, a silent session to close, the backup, or more in the
    spool than this hook could take."""
    from backstory.store import projects, queue, sessions

    if queue.due(db, now, config.synthesizer(env)) or projects.unread(db, 1) or sessions.any_silent(db, now):
        return True
    from backstory.store.file import backup

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
