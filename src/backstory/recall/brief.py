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
import time

from backstory import markdown, paths
from backstory.blob import blob_id
from backstory.memory import open_ends, salience
from backstory.memory import turn as turns_of
from backstory.memory.salience import DAY_MS
from backstory.recall import lead
from backstory.safety import fence
from backstory.store import projects, sessions, standing, turns
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
JOINERS = "\u200c\u200d"  # unseen, but they make letters of some scripts, and families of emoji
LONGEST_WORD = 24  # a cut goes back to the last space, but not further
REQUEST = 300  # characters of a request that nobody answered; these are not cut
OWN = 3  # sessions of a branch's owner that are read
OPENER = 120  # characters of a sentence before an answer begins
BRANCH = 60  # characters of a branch's name
SESSIONS = 10
SESSIONS_FIRST = 2  # go before what stands; the others where room is left
SESSION_LINE = 250  # characters, at most
SESSIONS_TOLD = 8
RULES = "local"  # the synthesizer that is no model
TURNS = 30  # of a session that are read
LAST_TURNS = 2  # of the session before
OWN_TURNS = 3  # of the session that goes on
EARLIER_TURNS = 8  # of it, before those, in a line each
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


# How near a memory is to the work at hand.
HERE, NEAR, ELSEWHERE = 0, 1, 2  # made on this branch or in the lead's session; about its files or its name


class Topic:
    """Kinds of memories that stand together, and what they are worth beside others."""

    __slots__ = ("farthest", "heading", "kinds", "most", "share", "weight")

    def __init__(
        self, heading: str, kinds: Sequence[str], share: float, weight: float, most: int, farthest: int | None
    ) -> None:
        self.heading = heading
        self.kinds = kinds
        self.share = share  # of the room, where all sections have something to say
        self.weight = weight
        self.most = most  # lines
        self.farthest = farthest  # what is farther away is not told; None: it does not matter how near it is


# The other sections' shares.
DECIDED, THREAD, LEFT_OFF, LAST, OPEN = 0.2, 0.4, 0.36, 0.16, 0.1
OPEN_HEADING = "Open"
TOPICS = (
    Topic("Decisions", ("decision",), 0.12, 1.2, 4, ELSEWHERE),
    Topic("Preferences", ("preference",), 0.12, 1.2, 12, None),
    Topic("Gotchas", ("discovery",), 0.08, 1.0, 4, ELSEWHERE),
    Topic("Fixed", ("bugfix",), 0.06, 1.0, 3, NEAR),
    Topic("Notes", ("note",), 0.1, 1.0, 10, None),
    Topic("Built and reworked", ("feature", "refactor"), 0.04, 0.6, 3, HERE),
)
FAR = 2  # lines of what is neither of this branch nor about the work at hand
CONSIDERED = 30  # memories of a topic whose text is read
SUBJECT = 3  # words; where two decisions begin with the same ones, the newer stands

LEFT_OFF_HERE = "Where the last session on this branch left off"
LEFT_OFF_LAST = "Where the last session left off"
UNKNOWN = "Nothing is remembered of the branch "
FORKED, FITTING = ", which begins where this work left off", ". Its name fits this work"
LATEST = ". The last work"


class Brief:
    __slots__ = ("ids", "open", "project_id", "text")

    def __init__(self, text: str, ids: tuple[str, ...], open: int = 0) -> None:
        self.text = text  # "": there is nothing to say
        self.project_id: str | None = None  # whose it is
        self.ids = ids  # of the memories it shows
        self.open = open  # things that are open, also where it has no room for all of them


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
    room, place = room_of(tokens), paths.place(cwd)
    project_id = sessions.project_of(db, session_id) or projects.id_at(db, place)
    told = Brief("", ())
    if room > 0:
        found = _read(db, place, project_id, session_id, source)
        told = _fitted(db, found, _Look(paths.checkout(cwd)), room)
    told.project_id = project_id
    return told


def _fitted(db: Connection, found: _Found, look: _Look, room: int) -> Brief:
    width = width_of(room)
    sections = found.sections(db, look, width)
    if all_fit(sections, room):  # a young project has few things to tell, and room to tell them whole
        wide = found.sections(db, look, 2 * width)
        sections = wide if all_fit(wide, room) else sections
    return render(sections, room)


def left_open(db: Connection, cwd: str, session_id: str) -> list[Line]:
    """What the section Open of a brief has, in this folder and on its branch, whole. Everything that counts
    or lists what is open asks here."""
    found = _Found(paths.place(cwd), False)
    project_id = sessions.project_of(db, session_id) or projects.id_at(db, found.place)
    if project_id:
        attended = _last_sessions(db, found, project_id, session_id)
        branch = found.place.branch
        here = standing.last_on_branch(db, project_id, session_id, attended, branch) if branch else None
        # Where a session was on this branch, the turns of the others are not needed; the status line waits.
        _read_turns(db, [one for one in found.last if here is None or one.session_id == here[0]])
        _leave_off(db, found, project_id, session_id, attended)
    return open_lines(found.open, LONGEST) if found.open else []


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
    sentence = kept.rfind(". ", len(kept) * 2 // 3)
    if sentence > 0 and not kept[sentence - 1].isdigit():  # a number in a list ends nothing
        return kept[: sentence + 2] + "..."
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
    left_open = 0
    for number, section in enumerate(shown):
        lines = [section.lines[at] for at in sorted(taken[number])]
        if section.heading == OPEN_HEADING:
            left_open = len(section.lines)
        if lines:
            body += ["", section.heading + ":", *(f"- {line.text}" for line in lines)]
            ids.update((line.memory_id, None) for line in lines if line.memory_id)
    if len(body) == 1:
        return Brief("", ())
    return Brief(fence.fence("\n".join(body), SOURCE), tuple(ids), left_open)


# --- lines: what a memory says in one -----------------------------------------------------------------------


def plain(text: str | None) -> str:
    """One line of visible signs in which nothing opens a tag: not ours, not the client's."""
    if not text:
        return ""
    text = " ".join(fence.defuse(text).split())
    if not text.isprintable():
        text = " ".join("".join(sign for sign in text if sign.isprintable() or sign in JOINERS).split())
    return text.replace("<", "&lt;")


def day(at: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(min(max(at, 0), 253_402_300_799_000) / 1000))


def memory_line(kind: str, memory: Content, since: str, width: int) -> str:
    """`2026-03-01 [mem_...] title - text (src/auth.py changed since)`; a kind where no heading says it."""
    title, text = plain(memory.title), plain(memory.content)
    if ARROW in title:
        text = title  # a question and its answer: the text has the same again
    elif title and not text.lower().startswith(title.lower()):
        text = f"{title} - {text}" if text else title
    after = f" ({cut(since, width // 2)})" if since else ""
    before = f"{day(memory.created_at)} [{memory.id}] {f'{kind}: ' if kind else ''}"
    return cut(f"{before}{text}", width - room_for(after)) + after


ARROW = " → "  # as synthesis writes an answer after its question


def turn_lines(turn: Turn, width: int, answer: int, *, so_far: bool = False, elsewhere: bool = False) -> Line:
    """`2026-03-01 [mem_...] asked: ...`, and below it what was answered and what was done."""
    said = asked(turn, width * 3 // 4)
    lines = [f"{day(turn.started_at)} [{turn.id}] {f'asked: {said}' if said else 'went on unasked'}"]
    if turn.answer:
        text = without_question(turn.answer) if elsewhere else turn.answer
        lines.append(f"answered: {gist(text, answer, bool(turn.closing))}")
    elif turn.state == turns_of.INTERRUPTED:
        lines.append("interrupted before an answer")
    elif turn.state == turns_of.OPEN and not so_far:
        lines.append("interrupted, or still under way")
    if turn.choices and not so_far:  # else they have a section of their own
        lines.append("the user chose: " + parts(_chosen(turn), width))
    if turn.failed and not turn.answer:
        lines.append("failed: " + cut(plain(": ".join(turn.failed[-1])), width))
    lines += done_lines(turn.commits, [] if turn.commits else turn.edited, width)
    return Line("\n  ".join(lines), turn.id, 0)


def _chosen(turn: Turn) -> list[str]:
    return [f"{plain(question)} {plain(choice)}" for question, choice in turn.choices]


def asked(turn: Turn, width: int) -> str:
    """What the user said: the first of it and the last. `/ide` says nothing beside a sentence."""
    begun = [_title_of_a_plan(prompt[:TEXT]) for prompt, _ in turn.prompts]
    texts = [text for said in begun if (text := plain(unmarked(said)) or plain(said))]
    texts = list(dict.fromkeys(text for text in texts if text[0] != "/" or " " in text)) or texts[:1]
    if turn.answer or not texts:
        return parts(texts if len(texts) < 4 else [texts[0], *texts[-2:]], width, " / ")
    last = cut(texts[-1], max(width, REQUEST))  # what nobody answered is what comes next
    before = parts(texts[:1], max(0, width - room_for(last)), " / ") if len(texts) > 1 else ""
    return f"{before} / {last}" if len(before) > 3 else last


def _title_of_a_plan(prompt: str) -> str:
    """The client pastes a plan that was approved in another session, whole."""
    before, found, plan = prompt.partition(turns_of.PLAN_PROMPT)
    title = plan.lstrip(": \n#").removeprefix("Plan:").partition("\n")[0]
    return f"implement the plan: {title}" if found and not before and title else prompt


def done_lines(commits: Sequence[Sequence[object]], files: Sequence[str], width: int) -> list[str]:
    lines = []
    if commits:
        every = [f"{plain(str(sha))[:SHA]} {plain(str(subject))}".strip() for sha, subject, *_ in commits]
        told = list(dict.fromkeys(every))[-COMMITS:]
        more = len(set(every)) - COMMITS
        lines.append(f"commits: {f'({more} earlier) ' if more > 0 else ''}{parts(told, width)}")
    if files:
        more = len(files) - FILES
        names = ", ".join(map(plain, files[:FILES]))
        lines.append(cut(f"edited: {names}{f' and {more} more' if more > 0 else ''}", width))
    return lines


def parts(texts: Sequence[str], width: int, between: str = "; ") -> str:
    """Texts beside each other. The earlier ones leave the later ones what they need, at most their share."""
    told = ""
    for place, text in enumerate(texts):
        left = max(0, width - room_for(told))
        later = sum(room_for(one) + room_for(between) for one in texts[place + 1 :])
        room = max(left // (len(texts) - place), left - later) - room_for(between)
        told += (between if told else "") + cut(text, max(room, 3))
    return cut(told, width)


def gist(answer: str, width: int, is_open: bool = False) -> str:
    """An answer where it is short enough; else its beginning, without code, and its last paragraph, unless
    that asks or names something: then it is among what is open."""
    answer = without_opener(answer)
    if len(answer) <= 2 * width:
        whole = plain(unmarked(answer))
        if room_for(whole) <= width:
            return whole
    prose = markdown.without_fences(answer).strip()
    text = plain(unmarked(prose[: 4 * width]))
    if room_for(text) <= width and len(prose) <= 4 * width:
        return text
    last = plain(unmarked(prose[-width:].rpartition("\n\n")[2]))
    is_list = last[:1].isdigit() or last.startswith(("-", "*", "|", ">", "+", "•"))
    if is_list or room_for(last) > width // 3 or is_open:
        last = ""  # the rest of a list says little
    return cut(text, width - room_for(last) - 1) + (f" {last}" if last else "")


_OPENERS = tuple(
    "done|perfect|great|excellent|everything|all tests|all checks|all pass|all green|all clean|all done"
    "|all good|all implementation|the implementation is|implementation complete|the changes are|the plan is"
    "|summary|here's|here is|here are|now i |now let me|let me |i have a |i now have".split("|")
)


def without_opener(answer: str) -> str:
    """Without `All tests pass. Here's a summary of the changes:` where something follows."""
    text = answer.lstrip("#* \n")
    while text[:OPENER].lower().startswith(_OPENERS):
        ends = [at for sign in (". ", "! ", ": ", "\n") if (at := text.find(sign, 0, OPENER)) > 0]
        rest = text[min(ends) + 1 :].lstrip(" #*\n") if ends else ""
        if not rest:
            break
        text = rest
    return text


def without_question(answer: str) -> str:
    """Without the question at its end: `Want me to push?` was asked on another branch."""
    text = answer.rstrip(" *_\n")
    at = max(text.rfind(sign, 0, -1) for sign in (". ", "! ", "? ", "\n")) if text.endswith("?") else 0
    return text[: at + 1].rstrip() if at > 0 else answer


def unmarked(text: str) -> str:
    """Without what makes headings, tables, code, rules and stress in Markdown."""
    lines = markdown.without_fence_marks(text).splitlines()
    return "\n".join(_unmarked(line.strip()) for line in lines).replace("**", "")


def _unmarked(line: str) -> str:
    if not line.strip("|:*_- \t"):
        return ""
    if line.startswith("|") and line.endswith("|"):
        return line.strip("| \t") + ";"
    rest = line.lstrip("#")
    return rest if rest.startswith(" ") else line


def session_line(session: Outcome, branch: str | None, width: int) -> Line:
    """`2026-03-01 [mem_...] (on main) what was asked for - done: ... - learned: ...`"""
    memory_id = session.summary_id
    if memory_id or not session.turns:
        told = [("", session.request), ("done: ", session.completed), ("learned: ", session.learned)]
        said = [f"{before}{plain(text)}" for before, text in told if text]
    else:
        about, said = _came_of(session.turns, width)
        memory_id = about.id
    other = (session.turns[-1].branch if session.turns else None) or session.branch
    where = f" (on {cut(plain(other), 40)})" if other and other != branch else ""
    line = f"{day(session.latest_at)} [{memory_id}]{where}"
    if not said:
        return Line("", memory_id, 0)
    return Line(f"{line} {parts(said, width - room_for(line) - 1, ' - ')}", memory_id, 0)


def _came_of(said: Sequence[Turn], width: int) -> tuple[Turn, list[str]]:
    """What was first asked that says more than `hello`, and what came of it: commits, a plan, files.
    Without a commit or a plan, what was asked and answered where most was edited. With the turn that asked.
    """
    worth = [turn for turn in said if not lead.is_slight(turn)] or said
    first = next(filter(lead.says_something, (*said[:1], *worth)), said[0])
    request = asked(first, width)
    commits = [commit for turn in said for commit in turn.commits]
    if commits:
        return first, [request, *done_lines(commits, [], width)]
    if plans := [plan for turn in said for plan in turn.plans]:
        return first, [request, f"plan: {plain(unmarked(plans[-1].lstrip().partition(chr(10))[0]))}"]
    main = max(worth, key=lambda turn: (bool(turn.answer), len(turn.edited), turn.started_at))
    if main.answer:  # to what was asked there, not at the beginning
        return main, [asked(main, width), f"answered: {gist(main.answer, width)}"]
    files = list(dict.fromkeys(file.rsplit("/", 1)[-1] for turn in said for file in turn.edited))
    return first, [text for text in (request, *done_lines([], files, width)) if text]


def telling(last: Sequence[Outcome]) -> Sequence[Outcome]:
    """Sessions that came to something, or of which nobody has said yet what they came to. Mere talk is told
    where there is nothing else."""
    found = [one for one in last if not one.summary_id or one.completed or one.learned or one.next_steps]
    return found or last


def open_lines(session: Outcome, width: int) -> list[Line]:
    """What a session left open after its last turn, and what its summary names as next."""
    turn = session.turns[-1] if session.turns else None
    steps = _left_open(turn) if turn else []
    steps += [_step(plain(step)) for step in (session.next_steps or "").splitlines()]
    memory_id = turn.id if turn else session.summary_id
    if not memory_id:
        return []
    at = day(turn.started_at if turn else session.started_at)
    steps = list(dict.fromkeys(filter(None, steps)))
    return [Line(cut(f"{at} [{memory_id}] {step}", width), memory_id, 0) for step in steps]


def _left_open(turn: Turn) -> list[str]:
    steps = open_ends.open_ends(turn)
    return [plain(f"the assistant {step}" if step.startswith(open_ends.ASKED) else step) for step in steps]


def _step(text: str) -> str:
    """Without the bullet or the number before it."""
    mark, _, rest = text.partition(" ")
    is_mark = mark in ("-", "*", "•") or (mark[:-1].isdigit() and mark[-1] in ".)")
    return rest if is_mark else text


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

    __slots__ = "began going_on heading last left_off open own place present stands".split()

    def __init__(self, place: paths.Place, going_on: bool) -> None:
        self.place = place
        self.going_on = going_on
        self.last: list[Outcome] = []  # newest first
        self.heading = ""
        self.left_off: list[Turn] = []  # of the session to go on from, newest first
        self.began: Turn | None = None  # what that session was about, where these do not say
        self.open: Outcome | None = None  # the session that may have left something open
        self.present: list[Turn] = []  # the turns of the session itself, oldest first
        self.own: list[Standing] = []  # what it observed
        self.stands: list[
            list[tuple[int, float, Content]]
        ] = []  # of each topic: how near, worth, what it says

    def sections(self, db: Connection, look: _Look, width: int) -> list[Section]:
        sections = []
        if self.going_on:
            sections.append(Section("Decided in this session", DECIDED, _decided(self.present, width)))
            lines = _thread(db, self.present, self.own, width)
            sections.append(Section("This session so far, newest first", THREAD, lines))
        widths = (answer_width(width), answer_width(width) * 7 // 12)
        elsewhere = self.heading.startswith(UNKNOWN)
        lines = [
            turn_lines(turn, width, most, elsewhere=elsewhere)
            for turn, most in zip(self.left_off, widths, strict=False)
        ]
        if self.began:
            lines.append(_began(self.began, width))
        sections.append(Section(self.heading, LEFT_OFF, lines))
        narrow = min(width * 5 // 4, SESSION_LINE)
        lines = [session_line(one, self.place.branch, narrow) for one in telling(self.last)]
        lines = [line for line in lines if line.text][:SESSIONS_TOLD]
        sections.append(Section("Last sessions", LAST, lines))
        lines = open_lines(self.open, width * 3 // 2) if self.open else []
        sections.append(Section(OPEN_HEADING, OPEN, lines))
        above = 1_000.0  # these go before all that stands
        for section in sections:
            for place, line in enumerate(section.lines):
                line.worth = above = above - 1
                if section.heading == "Last sessions" and place >= SESSIONS_FIRST:
                    line.worth = 1 - place / 100
        return sections + self._topics(look, width)

    def choose(self, db: Connection, memories: list[Standing]) -> None:
        """What stands, of each topic the nearest first."""
        branch = self.place.branch
        every = ranked(memories, branch)
        best = [[one for one in every if one[1].kind in topic.kinds][:CONSIDERED] for topic in TOPICS]
        contents = standing.told(db, [memory.id for known in best for _, memory in known])
        name = lead.name_of(branch)
        texts = [(one.id, f"{one.title} {one.content[:REQUEST]}") for one in contents.values()]
        fitting = set(lead.fitting(name, texts) if name else ())
        work = self.left_off or self.present
        files = {file for turn in work for file in turn.edited}
        ours = {turn.session_id for turn in work}

        def distance(memory: Standing) -> int:
            if memory.branch == branch or memory.session_id in ours:
                return HERE
            is_near = memory.id in fitting or not files.isdisjoint(contents[memory.id].files)
            return NEAR if is_near else ELSEWHERE

        for topic, known in zip(TOPICS, best, strict=True):
            # One that is not there was erased a moment ago.
            found = [(HERE, value, memory) for value, memory in known if memory.id in contents]
            if topic.farthest is not None:
                newest = _newest_of_a_subject(contents[memory.id] for _, _, memory in found)
                found = [(distance(one[2]), *one[1:]) for one in found if one[2].id in newest]
                found = sorted((one for one in found if one[0] <= topic.farthest), key=lambda one: one[0])
                found = found[: max(FAR, sum(one[0] < ELSEWHERE for one in found))]
            self.stands.append([(*one[:2], contents[one[2].id]) for one in found[: topic.most]])

    def _topics(self, look: _Look, width: int) -> list[Section]:
        sections = []
        for topic, chosen in zip(TOPICS, self.stands, strict=True):
            lines = []
            for at, value, content in chosen:
                since = look.since(content)
                worth = value * topic.weight * (CHANGED if since else 1.0)
                lines.append((at, Line(memory_line("", content, since, width), content.id, worth)))
            lines.sort(key=lambda one: (one[0], -one[1].worth, one[1].memory_id))
            sections.append(Section(topic.heading, topic.share, [line for _, line in lines]))
        return sections


def _newest_of_a_subject(known: Iterable[Content]) -> set[str]:
    newest: dict[tuple[str, ...], tuple[int, str]] = {}
    for content in known:
        subject = tuple((content.title or content.content).lower().split()[:SUBJECT])
        at = (content.created_at, content.id)
        newest[subject] = max(at, newest.get(subject, at))
    return {memory_id for _, memory_id in newest.values()}


def _read(db: Connection, place: paths.Place, project_id: str | None, session_id: str, source: str) -> _Found:
    found = _Found(place, source in GOING_ON)
    attended = True
    if project_id:
        attended = _last_sessions(db, found, project_id, session_id)
        _read_turns(db, found.last)
    if found.going_on:
        found.present = turns.of_session(db, session_id, TURNS)
        for turn in found.present[-1:]:
            open_ends.settle(turn, place.head, is_latest=True)
    elif project_id:
        _leave_off(db, found, project_id, session_id, attended)
    memories = []
    for owner in dict.fromkeys((project_id or GLOBAL, GLOBAL)):
        for kind in (kind for topic in TOPICS for kind in topic.kinds):
            memories += standing.newest(db, owner, kind, attended)
    if found.going_on:
        found.own = [memory for memory in memories if memory.session_id == session_id]
        memories = [memory for memory in memories if memory.session_id != session_id]
    found.choose(db, memories)
    return found


def _last_sessions(db: Connection, found: _Found, project_id: str, session_id: str) -> bool:
    """Read the sessions before this one; False where a person attended none of them."""
    found.last = standing.last_sessions(db, project_id, session_id, True, SESSIONS)
    attended = bool(found.last)
    if not attended:
        found.last = standing.last_sessions(db, project_id, session_id, False, SESSIONS)
    return attended


def _read_turns(db: Connection, several: Iterable[Outcome]) -> None:
    for session in several:
        session.turns = turns.of_session(db, session.session_id, TURNS)
        is_modelled = session.summary_id and session.made_by != RULES
        if not is_modelled and any(map(lead.is_telling, session.turns)):
            # Rules make a summary of the turns, and these say it better.
            session.summary_id = session.next_steps = None


def _leave_off(db: Connection, found: _Found, project_id: str, session_id: str, attended: bool) -> None:
    """Find the turns to go on from, and what is open after them."""
    branch = found.place.branch
    here = standing.last_on_branch(db, project_id, session_id, attended, branch) if branch else None
    chosen: Outcome | None
    at: int | None
    if here:
        chosen, why, at = _session(db, found, here[0]), "", here[1]
    else:
        recent = standing.recent_turns(db, project_id, session_id, attended) if branch else []
        chosen, why, at = _for_a_new_branch(db, found, recent)
    if chosen is None:
        return
    said = [turn for turn in chosen.turns if at is None or turn.started_at <= at]
    found.left_off = lead.worth_telling(said)[: -LAST_TURNS - 1 : -1]
    other = said[-1].branch if said else None
    if here:
        found.heading = LEFT_OFF_HERE
    elif branch and branch != other:
        on = f", on {cut(plain(other), BRANCH)}" if other else ""
        found.heading = f"{UNKNOWN}{cut(plain(branch), BRANCH)}{why}{on}"
    else:
        found.heading = LEFT_OFF_LAST
    # What comes after a question answers it: in its session, or on its branch.
    later = (
        standing.last_on_branch(db, project_id, session_id, attended, other) if other and not here else None
    )
    is_whole = len(said) == len(chosen.turns)
    if found.left_off and is_whole and not chosen.summary_id:
        found.last = [session for session in found.last if session is not chosen]
    told = [turn.asked for turn in found.left_off]
    first = next((turn for turn in said if lead.says_something(turn)), None)
    if first and told and first.asked not in told:
        found.began = first
    if is_whole and (later is None or later[0] == chosen.session_id):
        found.open = chosen
        for turn in said[-1:]:
            is_latest = bool(turn.answer) and (bool(here) or branch is None)
            open_ends.settle(turn, found.place.head, is_latest)


def _for_a_new_branch(
    db: Connection, found: _Found, recent: list[standing.RecentTurn]
) -> tuple[Outcome | None, str, int | None]:
    """The session to go on from, why, and until when: the one that git's head is of, else the one whose words
    fit the branch's name, else the owner's last one, else the last one; but one that did something."""
    head, branch = found.place.head, found.place.branch
    said = []
    for session_id, at, beginning, on, began_at, made in recent:
        if head and (any(sha and head.startswith(sha) for sha, *_ in made) if made else began_at == head):
            return _session(db, found, session_id), FORKED, at
        said += [
            (session_id, f"{beginning} {' '.join(subject for _, subject, _ in made)}"),
            (session_id, on or ""),
        ]
    name = lead.name_of(branch)
    if name and (fitting := lead.fitting(name, said)):
        return _session(db, found, fitting[0]), FITTING, None
    owner = lead.owner(branch)
    own = dict.fromkeys(turn[0] for turn in recent if owner and lead.owner(turn[3]) == owner)
    for session in [*(_session(db, found, one) for one in list(own)[:OWN]), *found.last]:
        if any(lead.is_telling(turn) and not lead.is_slight(turn) for turn in session.turns):
            is_own = session.session_id in own
            return session, f"{LATEST} of {cut(plain(owner), BRANCH)}" if is_own else LATEST, None
    talked = [session for session in found.last if any(map(lead.is_telling, session.turns))]
    return next(iter((*talked, *found.last)), None), LATEST, None


def _session(db: Connection, found: _Found, session_id: str) -> Outcome:
    for session in found.last:
        if session.session_id == session_id:
            return session
    older = standing.Outcome(session_id, 0, 0, None, None)
    older.turns = turns.of_session(db, session_id, TURNS)
    return older


def _began(first: Turn, width: int) -> Line:
    return Line(f"began with [{first.id}]: {asked(first, width)}", first.id, 0)


def _decided(present: list[Turn], width: int) -> list[Line]:
    """What the user answered and approved, the newest first: a summary of a long session loses it."""
    lines = []
    for turn in reversed(present):
        before = f"{day(turn.started_at)} [{turn.id}]"
        titles = [plain(unmarked(plan.lstrip("# \n").partition("\n")[0])) for plan in turn.plans]
        decided = [
            *(f"the user chose: {text}" for text in _chosen(turn)),
            *(f"plan: {one}" for one in titles),
        ]
        lines += [Line(cut(f"{before} {text}", width), turn.id, 0) for text in reversed(decided)]
    return lines


def _thread(db: Connection, present: list[Turn], own: list[Standing], width: int) -> list[Line]:
    """What this session is about and has done so far, and what is open in it."""
    lines = []
    for place, turn in enumerate(reversed(present[-OWN_TURNS:])):
        lines.append(turn_lines(turn, width, answer_width(width) // (3 if place else 2), so_far=True))
    if present:
        now = present[-1]
        lines += [Line(cut(f"open [{now.id}]: {step}", width), now.id, 0) for step in _left_open(now)]
    before = present[:-OWN_TURNS]
    if before:
        lines.append(_began(present[0], width))
    files = dict.fromkeys(file for turn in reversed(present) for file in reversed(turn.edited))
    commits = [commit for turn in before for commit in turn.commits]
    lines += [Line(line, None, 0) for line in done_lines(commits, list(files), width)]
    latest = sorted(own, key=lambda memory: (-memory.created_at, memory.id))[:OBSERVED]
    contents = standing.told(db, [memory.id for memory in latest])
    for memory in latest:
        if content := contents.get(memory.id):
            lines.append(Line(memory_line(memory.kind, content, "", width), memory.id, 0))
    for turn in before[: -EARLIER_TURNS - 1 : -1]:
        if turn is not present[0] and lead.says_something(turn):
            lines.append(Line(f"before [{turn.id}]: {asked(turn, width)}", turn.id, 0))
    return lines


class _Look:
    """Looks whether files are still as they were when a memory was made, as recall/answer.py does, but at no
    more of them than one may wait for, and only inside the work tree."""

    __slots__ = ("_known", "_read", "_since", "_stats", "root")

    def __init__(self, root: str) -> None:
        self.root = root
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
            full = os.path.normpath(os.path.join(self.root, path))
            inside = full.startswith(os.path.join(self.root, ""))
            if inside and (what := self._changed(full, known, memory.created_at)):
                found.append(f"{plain(os.path.relpath(full, self.root))} {what}")
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
