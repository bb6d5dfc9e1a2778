"""From the transcripts that a client keeps into the store: what was said and done before we were there.

A child reads, cleans and redacts; this process writes. A session's events go through the same function as
those of the spool (intake/remember.py), with the same keys, in batches that end where a turn does. The files
of a session are noted as read in the transaction that stores its last event, so a run that was killed goes on
with that session, and finds in the ledger what it had stored.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from backstory import log, paths
from backstory.capture.transcripts import Told, Transcript, told
from backstory.clients.canonical import TURN_END
from backstory.clients.claude_transcript import WORKTREES, number_of
from backstory.errors import StoreError
from backstory.intake.item import item_of
from backstory.intake.remember import SAME_MS, Past, Prepared, remember
from backstory.intake.trace import Trace, trace
from backstory.store import life, sessions, transcripts, turns
from backstory.store.file.connection import Connection, transaction

BATCH_EVENTS = 250  # and then up to the end of the turn
MOST_EVENTS = 2_000
RUNNING_MS = 3_600_000  # a session of which something was written down so lately goes on
CODE = """
import sys
sys.path[:] = sys.argv[1:]
from backstory import log
try:
    from backstory.intake import backfill
    backfill.main()
except BrokenPipeError:
    sys.exit(1)
except Exception:
    log.crash("backfill")
    sys.exit(1)
"""


class Job(NamedTuple):
    """What the child is asked to do."""

    transcripts: list[tuple[Transcript, bool]]  # with: is the session over?
    entries: dict[int, int]  # that are known: entry -> session
    for_synthesis: bool
    batch: int  # events, and then up to the end of the turn


class Part(NamedTuple):
    """Some events of a session, in their order."""

    number: int  # of its transcript in the job
    events: list[tuple[Told, Trace | None, tuple[str, str, str] | None]]
    is_last: bool
    is_whole: bool  # False: not all of it could be read
    read: int  # bytes, since the part before
    unreadable: dict[str, int]  # lines, by file; with the last part


@dataclass(slots=True)
class Done:
    sessions: list[str] = field(default_factory=list)  # of which something was new
    known: int = 0  # of which nothing was
    events: int = 0  # new
    running: int = 0  # that go on, and are not ended
    unreadable: Counter[str] = field(default_factory=Counter)  # lines, by file
    odd: int = 0  # events that could not be stored


@dataclass(slots=True)
class _Session:
    """What is known of a session while its parts come."""

    transcript: Transcript
    is_over: bool
    known_prompts: set[int] = field(default_factory=set)
    entries: list[tuple[int, int]] = field(default_factory=list)
    new: int = 0
    last: int = 0
    was_begun: bool = False  # by a run that did not come to its end


def is_running(db: Connection, transcript: Transcript, now: int) -> bool:
    """Does the session go on? Then its live capture ends it, if there is one that keeps up."""
    session = sessions.by_ids(db, [transcript.session_id]).get(transcript.session_id)
    is_behind = session is None or transcript.last > session.last_event_at + SAME_MS
    if is_behind or session is None or transcripts.is_begun(db, transcript.session_id):
        return now - transcript.last < RUNNING_MS  # by what is in it: a copy of the file is newer
    return session.status == "active" and now - session.last_event_at < sessions.SILENT_MS


def backfill(
    db: Connection,
    several: Sequence[Transcript],
    *,
    now: int,
    with_model: bool = False,
    observe: Callable[[str], None] = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> Done:
    """Store what these tell. `observe` is told the id of each session that is over, in the transaction that
    stores its last event; `progress` how many bytes were read since the last time."""
    over = [not is_running(db, transcript, now) for transcript in several]
    job = Job(list(zip(several, over, strict=True)), dict(transcripts.entries(db)), with_model, BATCH_EVENTS)
    reading: dict[int, _Session] = {}
    done = Done()
    waiting: list[Part] = []
    places = Places()
    for part in _parts(job):
        if part.number not in reading:
            session = _Session(*job.transcripts[part.number])
            session.was_begun = transcripts.is_begun(db, session.transcript.session_id)
            reading[part.number] = session
        waiting.append(part)
        if sum(len(one.events) for one in waiting) >= BATCH_EVENTS:
            _store(db, waiting, reading, places, done, now, observe)
            waiting = []
        progress(part.read)
    _store(db, waiting, reading, places, done, now, observe)
    return done


def _store(
    db: Connection,
    waiting: Sequence[Part],
    reading: dict[int, _Session],
    places: Places,
    done: Done,
    now: int,
    observe: Callable[[str], None],
) -> None:
    if not waiting:
        return
    batches = [(part, _prepared(part, reading[part.number], places)) for part in waiting]
    with transaction(db):
        for part, batch in batches:
            session = reading[part.number]
            new, _, odd = remember(db, batch)
            session.new += len(new)
            done.events += len(new)
            done.odd += len(odd)
            for prepared, reason in odd:
                log.write("warning", f"backfill: {prepared.event.key}: {reason}")
            if part.is_last and part.is_whole:
                _finish(db, session, now, observe)
            elif new and session.is_over:
                files = [file.path for file in session.transcript.files]
                transcripts.begin(db, session.transcript.session_id, files)
    for part, _ in batches:
        if part.is_last:
            session = reading.pop(part.number)
            done.sessions += [session.transcript.session_id] if session.new else []
            done.known += not session.new
            done.running += not session.is_over
            done.unreadable.update(part.unreadable)


def _prepared(part: Part, session: _Session, places: Places) -> list[Prepared]:
    found = []
    of_session = number_of(session.transcript.session_id)
    for one, its_trace, item in part.events:
        place = places.of(session.transcript.cwd, one.event.cwd, one.branch)
        past = Past(one.asked_at, one.attended, one.has_hooks_id, session.known_prompts)
        found.append(Prepared(one.event, place, its_trace, item, past))
        session.entries.append((one.entry, of_session))
        session.last = max(session.last, one.event.at)
    return found


def _finish(db: Connection, session: _Session, now: int, observe: Callable[[str], None]) -> None:
    """The session was read to its end, and where it is over, so is it in the store."""
    session_id = session.transcript.session_id
    if session.is_over:
        if session.new or session.was_begun:
            end = max(session.last, session.transcript.last)
            sessions.end(db, session_id, end)
            turns.close(db, session_id)
            observe(session_id)
            life.promote(db, session_id, end)
        files = [(file.path, file.size, file.modified_ns) for file in session.transcript.files]
        transcripts.note(db, session_id, files, session.entries, now)


class Places:
    """Which project sessions of the past belong to. Where its folder is gone, or on another machine, all of a
    session belongs to the folder in which it was started."""

    def __init__(self) -> None:
        self._known: dict[str, paths.Place | None] = {}

    def of(self, launched: str, cwd: str, branch: str | None = None) -> paths.Place:
        place = self._at(cwd) or self._at(launched) or self._at(launched.partition(WORKTREES)[0])
        if place is None:
            top = paths.text(os.path.normpath(launched))
            place = paths.Place(top, os.path.basename(top) or top, top, None, None)
        then = copy(place)
        then.branch, then.head = branch, None  # which commit it was, nobody says
        return then

    def _at(self, folder: str) -> paths.Place | None:
        if folder not in self._known:
            self._known[folder] = paths.place(folder) if os.path.isdir(folder) else None
        return self._known[folder]


# --- the child ----------------------------------------------------------------------------------------------


def _parts(job: Job) -> Iterator[Part]:
    if not job.transcripts:
        return
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", CODE]
    with subprocess.Popen(
        [*command, *filter(os.path.isabs, sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
    ) as child:
        if child.stdin is None or child.stdout is None:  # there are none only where none are asked for
            return
        try:
            pickle.dump(job, child.stdin, pickle.HIGHEST_PROTOCOL)
            child.stdin.close()
            job.entries.clear()  # the child has them now, and they may be many
            last = -1
            while last < len(job.transcripts) - 1:
                part: Part = pickle.load(child.stdout)  # noqa: S301  it is our own process
                last = part.number if part.is_last else last
                yield part
        except (EOFError, pickle.UnpicklingError, BrokenPipeError) as error:
            raise StoreError(
                "the process that reads transcripts ended early; the log may say why. What is stored stays,"
                " and `backstory backfill` goes on with the rest"
            ) from error
        finally:
            child.kill()  # where it was not done, nobody would read what it says


def main() -> None:
    """The child: a job on its input, parts on its output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us decides
    job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301  it is our own process
    for number in range(len(job.transcripts)):
        _tell(job, number, sys.stdout.buffer)


def _tell(job: Job, number: int, out: IO[bytes]) -> None:
    transcript, is_over = job.transcripts[number]
    entries, of_session = job.entries, number_of(transcript.session_id)
    events: list[tuple[Told, Trace | None, tuple[str, str, str] | None]] = []
    unreadable: Counter[str] = Counter()
    read = 0

    def is_copy(entry: int) -> bool:
        return entries.get(entry, of_session) != of_session

    def count(size: int) -> None:
        nonlocal read
        read += size

    def send(*, is_last: bool, is_whole: bool = True) -> None:
        nonlocal read
        lines = dict(unreadable) if is_last else {}
        pickle.dump(Part(number, events, is_last, is_whole, read, lines), out, pickle.HIGHEST_PROTOCOL)
        out.flush()
        events.clear()
        read = 0

    made: list[int] = []
    is_whole = True
    try:
        for one in told(
            transcript,
            is_copy,
            is_over=is_over,
            for_synthesis=job.for_synthesis,
            unreadable=unreadable,
            progress=count,
        ):
            item = item_of(one.event) if job.for_synthesis else None
            events.append((one, trace(one.event.use), item))
            made.append(one.entry)
            if len(events) >= job.batch and (one.event.kind == TURN_END or len(events) >= MOST_EVENTS):
                send(is_last=False)
    except Exception as error:  # noqa: BLE001  it was removed, or is odd; the others can be read
        log.write("warning", f"backfill: {transcript.files[0].path}: {type(error).__name__}: {error}")
        unreadable[transcript.files[0].path] += 1
        is_whole = False
    for entry in made:
        entries.setdefault(entry, of_session)
    send(is_last=True, is_whole=is_whole)
