"""The transcripts that a client keeps: where they lie, whose they are, and the events in them.

Nothing here is held as a whole: a transcript may have hundreds of megabytes.
"""

from __future__ import annotations

import heapq
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from backstory.capture import ignore
from backstory.capture.event import past_event
from backstory.clients import claude_transcript
from backstory.clients.canonical import Event
from backstory.clients.claude_transcript import Entry, Payload, Reader
from backstory.errors import BadPayload

LONGEST_LINE = 32_000_000  # bytes; what is longer is no entry that a memory could come of
TAIL = 65_536
DAY = 24 * 3600  # seconds
_WHEN = re.compile(rb'"timestamp":\s?"([^"]{10,40})"')
_UUID = re.compile(rb'"uuid":\s?"([^"]{8,64})"')


@dataclass(frozen=True, slots=True)
class File:
    path: str
    size: int
    modified_ns: int
    agent: str = ""  # the type of the subagent whose file it is


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session's, with the files of its subagents."""

    session_id: str
    cwd: str  # where the session was started
    first: int  # when the first thing in it happened, in milliseconds
    last: int
    beginning: str  # the uuid of its first entry, which a fork shares
    files: tuple[File, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class Told:
    """An event, and what its transcript says of it besides."""

    event: Event
    entry: int  # its number, as claude_transcript.number_of gives it
    branch: str | None
    asked_at: int
    attended: bool | None
    has_hooks_id: bool


def files(top: str) -> list[File]:
    """Every transcript below a folder, also those of subagents; nothing in them is read."""
    found = []
    for inside, folders, names in os.walk(top):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(inside, name)
            if name.endswith(".jsonl") and os.path.isfile(path):  # a pipe would keep us waiting
                # It was removed this moment, or its name cannot be stored.
                with suppress(OSError, UnicodeEncodeError):
                    path.encode()
                    about = os.stat(path)
                    found.append(File(path, about.st_size, about.st_mtime_ns))
    return found


def found(top: str) -> tuple[list[Transcript], list[File]]:
    """The sessions below a folder, in the order in which they are read, and the files without one, or that
    may not be read."""
    sessions: dict[str, Transcript] = {}
    agents: list[tuple[File, Transcript]] = []
    empty = []
    for file in files(top):
        try:
            transcript = look_into(file)
        except OSError:
            transcript = None
        if transcript is None:
            empty.append(file)
        elif claude_transcript.is_of_subagent(file.path):
            agents.append((replace(file, agent=_agent_type(file.path)), transcript))
        else:
            sessions[file.path] = transcript
    for file, transcript in agents:
        main = claude_transcript.of_session(file.path, transcript.session_id)
        known = sessions.get(main) or replace(transcript, files=())
        last = max(known.last, transcript.last)
        sessions[main if main in sessions else file.path] = replace(
            known, files=(*known.files, file), last=last
        )
    return _in_order(sessions.values()), empty


def without_older_copies(several: Sequence[Transcript]) -> list[Transcript]:
    """Of copies of one transcript that were made while it grew, the last. In the others a turn may end where
    it went on."""
    newest: dict[tuple[str, str], Transcript] = {}
    for one in several:
        name = (one.session_id, one.beginning)
        if name not in newest or (one.last, one.size) > (newest[name].last, newest[name].size):
            newest[name] = one
    return [one for one in several if newest[one.session_id, one.beginning] is one]


def look_into(file: File) -> Transcript | None:
    """Whose transcript it is, by its beginning and its end; None where it holds no session."""
    for line in _lines(file.path):
        try:
            entry = _entry(line) if line else None
        except (ValueError, RecursionError):
            continue
        if entry:
            cwd = claude_transcript.posix(entry["cwd"])
            last = max(_last(file), entry["at"])
            beginning = str(entry.get("uuid") or "")
            return Transcript(entry["sessionId"], cwd, entry["at"], last, beginning, (file,))
    return None


def _entry(line: bytes) -> Entry | None:
    entry = claude_transcript.entry_of(line)
    if entry and entry["at"] > _latest():
        raise ValueError("of the future")
    return entry


def _latest() -> float:
    """A clock may be wrong, but what happened a day from now did not happen."""
    return (time.time() + DAY) * 1000


def _last(file: File) -> int:
    with open(file.path, "rb") as opened:
        opened.seek(max(0, file.size - TAIL))
        times = _WHEN.findall(opened.read(TAIL))
    return max((at for at in map(_time, times) if at <= _latest()), default=0)


def _time(stamp: bytes) -> int:
    try:
        return int(datetime.fromisoformat(stamp.decode()).timestamp() * 1000)
    except ValueError:
        return 0


def _agent_type(path: str) -> str:
    about = claude_transcript.about_subagent(path)
    if not os.path.isfile(about):  # a pipe would keep us waiting
        return ""
    try:
        with open(about, "rb") as file:
            return claude_transcript.subagent_type(json.loads(file.read(TAIL)))
    except (OSError, ValueError, RecursionError):
        return ""


def _in_order(several: Iterable[Transcript]) -> list[Transcript]:
    """By their first time; of a fork and its parent, which begin alike, the one that first went its own way
    is the parent."""
    families: dict[str, list[Transcript]] = {}
    for one in several:
        families.setdefault(one.beginning, []).append(one)
    own_way: dict[str, int] = {}
    for beginning, family in families.items():
        if beginning and len({one.session_id for one in family}) > 1:
            own_way |= _own_ways(family)
    return sorted(several, key=lambda one: (one.first, own_way.get(one.files[0].path, 0), one.files[0].path))


def _own_ways(family: list[Transcript]) -> dict[str, int]:
    """When each of these has its first entry that no other one has; 0 where it has none."""
    known: Counter[bytes] = Counter()
    entries: dict[str, list[tuple[int, bytes]]] = {}
    for one in family:
        path = one.files[0].path
        entries[path] = [
            (_time(when[1]), uuid[1])
            for line in _lines(path)
            if b'"cwd"' in line and (when := _WHEN.search(line)) and (uuid := _UUID.search(line))
        ]
        known.update({uuid for _, uuid in entries[path]})
    return {
        path: min((at for at, uuid in several if known[uuid] == 1), default=0)
        for path, several in entries.items()
    }


def told(
    transcript: Transcript,
    is_copy: Callable[[int], bool],
    *,
    is_over: bool,
    for_synthesis: bool,
    unreadable: Counter[str],
    progress: Callable[[int], None] = lambda _: None,
) -> Iterator[Told]:
    """The events of a session. `is_copy`: is the entry of that number another session's? Lines that cannot be
    read are counted, by their file; `progress` is told how many bytes were read."""
    reader = Reader(transcript.session_id, is_copy)
    ignored = ignore.configured(os.environ)

    def events(path: str, payloads: Iterable[Payload]) -> Iterator[Told]:
        for payload in payloads:
            name = claude_transcript.key_of(payload)
            try:
                event = past_event(
                    payload, name=name, at=payload["at"], for_synthesis=for_synthesis, ignored=ignored
                )
            except (BadPayload, RecursionError):
                unreadable[path] += 1
                continue
            yield Told(
                event,
                claude_transcript.number_of(payload["uuid"]),
                payload["branch"],
                payload["asked_at"],
                payload.get("attended"),
                bool(payload.get("is_hooks_id")),
            )

    streams = [_entries(number, file, unreadable, progress) for number, file in enumerate(transcript.files)]
    for _, number, entry in heapq.merge(*streams, key=lambda one: one[:2]):
        file = transcript.files[number]
        yield from events(file.path, reader.take(entry, file.agent))
    yield from events(transcript.files[0].path, reader.end(is_over=is_over))


def _entries(
    number: int, file: File, unreadable: Counter[str], progress: Callable[[int], None]
) -> Iterator[tuple[int, int, Entry]]:
    """(time, number of the file, entry): in their order, so a time is never before the one above."""
    latest = 0
    for line in _lines(file.path, progress):
        try:
            if not line:
                raise ValueError("too long")
            entry = _entry(line)
        except (ValueError, RecursionError):
            unreadable[file.path] += 1
            continue
        if entry is not None:
            latest = max(latest, entry["at"])
            yield latest, number, entry


def _lines(path: str, progress: Callable[[int], None] = lambda _: None) -> Iterator[bytes]:
    """The lines of a file; an empty one stands for one that is too long."""
    with open(path, "rb") as file:
        while line := file.readline(LONGEST_LINE):
            size = len(line)
            if size == LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    size += len(rest)
                line = b""
            progress(size)
            yield line
