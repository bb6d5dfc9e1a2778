"""What a session is told at its start: the last sessions, what stands in the project, and after a compaction
the session's own thread.

The same store and the same files make the same bytes at any time, or the model's prompt cache would be of no
use: nothing here asks for the time. Memories are weighed as of the newest of them, and dates are absolute.
Every line is one memory's and ends where it ends, whatever is in it; all of it is fenced as data.

The user waits for this, so it loads nothing that a drain has not loaded already.
"""

from __future__ import annotations

import os
import time

from backstory import paths
from backstory.blob import blob_id
from backstory.memory import salience
from backstory.memory.salience import DAY_MS
from backstory.safety import fence
from backstory.store import sessions, standing
from backstory.store.file.connection import unhurried
from backstory.store.projects import GLOBAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from backstory.store.file.connection import Connection
    from backstory.store.standing import Content, Outcome, Standing

SOURCE = "backstory, at the start of the session"
INTRODUCTION = "What is remembered of this project. memory_search with an id shows a memory whole."
GOING_ON = ("compact", "resume")  # the session has a thread of its own already

LONGEST = 8_999  # characters; the client replaces what is longer than about 10,000 by the name of a file
WIDEST, NARROWEST = 200, 80  # characters of a line; twice as many where all fits
LONGEST_WORD = 24  # a cut goes back to the last space, but not further
SESSIONS = 10
STEPS_OF = 3  # sessions whose next steps may still be open
DONE = 0.6  # a step is done where a later session speaks of so many of its words
LAST_PROMPTS = 3
FILES = 12  # that this session edited
OBSERVED = 10  # memories that this session made

RECENT, RECENT_DAYS = 0.5, 30  # so much more for the newest; after so many days, half as much more
ON_BRANCH = 1.3  # what was learned on the branch that is checked out now
CHANGED = 1.2  # what is about files that changed since

STATS = 100  # files that are looked at; they may lie on a slow disk
STATS_OF = 3  # of one memory
READ = 2_000_000  # bytes of them that are read


class Topic:
    """Kinds of memories that stand together, and what they are worth beside others."""

    __slots__ = ("considered", "heading", "kinds", "share", "weight")

    def __init__(self, heading: str, kinds: Sequence[str], share: float, weight: float, considered: int):
        self.heading = heading
        self.kinds = kinds
        self.share = share  # of the room, where all sections have something to say
        self.weight = weight
        self.considered = considered  # so many of the best are read; at most as many are shown


THREAD, STEPS, LAST = 0.4, 0.08, 0.3  # the other sections' shares
TOPICS = (
    Topic("Preferences", ("preference",), 0.15, 1.2, 12),
    Topic("Decisions", ("decision",), 0.15, 1.2, 12),
    Topic("Gotchas", ("discovery", "bugfix"), 0.15, 1.0, 12),
    Topic("Notes", ("note",), 0.12, 1.0, 10),
    Topic("Built and reworked", ("feature", "refactor"), 0.05, 0.6, 6),
)


class Brief:
    __slots__ = ("ids", "text")

    def __init__(self, text: str, ids: tuple[str, ...]) -> None:
        self.text = text  # "": there is nothing to say
        self.ids = ids  # of the memories it shows


class Line:
    __slots__ = ("memory_id", "text", "worth")

    def __init__(self, text: str, memory_id: str | None, worth: float) -> None:
        self.text = text
        self.memory_id = memory_id
        self.worth = worth


class Section:
    __slots__ = ("heading", "lines", "share")

    def __init__(self, heading: str, share: float, lines: list[Line]) -> None:
        self.heading = heading
        self.share = share
        self.lines = lines  # the best first


def brief(db: Connection, cwd: str, session_id: str, source: str, tokens: float) -> Brief:
    room = room_of(tokens)
    if room <= 0:
        return Brief("", ())
    width = width_of(room)
    place = paths.place(cwd)
    look = _Look((paths.checkout(cwd), place.root))
    sections = _read(db, place, look, session_id, source, width)
    if all_fit(sections, room):  # a young project has few things to tell, and room to tell them whole
        wide = _read(db, place, look, session_id, source, 2 * width)
        sections = wide if all_fit(wide, room) else sections
    return render(sections, room)


def note(db: Connection, session_id: str, ids: Sequence[str], now: int) -> None:
    """The session has seen these memories. Nobody asked for them, so they are no more salient for it."""
    if ids:
        unhurried(db)
        standing.note(db, session_id, ids, now)


# --- room: how much fits ------------------------------------------------------------------------------------


def room_of(tokens: float) -> int:
    """Four characters of English are about a token."""
    return int(min(tokens * 4, LONGEST))


def room_for(text: str) -> int:
    """Signs beyond ASCII take a token or two each; counted so, a text never has more characters than room."""
    if text.isascii():
        return len(text)
    plain = sum(sign < "\x80" for sign in text)
    return 2 * len(text.encode("utf-8", "replace")) - plain


def width_of(room: int) -> int:
    """A small brief has shorter lines, so that it says more than one thing."""
    return max(NARROWEST, min(WIDEST, room // 20))


def cut(text: str, width: int) -> str:
    if room_for(text) <= width:
        return text
    kept, used = "", 3
    if text.isascii():
        kept = text[: max(0, width - 3)]
    else:
        for at, sign in enumerate(text):
            used += room_for(sign)
            if used > width:
                kept = text[:at]
                break
    word = kept.rfind(" ", max(0, len(kept) - LONGEST_WORD))
    return (kept[:word] if word > 0 else kept).rstrip(" .,;:") + "..."


def all_fit(sections: Iterable[Section], room: int) -> bool:
    needed = room_for(fence.fence(INTRODUCTION, SOURCE))
    for section in sections:
        needed += sum(room_for(line.text) + 3 for line in section.lines)
        needed += (room_for(section.heading) + 3) * bool(section.lines)
    return needed <= room


def render(sections: Iterable[Section], room: int) -> Brief:
    """As much as fits. Every section first gets its share, or at least a line; what they leave goes to the
    best of the rest."""
    shown = [section for section in sections if section.lines]
    left = room - room_for(fence.fence(INTRODUCTION, SOURCE))
    whole, shares = left, sum(section.share for section in shown)
    taken: dict[int, list[int]] = {number: [] for number in range(len(shown))}

    def take(number: int, at: int, limit: float) -> int:
        """The room that a line takes, with its heading where it is the first; 0 where it does not fit."""
        needed = room_for(shown[number].lines[at].text) + 3  # its dash and the end of the line before
        if not taken[number]:
            needed += room_for(shown[number].heading) + 3  # an empty line, and the colon
        if needed > limit:
            return 0
        taken[number].append(at)
        return needed

    for number, section in enumerate(shown):
        quota = whole * section.share / shares
        for at in range(len(section.lines)):
            used = take(number, at, min(quota, left))
            if not used:
                break  # a better one is not left out for a shorter one
            quota -= used
            left -= used
    for number, lines_taken in taken.items():
        if not lines_taken:
            left -= take(number, 0, left)
    waiting = [
        (-line.worth, number, at)
        for number, section in enumerate(shown)
        for at, line in enumerate(section.lines)
        if at not in taken[number]
    ]
    for _, number, at in sorted(waiting):
        left -= take(number, at, left)

    body = [INTRODUCTION]
    ids: dict[str, None] = {}
    for number, section in enumerate(shown):
        lines = [section.lines[at] for at in sorted(taken[number])]
        if lines:
            body += ["", section.heading + ":", *(f"- {line.text}" for line in lines)]
            ids.update((line.memory_id, None) for line in lines if line.memory_id)
    if len(body) == 1:
        return Brief("", ())
    return Brief(fence.fence("\n".join(body), SOURCE), tuple(ids))


# --- lines: what a memory says in one -----------------------------------------------------------------------


def plain(text: str | None) -> str:
    """One line of visible signs in which nothing opens a tag: not ours, not the client's."""
    if not text:
        return ""
    if "\x1b" in text:
        text = _without_escapes(text)
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() else " " * sign.isspace() for sign in text)
    return " ".join(text.split()).replace("<", "&lt;")


def _without_escapes(text: str) -> str:
    """What a terminal takes for colours, titles and links goes as a whole, not only its first sign."""
    import re

    return re.sub(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|.)", "", text)


def day(at: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(min(max(at, 0), 253_402_300_799_000) / 1000))


def memory_line(kind: str, memory: Content, since: str, width: int) -> str:
    """`[mem_...] decision: title - text (src/auth.py changed since)`"""
    title, text = plain(memory.title), plain(memory.content)
    if title and not text.startswith(title):
        text = f"{title} - {text}" if text else title
    after = f" ({cut(since, width // 2)})" if since else ""
    return cut(f"[{memory.id}] {kind}: {text}", width - room_for(after)) + after


def session_line(session: Outcome, branch: str | None, width: int) -> Line:
    """`2026-03-01 [mem_...] (on main) what was asked for - done: ... - learned: ...`"""
    memory_id = session.summary_id or session.prompt_id
    elsewhere = session.branch and session.branch != branch
    where = f" (on {cut(plain(session.branch), 40)})" if elsewhere else ""
    line = f"{day(session.started_at)} [{memory_id}]{where}"
    said = [plain(session.request or session.prompt)]
    parts = (("done", session.completed), ("learned", session.learned))
    said += [f"{name}: {told}" for name, text in parts if (told := plain(text))]
    said = [told for told in said if told]
    for left, told in zip(range(len(said), 0, -1), said, strict=True):
        # The earlier ones leave the later ones room; what they do not need is the others'.
        part = (width - room_for(line)) // left - 3
        line += (" " if left == len(said) else " - ") + cut(told, part)
    return Line(cut(line, width) if said else "", memory_id, 0)


def telling(last: Sequence[Outcome]) -> Sequence[Outcome]:
    """Sessions that came to something, or of which nobody has said yet what they came to. Mere talk is told
    where there is nothing else."""
    found = [one for one in last if not one.summary_id or one.completed or one.learned or one.next_steps]
    return found or last


def open_steps(last: Sequence[Outcome], done_since: str, width: int) -> list[Line]:
    """The next steps of the last sessions, newest first. What a later session was about is no longer open,
    or stands there again."""
    lines: list[Line] = []
    later = _words(done_since)
    for session in last:
        steps = [_step(plain(step)) for step in (session.next_steps or "").splitlines()]
        left = [step for step in steps if step and not _is_among(_words(step), later)]
        if left:
            told = f"{day(session.started_at)} [{session.summary_id}] {'; '.join(left)}"
            lines.append(Line(cut(told, width), session.summary_id, 0))
        if len(lines) == STEPS_OF:
            break
        for text in (session.request, session.prompt, session.completed, session.next_steps):
            later |= _words(text or "")
    return lines


def _step(text: str) -> str:
    """Without the bullet or the number before it."""
    mark, _, rest = text.partition(" ")
    is_mark = mark in ("-", "*", "•") or (mark[:-1].isdigit() and mark[-1] in ".)")
    return rest if is_mark else text


def _words(text: str) -> set[str]:
    """Those that tell; `the` and `then` are everywhere."""
    spaced = "".join(sign if sign.isalnum() else " " for sign in text.lower())
    return {word for word in spaced.split() if len(word) > 3}


def _is_among(step: set[str], later: set[str]) -> bool:
    return bool(step) and len(step & later) >= DONE * len(step)


# --- ranking ------------------------------------------------------------------------------------------------


def ranked(memories: Iterable[Standing], branch: str | None) -> list[tuple[float, Standing]]:
    """(worth, memory), the best first: by salience, recency and branch, as of the newest of them."""
    found = list(memories)
    newest = max((memory.created_at for memory in found), default=0)
    weighed = [(worth(memory, newest, branch), memory) for memory in found]
    return sorted(weighed, key=lambda one: (-one[0], one[1].id))


def worth(memory: Standing, newest: int, branch: str | None) -> float:
    days = max(0, newest - memory.created_at) / DAY_MS
    recency: float = 1 + RECENT * 0.5 ** (days / RECENT_DAYS)
    on_branch = branch is not None and memory.branch == branch
    decayed = salience.decayed(
        memory.salience, memory.sector, memory.importance, memory.last_accessed, newest
    )
    return salience.present(decayed, memory.access_count) * recency * (ON_BRANCH if on_branch else 1.0)


# --- reading ------------------------------------------------------------------------------------------------


def _read(
    db: Connection, place: paths.Place, look: _Look, session_id: str, source: str, width: int
) -> list[Section]:
    project_id = sessions.project_of(db, session_id) or standing.project_at(db, place.identity)
    memories = [
        memory
        for owner in dict.fromkeys((project_id, GLOBAL))
        for topic in TOPICS
        for kind in topic.kinds
        if owner is not None
        for memory in standing.newest(db, owner, kind)
    ]
    sections, so_far = [], None
    if source in GOING_ON:
        so_far = standing.summary_of(db, session_id)
        own = [memory for memory in memories if memory.session_id == session_id]
        memories = [memory for memory in memories if memory.session_id != session_id]
        lines = _thread(db, session_id, so_far, own, look.roots, width)
        sections.append(Section("This session so far", THREAD, lines))
    last = standing.last_sessions(db, project_id, session_id, SESSIONS) if project_id else []
    steps = open_steps(last, (so_far.completed or "") if so_far else "", width)
    sections.append(Section("Open next steps", STEPS, steps))
    told = [session_line(session, place.branch, width) for session in telling(last)]
    sections.append(Section("Last sessions", LAST, [line for line in told if line.text]))
    above = 1_000.0  # these go before all that stands
    for section in sections:
        for line in section.lines:
            line.worth = above = above - 1
    return sections + _topics(db, ranked(memories, place.branch), look, width)


def _topics(db: Connection, every: list[tuple[float, Standing]], look: _Look, width: int) -> list[Section]:
    """What stands. Only those that are likely to be shown are read, and only their files looked at."""
    best = [[one for one in every if one[1].kind in topic.kinds][: topic.considered] for topic in TOPICS]
    told = standing.told(db, [memory.id for found in best for _, memory in found])
    sections = []
    for topic, found in zip(TOPICS, best, strict=True):
        lines = []
        for value, memory in found:
            if content := told.get(memory.id):  # else it was erased a moment ago
                since = look.since(content)
                text = memory_line(memory.kind, content, since, width)
                lines.append(Line(text, memory.id, value * topic.weight * (CHANGED if since else 1.0)))
        lines.sort(key=lambda line: (-line.worth, line.memory_id))
        sections.append(Section(topic.heading, topic.share, lines))
    return sections


def _thread(
    db: Connection,
    session_id: str,
    so_far: Outcome | None,
    own: list[Standing],
    roots: tuple[str, ...],
    width: int,
) -> list[Line]:
    """What this session is about, from prompts and tool uses alone where nobody has summed it up yet."""
    lines = []
    for number, (memory_id, prompt) in enumerate(standing.prompts(db, session_id, LAST_PROMPTS)):
        said = f"{'then ' if number else ''}asked [{memory_id}]: {plain(prompt)}"
        lines.append(Line(cut(said, width * 3 // 2), memory_id, 0))
    files = standing.edited(db, session_id, 10 * FILES)
    if so_far:
        files += so_far.files_edited
    names = list(dict.fromkeys(plain(_short(file, roots)) for file in files))
    if names:
        more = f" and {len(names) - FILES} more" if len(names) > FILES else ""
        lines.append(Line(cut(f"edited: {', '.join(names[:FILES])}{more}", width), None, 0))
    if so_far:
        parts = (("done", so_far.completed), ("learned", so_far.learned), ("next", so_far.next_steps))
        for name, part in parts:
            if text := plain(part):
                told = f"{name} [{so_far.summary_id}]: {text}"
                lines.append(Line(cut(told, width), so_far.summary_id, 0))
    latest = sorted(own, key=lambda memory: (-memory.created_at, memory.id))[:OBSERVED]
    contents = standing.told(db, [memory.id for memory in latest])
    for memory in latest:
        if content := contents.get(memory.id):
            lines.append(Line(memory_line(memory.kind, content, "", width), memory.id, 0))
    return lines


class _Look:
    """Looks whether files are still as they were when a memory was made, as recall/fresh.py does, but at no
    more of them than one may wait for, and only inside the work tree."""

    __slots__ = ("_known", "_read", "_since", "_stats", "roots")

    def __init__(self, roots: tuple[str, ...]) -> None:
        self.roots = roots
        self._since: dict[str, str] = {}  # by memory: what was looked at is not looked at twice
        self._stats = STATS
        self._read = READ
        self._known: dict[str, str | None] = {}

    def since(self, memory: Content) -> str:
        """`src/auth.py changed since; src/old.py is gone`, or nothing."""
        if memory.id not in self._since:
            self._since[memory.id] = self._look_at(memory)
        return self._since[memory.id]

    def _look_at(self, memory: Content) -> str:
        found = []
        for path, known in zip(memory.files[:STATS_OF], memory.hashes, strict=False):
            if known is None:
                continue  # it was not there then, or nothing to compare
            full = os.path.normpath(os.path.join(self.roots[0], path))
            if _short(full, self.roots) != full and (what := self._changed(full, known, memory.created_at)):
                found.append(f"{plain(_short(full, self.roots))} {what}")
        return "; ".join(found)

    def _changed(self, path: str, known: str, at: int) -> str:
        if self._stats <= 0:
            return ""
        self._stats -= 1
        try:
            about = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return "" if os.path.islink(path) else "is gone"
        except (OSError, ValueError):  # ValueError: a path with a NUL in it
            return ""
        if about.st_mtime_ns // 1_000_000 <= at:
            return ""  # written before; nobody need read it
        if path not in self._known:
            if about.st_size > self._read:
                return ""
            self._read -= about.st_size
            self._known[path] = blob_id(path)
        now = self._known[path]
        return "changed since" if now is not None and now != known else ""


def _short(path: str, roots: Iterable[str]) -> str:
    for root in roots:
        if path.startswith(root + os.sep):
            return os.path.relpath(path, root)
    return path
