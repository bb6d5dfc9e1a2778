"""What a batch of events leaves in the store, be they from the spool or from a client's transcripts."""

from __future__ import annotations

import os

from backstory.clients.canonical import (
    NOTIFICATION,
    PROMPT,
    SESSION_END,
    SESSION_START,
    TOOL_FAILURE,
    TOOL_USE,
    TURN_END,
    WEB,
)
from backstory.ids import derived
from backstory.intake import turn as turns_of_events
from backstory.intake.turn import BEGINNING
from backstory.memory.turn import INTERRUPTED, OPEN, is_own_command
from backstory.store import events, memories, projects, queue, sessions, turns
from backstory.store.file.connection import Connection, is_fault_of_the_store, savepoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory import paths
    from backstory.clients.canonical import Event
    from backstory.intake.trace import Trace
    from backstory.memory.turn import Turn

OF_A_TURN = (PROMPT, TOOL_USE, TOOL_FAILURE, TURN_END)  # a compaction is of the whole session
SAME_MS = 10_000  # a hook runs so long after its event at most, and a turn is as late


class Prepared:
    """An event with all that can be known of it without the write lock, which others wait for."""

    __slots__ = ("changed", "event", "files", "hashes", "item", "name", "past", "place", "trace")

    def __init__(
        self,
        event: Event,
        place: paths.Place,
        trace: Trace | None,
        item: tuple[str, str, str] | None,
        past: Past | None = None,
    ) -> None:
        self.event = event
        self.place = place
        self.trace = trace
        self.item = item  # for the queue
        self.past = past
        files = trace.files if trace else []
        # Whoever reads this later may look from another folder.
        self.files = [os.path.normpath(os.path.join(event.cwd, file)) for file in files]
        self.hashes: list[str | None] = [None] * len(self.files)
        # Added by the drain:
        self.name = ""  # of its payload
        self.changed: list[tuple[str, str]] = []  # (root, path), for lists of dirty files


class Past:
    """What a transcript says of an event besides."""

    __slots__ = ("asked_at", "attended", "has_hooks_id", "known_prompts")

    def __init__(
        self, asked_at: int, attended: bool | None, has_hooks_id: bool, known_prompts: set[int]
    ) -> None:
        self.asked_at = asked_at  # when the prompt before it came
        self.attended = attended  # of a prompt: was a person there?
        self.has_hooks_id = has_hooks_id  # of a prompt: by its id it is known whether it was captured
        self.known_prompts = known_prompts  # which of the session's are told already


def remember(
    db: Connection, batch: list[Prepared]
) -> tuple[list[Prepared], list[Prepared], list[tuple[Prepared, str]]]:
    """In the caller's transaction: which events are new, which were known, and which could not be stored,
    with the reason."""
    new: list[Prepared] = []
    known: list[Prepared] = []
    odd: list[tuple[Prepared, str]] = []
    going_on = _Turns(db)
    for prepared in batch:
        try:
            with savepoint(db):
                is_new = _remember(db, prepared, going_on)
            (new if is_new else known).append(prepared)
        except Exception as error:  # one odd event must not hold up those behind it
            if is_fault_of_the_store(error):
                raise  # nothing of the batch is stored; it is taken again
            odd.append((prepared, f"could not be stored: {type(error).__name__}: {error}"))
    going_on.save()
    return new, known, odd


def _remember(db: Connection, prepared: Prepared, going_on: _Turns) -> bool:
    event, place, past = prepared.event, prepared.place, prepared.past
    if _is_stored(db, event, past):
        return False
    begins = event.kind in BEGINNING
    within = SAME_MS if begins and past and not past.has_hooks_id else 0
    if events.is_erased(db, event.session_id, event.at, begins=begins, within=within):
        return False
    project_id = known = sessions.project_of(db, event.session_id)
    if project_id is None:
        project_id = projects.ensure(db, place, event.at)
    if projects.is_paused(db, project_id, event.at):
        return False  # only that it was there is noted, or a later reading of the transcript would store it
    if known is None:
        sessions.start(db, event.session_id, project_id, event.cwd, place, event.at)
    if event.kind in (PROMPT, NOTIFICATION, SESSION_START):
        sessions.reopen(db, event.session_id, event.at)
    sessions.touch(db, event.session_id, event.at)
    if past and past.attended is not None:
        sessions.attend(db, event.session_id, past.attended)
    is_housekeeping = going_on.is_housekeeping(event)
    turn, has_it = (None, False) if is_housekeeping else going_on.turn_of(prepared)
    turn_id = turn.id if turn else None
    memory_id = _memory(db, prepared, project_id, turn_id, is_housekeeping)
    if prepared.item and not is_housekeeping:
        action = event.use.action if event.use else None
        queue.put(db, event.session_id, *prepared.item, event.at, memory_id, action, turn_id)
    if event.kind == SESSION_END:
        from backstory.store import life  # most drains end no session

        sessions.end(db, event.session_id, event.at)
        life.promote(db, event.session_id, event.at)
    if turn is not None and not has_it:
        going_on.add(turn, prepared)
    elif turn is not None:
        turns.forget_late(db, turn.id)
    return True


def _is_joined(db: Connection, event: Event) -> bool:
    """What is typed while the model works comes with the id of the prompt before it, and is no less new."""
    if not event.words_key or sessions.has_said(db, event.session_id, event.text):
        return False
    event.key = event.words_key
    return events.first_time(db, event.key, event.name, event.session_id, event.at)


def _is_stored(db: Connection, event: Event, past: Past | None) -> bool:
    """Whether it came before: under its own key, or of a transcript under that of its hook."""
    if past and event.kind in BEGINNING and not past.has_hooks_id and _was_said(db, event, past):
        return True
    if events.first_time(db, event.key, event.name, event.session_id, event.at):
        return False
    if past and past.has_hooks_id and event.kind == PROMPT:
        _was_said(db, event, past)  # its row stands for it, and not for the next one with its words
    return past is not None or event.kind != PROMPT or not _is_joined(db, event)


def _was_said(db: Connection, event: Event, past: Past) -> bool:
    """Whether a prompt without an id is one that its hook brought, under another key. Each of those stands
    for one: who says 'go on' twice has said it twice."""
    if event.kind == NOTIFICATION:
        turn = turns.latest(db, event.session_id, event.at + SAME_MS)
        return turn is not None and turns_of_events.reported(event) in turn.agents
    found = sessions.prompts_like(db, event.session_id, event.text, event.at, SAME_MS)
    if is_own_command(event.text):  # the words behind it may be in a note by now
        command = event.text.split()[0]
        found += sessions.prompts_like(db, event.session_id, command, event.at, SAME_MS)
    row = next((row for row in found if row not in past.known_prompts), None)
    if row is not None:
        past.known_prompts.add(row)
    return row is not None


def _memory(
    db: Connection, prepared: Prepared, project_id: str, turn_id: str | None, is_housekeeping: bool
) -> str | None:
    """What a prompt or a tool use leaves behind at once; turns gather the rest."""
    event = prepared.event
    if event.kind == PROMPT and event.text:
        if not prepared.past:
            sessions.keep_prompt(db, event.session_id, event.text, event.at, turn_id)
        elif not _was_said(db, event, prepared.past):  # a recovery may have found it, and lost its turn
            row = sessions.keep_prompt(db, event.session_id, event.text, event.at, turn_id)
            prepared.past.known_prompts.add(row)
    elif event.use and prepared.trace and not is_housekeeping:
        memory_id = derived("tool", event.session_id, event.key)
        if prepared.past and memories.row_of(db, memory_id) is not None:
            turns.give(db, memory_id, turn_id)  # a recovery found it, and may have lost its turn
            return memory_id
        return memories.add_trace(
            db,
            memory_id=memory_id,
            project_id=project_id,
            session_id=event.session_id,
            turn=turn_id,
            content=prepared.trace.content,
            files=prepared.files,
            hashes=prepared.hashes,
            importance=prepared.trace.importance,
            action=event.use.action,
            source="web" if event.use.action == WEB else "tool",
            now=event.at,
        )
    return None


class _Turns:
    """The turns that the events of a batch belong to: each is read once and written once, after what is of
    it: the references to it are looked at when the transaction ends."""

    __slots__ = ("_commands", "_db", "_latest", "_touched")

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._commands: dict[str, list[int]] = {}  # by session: when the user ran commands of ours
        self._latest: dict[str, Turn | None] = {}  # by session
        self._touched: dict[int, Turn] = {}

    def is_housekeeping(self, event: Event) -> bool:
        """Whether it is of a turn in which the user only ran commands of ours. Such a turn is not kept, so
        the time of the command tells: it came after the end of the turn before, and none began since."""
        if event.kind not in OF_A_TURN:
            return False
        session_id = event.session_id
        if session_id not in self._commands:
            commands = sessions.own_commands(self._db, session_id)
            self._commands[session_id] = [at for at, _ in commands]
        if event.kind == PROMPT:
            if not is_own_command(event.text):
                return False
            self._commands[session_id].append(event.at)
            turn = self._current(event)[0]
            return turn is None or turn.state != OPEN or _is_silent(turn, event)
        ran_at = max((at for at in self._commands[session_id] if at <= event.at), default=None)
        if ran_at is None:
            return False
        turn = self._current(event)[0]
        return turn is None or turn.ended_at < ran_at

    def _current(self, event: Event) -> tuple[Turn | None, bool]:
        """The turn that the session was in at the time of the event, and whether there is a later one."""
        session_id = event.session_id
        if session_id not in self._latest:
            self._latest[session_id] = turns.latest(self._db, session_id)
        turn = self._latest[session_id]
        is_late = turn is not None and event.at < turn.started_at
        return (self._at(session_id, event.at) if is_late else turn), is_late

    def turn_of(self, prepared: Prepared) -> tuple[Turn | None, bool]:
        """The turn that an event belongs to, and whether it has that already; of what it adds, see `add`."""
        event = prepared.event
        turn = self._current(event)[0]
        asked_at = prepared.past.asked_at if prepared.past and event.kind not in BEGINNING else 0
        if turn is not None and turn.ended_at < asked_at - SAME_MS:
            return None, False  # its prompt was captured, and the turn of that was erased since
        is_there = prepared.past is not None and self._is_there(turn, event)
        is_silent = turn is not None and turn.state == OPEN and _is_silent(turn, event)
        if turn is not None and is_silent and event.kind in BEGINNING and not is_there:
            turn.state = INTERRUPTED  # as turns.close_silent says, which may come too late to say so
            self._touched[id(turn)] = turn
        return turns_of_events.turn_of(turn, event, prepared.place), is_there

    def add(self, turn: Turn, prepared: Prepared) -> None:
        is_late = self._current(prepared.event)[1]
        turns_of_events.add(turn, prepared.event, prepared.place)
        self._touched[id(turn)] = turn
        if not is_late:
            self._latest[turn.session_id] = turn

    def _is_there(self, turn: Turn | None, event: Event) -> bool:
        """Whether a turn has the event, though the ledger does not, as after a recovery."""
        touched = {turn.id for turn in self._touched.values()}
        if event.kind in BEGINNING:
            begun = derived("turn", event.session_id, event.key)
            if begun not in touched and turns.by_ids(self._db, [begun]):
                return True
        return turn is not None and turn.id not in touched and event.at < turn.ended_at

    def _at(self, session_id: str, at: int) -> Turn | None:
        """The turn that a session was in at that time, be it stored or of this batch."""
        found = [turn for turn in self._touched.values() if turn.session_id == session_id]
        stored = turns.latest(self._db, session_id, at)
        if stored is not None and all(turn.row != stored.row for turn in found):
            found.append(stored)
        return max(
            (turn for turn in found if turn.started_at <= at), key=lambda turn: turn.started_at, default=None
        )

    def save(self) -> None:
        for turn in self._touched.values():
            project_id = sessions.project_of(self._db, turn.session_id)
            if project_id is not None and turn.says_something:
                turns.save(self._db, turn, project_id)
            else:
                turns.leave(self._db, turn)


def _is_silent(turn: Turn, event: Event) -> bool:
    return event.at - turn.ended_at > turns.SILENT_MS
