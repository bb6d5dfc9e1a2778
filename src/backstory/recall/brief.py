"""What a session is told at its start: where the last one left off, the sessions before, what is open, what
stands in the project; after a compaction the session's own thread.

The same store and the same files make the same bytes at any time, or the model's prompt cache would be of no
use: nothing here asks for the time. Memories are weighed as of the newest of them, and dates are absolute.
Every line is one memory's and ends where it ends, whatever is in it; a turn has a few, and those after the
first are indented. All of it is fenced as data.

The user waits for this, so it loads nothing that a drain has not loaded already.
"""

from __future__ import annotations

import os
import re
import time

from backstory import paths
from backstory.blob import blob_id
from backstory.memory import open_ends, salience
from backstory.memory import turn as turns_of
from backstory.memory.salience import DAY_MS
from backstory.safety import fence
from backstory.store import sessions, standing, turns
from backstory.store.file.connection import unhurried
from backstory.store.projects import GLOBAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from backstory.memory.turn import Turn
    from backstory.store.file.connection import Connection
    from backstory.store.standing import Content, Outcome, Standing

SOURCE = "backstory, at the start of the session"
INTRODUCTION = "What is remembered of this project. memory_search with an id shows a memory whole."
GOING_ON = ("compact", "resume")  # the session has a thread of its own already

LONGEST = 8_999  # characters; the client replaces what is longer than about 10,000 by the name of a file
TEXT = 1_500  # characters of a prompt or an answer that are looked at
WIDEST, NARROWEST = 200, 80  # characters of a line; twice as many where all fits
LONGEST_WORD = 24  # a cut goes back to the last space, but not further
SESSIONS = 10
SESSIONS_FIRST = 2  # go before what stands; the others where room is left
RULES = "local"  # the synthesizer that is no model
OPEN_OF = 5  # sessions that may have left something open
DONE = 0.7  # a step is done where a later turn speaks of so many of its words
TURNS = 30  # of a session that are read
LAST_TURNS = 2  # of the session before
OWN_TURNS = 3  # of the session that goes on
FILES = 12  # that were edited
COMMITS = 6
SHA = 10  # characters
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


# The other sections' shares.
THREAD, LEFT_OFF, LAST, OPEN = 0.4, 0.32, 0.1, 0.12
TOPICS = (
    Topic("Decisions", ("decision",), 0.12, 1.2, 12),
    Topic("Preferences", ("preference",), 0.12, 1.2, 12),
    Topic("Gotchas", ("discovery", "bugfix"), 0.12, 1.0, 12),
    Topic("Notes", ("note",), 0.1, 1.0, 10),
    Topic("Built and reworked", ("feature", "refactor"), 0.05, 0.6, 6),
)
LEFT_OFF_HERE = "Where the last session on this branch left off"
LEFT_OFF_LAST = "Where the last session left off"


class Brief:
    __slots__ = ("ids", "text")

    def __init__(self, text: str, ids: tuple[str, ...]) -> None:
        self.text = text  # "": there is nothing to say
        self.ids = ids  # of the memories it shows


class Line:
    __slots__ = ("memory_id", "text", "worth")

    def __init__(self, text: str, memory_id: str | None, worth: float) -> None:
        self.text = text  # of a turn: several lines
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
    found = _read(db, place, session_id, source)
    sections = found.sections(db, look, width)
    if all_fit(sections, room):  # a young project has few things to tell, and room to tell them whole
        wide = found.sections(db, look, 2 * width)
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


def answer_width(width: int) -> int:
    """Of an answer more is told than of anything else, where there is room."""
    return max(width, 4 * width - WIDEST)


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
    text = " ".join(text.split())
    if not text.isprintable():
        text = " ".join("".join(sign for sign in text if sign.isprintable()).split())
    return text.replace("<", "&lt;")


def _without_escapes(text: str) -> str:
    """What a terminal takes for colours, titles and links goes as a whole, not only its first sign."""
    return re.sub(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|.)", "", text)


def day(at: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(min(max(at, 0), 253_402_300_799_000) / 1000))


def memory_line(kind: str, memory: Content, since: str, width: int) -> str:
    """`[mem_...] decision: title - text (src/auth.py changed since)`"""
    title, text = plain(memory.title), plain(memory.content)
    if title and not text.lower().startswith(title.lower()):
        text = f"{title} - {text}" if text else title
    after = f" ({cut(since, width // 2)})" if since else ""
    return cut(f"[{memory.id}] {kind}: {text}", width - room_for(after)) + after


def turn_lines(turn: Turn, width: int, answer: int, so_far: bool = False) -> Line:
    """`2026-03-01 [mem_...] asked: ...`, and below it what was answered and what was done."""
    said = asked(turn, width * 3 // 4)
    lines = [f"{day(turn.started_at)} [{turn.id}] {f'asked: {said}' if said else 'went on unasked'}"]
    if turn.answer:
        lines.append(f"answered: {gist(turn.answer, answer)}")
    elif turn.state == turns_of.INTERRUPTED:
        lines.append("interrupted before an answer")
    elif turn.state == turns_of.OPEN and not so_far:
        lines.append("interrupted, or still under way")
    if turn.choices:
        chosen = [f"{plain(question)} {plain(choice)}" for question, choice in turn.choices]
        lines.append("the user chose: " + parts(chosen, width))
    if turn.failed and not turn.answer:
        lines.append("failed: " + parts([plain(f"{what}: {error}") for what, error in turn.failed], width))
    lines += done_lines(turn.commits, [] if turn.commits else turn.edited, width)
    return Line("\n  ".join(lines), turn.id, 0)


def asked(turn: Turn, width: int) -> str:
    """What the user said: the first of it and the last. `/ide` says nothing beside a sentence."""
    begun = [_title_of_a_plan(prompt[:TEXT]) for prompt, _ in turn.prompts]
    texts = [text for said in begun if (text := plain(unmarked(said)) or plain(said))]
    texts = [text for text in texts if text[0] != "/" or " " in text] or texts
    return parts(texts if len(texts) < 4 else [texts[0], *texts[-2:]], width, " / ")


def _title_of_a_plan(prompt: str) -> str:
    """The client pastes a plan that was approved in another session, whole."""
    before, found, plan = prompt.partition(turns_of.PLAN_PROMPT)
    title = plan.lstrip(": \n#").removeprefix("Plan:").partition("\n")[0]
    return f"implement the plan: {title}" if found and not before and title else prompt


def done_lines(commits: Sequence[Sequence[object]], files: Sequence[str], width: int) -> list[str]:
    lines = []
    if commits:
        told = [
            f"{plain(str(sha))[:SHA]} {plain(str(subject))}".strip()
            for sha, subject, *_ in commits[-COMMITS:]
        ]
        more = len(commits) - COMMITS
        lines.append(f"commits: {f'({more} earlier) ' if more > 0 else ''}{parts(told, width)}")
    if files:
        more = len(files) - FILES
        names = ", ".join(map(plain, files[:FILES]))
        lines.append(cut(f"edited: {names}{f' and {more} more' if more > 0 else ''}", width))
    return lines


def parts(texts: Sequence[str], width: int, between: str = "; ") -> str:
    """Texts beside each other. The earlier ones leave the later ones room, and what they do not need."""
    told = ""
    for place, text in enumerate(texts):
        left = len(texts) - place
        room = max(0, width - room_for(told)) // left - room_for(between)
        told += (between if told else "") + cut(text, max(room, 3))
    return cut(told, width)


def gist(answer: str, width: int) -> str:
    """An answer where it is short enough; else its beginning, without code, and its last paragraph, unless
    that asks or names something: then it is among what is open."""
    if len(answer) <= 2 * width:
        whole = plain(unmarked(answer))
        if room_for(whole) <= width:
            return whole
    prose = _CODE.sub("", answer).strip()
    text = plain(unmarked(prose[: 4 * width]))
    if room_for(text) <= width and len(prose) <= 4 * width:
        return text
    last = plain(unmarked(prose[-width:].rpartition("\n\n")[2]))
    is_list = last[:1].isdigit() or last.startswith(("-", "*", "|", ">", "+", "•"))
    if is_list or room_for(last) > width // 3 or open_ends.closing(answer):
        last = ""  # the rest of a list says little
    return cut(text, width - room_for(last) - 1) + (f" {last}" if last else "")


def unmarked(text: str) -> str:
    """Without what makes headings, tables, rules and stress in Markdown."""
    return "\n".join(_unmarked(line.strip()) for line in text.splitlines()).replace("**", "")


def _unmarked(line: str) -> str:
    if not line.strip("|:*_- \t") or line.startswith("```"):
        return ""
    if line.startswith("|") and line.endswith("|"):
        return line.strip("| \t") + ";"
    rest = line.lstrip("#")
    return rest if rest.startswith(" ") else line


_CODE = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```[^\n]*$|\Z)", re.M | re.S)


def session_line(session: Outcome, branch: str | None, width: int) -> Line:
    """`2026-03-01 [mem_...] (on main) what was asked for - done: ... - learned: ...`"""
    first = session.turns[0] if session.turns else None
    memory_id = session.summary_id or (first.id if first else None)
    last_branch = session.turns[-1].branch if session.turns else None
    other = last_branch or session.branch
    where = f" (on {cut(plain(other), 40)})" if other and other != branch else ""
    line = f"{day(session.latest_at)} [{memory_id}]{where}"
    said: list[str] = []
    if session.summary_id:
        told = (("", session.request), ("done: ", session.completed), ("learned: ", session.learned))
        said = [name + text for name, value in told if (text := plain(value))]
    elif first:
        said = [text for text in (asked(first, width), *_came_of(session.turns, width)) if text]
    if not said:
        return Line("", memory_id, 0)
    return Line(f"{line} {parts(said, width - room_for(line) - 1, ' - ')}", memory_id, 0)


def _came_of(said: Sequence[Turn], width: int) -> list[str]:
    commits = [commit for turn in said for commit in turn.commits]
    files = list(dict.fromkeys(file.rsplit("/", 1)[-1] for turn in said for file in turn.edited))
    if lines := done_lines(commits, [] if commits else files, width):
        return lines
    return [f"answered: {gist(said[-1].answer, width)}"] if said[-1].answer else []


def telling(last: Sequence[Outcome]) -> Sequence[Outcome]:
    """Sessions that came to something, or of which nobody has said yet what they came to. Mere talk is told
    where there is nothing else."""
    found = [one for one in last if not one.summary_id or one.completed or one.learned or one.next_steps]
    return found or last


def is_telling(turn: Turn) -> bool:
    """Of those before there were turns, only the prompt is known."""
    return bool(turn.answer or turn.commits or turn.edited or turn.state != turns_of.COMPLETE)


def open_lines(last: Sequence[Outcome], later: Sequence[Turn], width: int) -> list[Line]:
    """What the last sessions left open, newest first. What a later turn was about is no longer open, or
    stands there again."""
    lines: list[Line] = []
    done = [text for turn in later for text in _spoken_of(turn)]
    for session in last:
        turn = session.turns[-1] if session.turns else None
        steps = _left_open(turn) if turn else []
        steps += [_step(plain(step)) for step in (session.next_steps or "").splitlines()]
        left: list[str] = []
        for step in steps:
            if step and not _is_among(_words(step.partition(": ")[2] or step), done):
                left.append(step)
                done.append(step.lower())  # said once
        memory_id = turn.id if turn else session.summary_id
        if left and memory_id:
            at = turn.started_at if turn else session.started_at
            lines.append(Line(cut(f"{day(at)} [{memory_id}] {'; '.join(left)}", width), memory_id, 0))
        done += [text for turn in session.turns for text in _spoken_of(turn)]
        done += [text.lower() for text in (session.request, session.completed) if text and session.summary_id]
    return lines


def _left_open(turn: Turn) -> list[str]:
    steps = open_ends.open_ends(turn)
    return [plain(f"the assistant {step}" if step.startswith(open_ends.ASKED) else step) for step in steps]


def settle(turn: Turn, head: str | None, is_latest: bool) -> None:
    """Keep what is still so: of checks that fail, those of the latest turn, and failed in it; of files that
    are not committed, those of a turn that left git's head where it is now."""
    failed = turn.failed if is_latest else []
    turn.failing = {check: failure for check, failure in turn.failing.items() if failure in failed}
    left_at = str(turn.commits[-1][0]) if turn.commits and turn.commits[-1][0] else turn.head
    if not head or not left_at or not head.startswith(left_at):
        turn.uncommitted = []


def _spoken_of(turn: Turn) -> list[str]:
    texts = [prompt[:TEXT] for prompt, _ in turn.prompts]
    texts += [str(subject) for _, subject, *_ in turn.commits]
    return [text.lower() for text in (*texts, *turn.answer[:TEXT].splitlines()) if text]


def _step(text: str) -> str:
    """Without the bullet or the number before it."""
    mark, _, rest = text.partition(" ")
    is_mark = mark in ("-", "*", "•") or (mark[:-1].isdigit() and mark[-1] in ".)")
    return rest if is_mark else text


def _words(text: str) -> set[str]:
    """Those that tell, without their endings; `the` and `then` are everywhere."""
    return {word[:5].rstrip("s") for word in _WORD.findall(text.lower()) if word not in _EVERYWHERE}


_EVERYWHERE = frozenset("also from have into should that then there this when will with".split())
_WORD = re.compile(r"[^\W_]{4,}")


def _is_among(step: set[str], later: Iterable[str]) -> bool:
    needed = DONE * len(step)
    return bool(step) and any(sum(word in text for word in step) >= needed for text in later)


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


class _Found:
    """What the store has to say, before it is known how much room there is for it."""

    __slots__ = ("branch", "ended", "going_on", "here", "last", "left_off", "memories", "own", "present")

    def __init__(self, place: paths.Place, going_on: bool) -> None:
        self.branch = place.branch
        self.going_on = going_on
        self.last: list[Outcome] = []  # newest first
        self.ended: list[Outcome] = []  # those that may have left something open
        self.left_off: list[Turn] = []  # of the session to go on with, newest first
        self.here = False  # that was on this branch
        self.present: list[Turn] = []  # the turns of the session itself, oldest first
        self.own: list[Standing] = []  # what it observed
        self.memories: list[Standing] = []

    def sections(self, db: Connection, look: _Look, width: int) -> list[Section]:
        sections = []
        if self.going_on:
            lines = _thread(db, self.present, self.own, width)
            sections.append(Section("This session so far, newest first", THREAD, lines))
        widths = (answer_width(width), answer_width(width) * 7 // 12)
        lines = [turn_lines(turn, width, most) for turn, most in zip(self.left_off, widths, strict=False)]
        sections.append(Section(LEFT_OFF_HERE if self.here else LEFT_OFF_LAST, LEFT_OFF, lines))
        told = {turn.id for turn in self.left_off}
        rest = [one for one in telling(self.last) if not one.turns or {turn.id for turn in one.turns} - told]
        lines = [line for one in rest if (line := session_line(one, self.branch, width)).text]
        sections.append(Section("Last sessions", LAST, lines))
        lines = open_lines(self.ended, self.present, width * 3 // 2)
        sections.append(Section("Open", OPEN, lines))
        above = 1_000.0  # these go before all that stands
        for section in sections:
            for place, line in enumerate(section.lines):
                line.worth = above = above - 1
                if section.heading == "Last sessions" and place >= SESSIONS_FIRST:
                    line.worth = 1 - place / 100
        return sections + _topics(db, ranked(self.memories, self.branch), look, width)


def _read(db: Connection, place: paths.Place, session_id: str, source: str) -> _Found:
    project_id = sessions.project_of(db, session_id) or standing.project_at(db, place.identity)
    found = _Found(place, source in GOING_ON)
    attended = True
    if project_id:
        found.last = standing.last_sessions(db, project_id, session_id, True, SESSIONS)
        attended = bool(found.last)
        if not attended:
            found.last = standing.last_sessions(db, project_id, session_id, False, SESSIONS)
        for number, session in enumerate(found.last):
            is_modelled = session.summary_id and session.made_by != RULES
            if number < OPEN_OF or not is_modelled:
                session.turns = turns.of_session(db, session.session_id, TURNS)
            if not is_modelled and any(map(is_telling, session.turns)):
                # Rules make a summary of the turns, and these say it better.
                session.summary_id = session.next_steps = None
    found.ended = found.last[:OPEN_OF]
    if found.going_on:
        found.present = turns.of_session(db, session_id, TURNS)
    elif project_id:
        _leave_off(db, found, project_id, session_id, attended)
    latest = [session.turns[-1] for session in found.ended if session.turns] + found.present[-1:]
    for turn in latest:
        settle(turn, place.head, turn is latest[0] or turn.session_id == session_id)
    for owner in dict.fromkeys((project_id or GLOBAL, GLOBAL)):
        for kind in (kind for topic in TOPICS for kind in topic.kinds):
            found.memories += standing.newest(db, owner, kind, attended)
    if found.going_on:
        found.own = [memory for memory in found.memories if memory.session_id == session_id]
        found.memories = [memory for memory in found.memories if memory.session_id != session_id]
    return found


def _leave_off(db: Connection, found: _Found, project_id: str, session_id: str, attended: bool) -> None:
    """Find the turns to go on from: of the last session on this branch, or of the last one."""
    here = found.branch and standing.last_on_branch(db, project_id, session_id, attended, found.branch)
    if here:
        session, at = here
        every = [[turn for turn in turns.of_session(db, session, TURNS) if turn.started_at <= at]]
        if session not in [one.session_id for one in found.ended]:
            older = standing.Outcome(session, at, at, found.branch, None)
            older.turns = every[0]
            found.ended.append(older)
    else:
        every = [session.turns for session in found.last]
    told = ([turn for turn in said if is_telling(turn)] for said in every)
    found.left_off = next((said for said in told if said), [])[: -LAST_TURNS - 1 : -1]
    found.here = bool(here and found.left_off)


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


def _thread(db: Connection, present: list[Turn], own: list[Standing], width: int) -> list[Line]:
    """What this session is about and has done so far."""
    lines = []
    for place, turn in enumerate(reversed(present[-OWN_TURNS:])):
        lines.append(turn_lines(turn, width, answer_width(width) // (3 if place else 2), so_far=True))
    if len(present) > OWN_TURNS:
        first = present[0]
        lines.append(Line(f"began with [{first.id}]: {asked(first, width)}", first.id, 0))
    before = present[:-OWN_TURNS]
    files = dict.fromkeys(file for turn in reversed(present) for file in reversed(turn.edited))
    commits = [commit for turn in before for commit in turn.commits]
    lines += [Line(line, None, 0) for line in done_lines(commits, list(files), width)]
    if present:
        now = present[-1]
        lines += [Line(cut(f"open [{now.id}]: {step}", width), now.id, 0) for step in _left_open(now)]
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
