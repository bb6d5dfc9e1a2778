"""The summary of a session, from what was asked, what was done and what the assistant said at the end of each
turn. Earlier items may be gone after a week; what an earlier summary knows of them stays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from backstory.model import Batch, Item, Summary
from backstory.synthesis.rules.finding import Finding
from backstory.synthesis.rules.prompts import is_request, without_acks
from backstory.synthesis.rules.prose import (
    all_telling,
    is_about_passing,
    is_cause,
    is_change,
    is_next,
    is_talk,
    without_lead,
)
from backstory.synthesis.rules.turns import (
    Turn,
    inside,
    text_of,
)
from backstory.synthesis.rules.words import (
    blocks,
    clean,
    prompt_lines,
    sentence,
    sentences,
    shorten,
    title,
    together,
)

FIELD = 320
FIRST_REQUEST = 230
LATER = "Later: "

_I_WILL = re.compile(
    r"\b(?:i'll|i will|we'll|we will|i'm going to)\b.{0,80}"
    r"\b(?:next week|tomorrow|later|monday|tonight|another day|next time|myself|soon)\b",
    re.I,
)
_LEFT = re.compile(
    r"\b(?:anything (?:left|else)|what(?:'s| is) (?:left|next|missing|open)|next steps?|to-?do|remaining)\b",
    re.I,
)
_OFFER = re.compile(
    r"(?:let me know|tell me|just say|feel free|happy to|neither is done|would you like anything|nothing)\b",
    re.I,
)
_NEGATIVE = re.compile(r"(?:no|nope|yes|yep|nothing|correct|exactly)\b[,.: ]", re.I)
_ASKS = re.compile(
    r"\?\s*$|^(?:please|pls|can|could|would|add|fix|make|change|move|write|find|look|check|why|how|what"
    r"|which|explain|help)\b",
    re.I,
)


def summarise(told: Sequence[Turn], found: Sequence[Finding], batch: Batch) -> Summary | None:
    """None where there is nothing to tell: 'Ran: a command' helps nobody."""
    summary = _summary(told, found, batch)
    tells = (summary.request, summary.completed, summary.learned, summary.next_steps, summary.notes)
    edited = any(item.is_edit and not item.failed for turn in told for item in turn.items)
    return summary if any(tells) or edited or summary.files_edited else None


def _summary(told: Sequence[Turn], found: Sequence[Finding], batch: Batch) -> Summary:
    before = batch.summary
    old = Summary("", "", "", "", "", (), (), "") if before is None or _is_whole(told, before) else before
    return Summary(
        request=_request(told, batch),
        investigated=_merged(old.investigated, _investigated(told, batch.project.root)),
        learned=_merged(old.learned, _learned(told, found)),
        completed=_merged(old.completed, _completed(told, found)),
        next_steps=together(_next_steps(told), FIELD) or ("" if _has_work(told) else old.next_steps),
        files_read=before.files_read if before else (),
        files_edited=before.files_edited if before else (),
        notes=together(_notes(told), FIELD),
    )


def _is_whole(told: Sequence[Turn], before: Summary) -> bool:
    """Whether the items go back to the beginning of the session."""
    first = next((turn.prompt for turn in told if is_request(turn.prompt)), "")
    return not before.request or before.request.startswith(_asked(first)[:40])


def _has_work(told: Sequence[Turn]) -> bool:
    return any(turn.units for turn in told)


def _request(told: Sequence[Turn], batch: Batch) -> str:
    asking = [turn for turn in told if is_request(turn.prompt) and not _LEFT.search(turn.prompt[:200])]
    first = _asked(asking[0].prompt) if asking else ""
    if batch.summary and batch.summary.request:
        first = batch.summary.request.partition(f" {LATER}")[0]
    elif not first and is_request(batch.session.user_prompt or ""):
        first = _asked(batch.session.user_prompt or "")
    # the goal may have changed since: what was worked on last says so best
    later = [turn for turn in asking if turn.units] or [turn for turn in asking if turn.items] or asking
    last = _asked(later[-1].prompt, FIELD - len(first) - len(LATER) - 1) if later else ""
    if last and last[:40] != first[:40]:
        return f"{first} {LATER}{last}" if first else last
    return first


def _asked(prompt: str, limit: int = FIRST_REQUEST) -> str:
    """What a prompt asks for: all of it, or how it begins and what it asks."""
    said = [one for line in prompt_lines(prompt) for one in sentences(line)]
    whole = _ended(without_acks(clean(" ".join(said))))
    if len(whole) <= limit:
        return whole
    asks = next((one for one in said[1:] if _ASKS.search(one) and len(one) < limit - 40), "")
    if not asks:
        return shorten(whole, limit)
    return f"{shorten(_ended(without_acks(said[0])), limit - len(asks) - 1)} {_ended(asks)}"


def _ended(said: str) -> str:
    """The user's words as they are, with a stop."""
    stopped = sentence(said)
    return said[:1] + stopped[1:] if stopped[:1].lower() == said[:1].lower() else stopped


def _investigated(told: Sequence[Turn], root: str) -> list[str]:
    items = [item for turn in told for item in turn.items]
    ran, web, agents = (
        [item for item in items if item.action == action] for action in ("shell", "web", "agent")
    )
    listed = (
        ("Read {}.", _few(_read(items, root), 8)),
        ("Ran: {}.", _few(map(_described, ran), 5)),
        ("Looked up {}.", _few((_string(item, "url") or _string(item, "query") for item in web), 4)),
        ("Sent out agents: {}.", _few((_string(item, "description") for item in agents), 3)),
    )
    return [form.format(names) for form, names in listed if names]


def _read(items: Iterable[Item], root: str) -> Iterable[str]:
    for item in items:
        if item.action == "read" and item.path and not item.failed:
            yield clean(inside(item.path, root) or item.path)[:120]


def _described(item: Item) -> str:
    """What a command was for, as whoever ran it put it."""
    return shorten(clean(text_of(item.input.get("description"))), 60).rstrip(".")


def _string(item: Item, name: str) -> str:
    return clean(text_of(item.input.get(name))[:80])


def _few(names: Iterable[str], most: int) -> str:
    return ", ".join([name for name in dict.fromkeys(names) if name][:most])


def _learned(told: Sequence[Turn], found: Sequence[Finding]) -> list[str]:
    known = [sentence(finding.learned) for finding in found if finding.learned]
    for turn in told:
        if turn.items and turn.ended:
            causes = [one for one in all_telling(turn.said) if is_cause(one) and not _NEGATIVE.match(one)]
            known += [sentence(one) for one in causes][:2]
    return known


def _completed(told: Sequence[Turn], found: Sequence[Finding]) -> list[str]:
    replaced = {key for finding in found for key in finding.replaces}
    done = [
        sentence(finding.observation.title)
        for finding in found
        if finding.observation.kind in ("bugfix", "feature", "refactor") and finding.key not in replaced
    ]
    for turn in reversed(told):
        if turn.units and turn.ended:
            changes = [one for one in all_telling(turn.said) if is_change(one)]
            done += [sentence(one) for one in changes[:1] if sentence(title(one)) not in done]
    return done


def _next_steps(told: Sequence[Turn]) -> list[str]:
    """What was left when it was last spoken of; what was left before more was done may be done."""
    for turn in reversed(told):
        steps = _left(turn)
        if steps or turn.units:
            return steps
    return []


def _left(turn: Turn) -> list[str]:
    asks = bool(_LEFT.search(turn.prompt[:400]))
    mine = [one for line in prompt_lines(turn.prompt) for one in sentences(line) if _I_WILL.search(one)]
    steps = [sentence(f"The user: {one}") for one in mine]
    for block in blocks(turn.said):
        for one in sentences(block):
            bare = without_lead(one)
            if len(bare) < 15 or _OFFER.match(bare) or is_talk(bare) or is_about_passing(bare):
                continue
            if (asks and not bare.endswith(":")) or is_next(bare):
                steps.append(sentence(bare))
    return steps


def _notes(told: Sequence[Turn]) -> list[str]:
    last = next((turn for turn in reversed(told) if turn.items), None)
    notes = []
    if last and last.failing:
        names = [": ".join(part for part in (one.name, one.error) if part) for one in last.failing]
        notes.append(sentence(clean(f"Still failing: {shorten('; '.join(names[:3]), 240)}")))
    if last and not last.ended and last.units:
        notes.append("The last turn was left unfinished.")
    return notes


def _merged(before: str, now: Sequence[str]) -> str:
    """What is known now; where that leaves room, what was known before as well."""
    return together([*now, *sentences(before)], FIELD)
