"""The synthesizer that needs no model: rules over what was said and done.

It is asked about the new items of a session and looks at the earlier ones as well. Every finding has an item
by which it was complete; it is handed out with the batch that brings this item, and so exactly once.
"""

from __future__ import annotations

from dataclasses import replace

from backstory.model import Batch, Findings, Observation, Project
from backstory.store.queue import MARKS
from backstory.synthesis.rules.consent import consented
from backstory.synthesis.rules.decisions import chosen_by_assistant, decided
from backstory.synthesis.rules.discoveries import discovered
from backstory.synthesis.rules.finding import Finding
from backstory.synthesis.rules.replaced import KINDS, replaced, replaces
from backstory.synthesis.rules.summary import summarise
from backstory.synthesis.rules.turns import Turn, turns
from backstory.synthesis.rules.wishes import wished
from backstory.synthesis.rules.words import TEXT_CHARS, sentences, telling, together
from backstory.synthesis.rules.work import worked

RECENT = 6  # findings
ALIKE = 3  # telling words that two decisions share when they are about the same
FEW = 10  # telling words of a decision that says little by itself


class Local:
    name = "local"

    async def observe(self, batch: Batch) -> Findings:
        return observe(batch)

    async def close(self, session_id: str | None = None) -> None:
        """Nothing is kept running."""


def observe(batch: Batch) -> Findings:
    told = turns((*batch.earlier, *batch.items), batch.project.root, over=_is_over(batch))
    found = findings(told, batch.project)
    new = {item.id for item in batch.items}
    fresh = [finding for finding in found if finding.done_by in new]
    included = {key for finding in fresh for key in finding.replaces}
    observations: list[Observation] = []
    for finding in fresh:
        if finding.key in included or _is_known(finding, batch):
            continue
        now = _with_replaced(finding, batch)
        observations = [was for was in observations if not replaces(now, was.kind, was.title, was.text)]
        observations.append(now)
    summary = summarise(told, found, batch) if batch.wants_summary else None
    return Findings(tuple(observations), summary)


def findings(told: list[Turn], project: Project) -> list[Finding]:
    """Everything that these turns came to, oldest first."""
    found: list[Finding] = []
    said: set[tuple[str, str]] = set()
    for turn in told:
        wishes = wished(turn, project.name)
        users = decided(turn) or consented(turn)
        decisions = [_with_word_of(one, found) for one in users if not _is_among(one, wishes)]
        work = worked(turn, found)
        settled = [one for one in (*found, *wishes, *decisions) if one.observation.kind in KINDS]
        chosen = [one for one in chosen_by_assistant(turn) if not _is_settled(one, settled)]
        others = (*chosen, *discovered(turn, work, project.root))
        for finding in (*wishes, *decisions, *work, *others):
            replaced_titles = {title for _, title in finding.replaces}
            name = (finding.observation.kind, finding.observation.title.lower())
            if name not in said or finding.observation.title in replaced_titles:
                said.add(name)
                found.append(finding)
    return found


def _with_word_of(decision: Finding, found: list[Finding]) -> Finding:
    """The user's word on what the assistant chose before takes its place, and keeps its reason."""
    chosen = [one for one in found[-RECENT:] if one.observation.kind == "decision"]
    if not chosen or chosen[-1].observation.title == decision.observation.title:
        return decision
    last, now = chosen[-1], decision.observation
    words, was = telling(now.title), f"{last.observation.title} {last.observation.text}"
    shared = words & telling(was)
    often = [word for word in shared if was.lower().count(word) > 2]
    if len(shared) < ALIKE and not (often and len(words) < FEW):
        return decision
    said = sentences(now.text)[:1]
    text = together([*said, *sentences(last.observation.text)], TEXT_CHARS)
    return replace(decision, observation=replace(now, text=text), replaces=(last.key,))


def _is_settled(choice: Finding, settled: list[Finding]) -> bool:
    """The user said so before; the assistant only did it."""
    words = telling(choice.observation.text)
    titles = [telling(one.observation.title) for one in settled]
    return any(len(words & title) >= max(ALIKE, len(title) / 2) for title in titles)


def _is_among(decision: Finding, wishes: list[Finding]) -> bool:
    """'from now on let's use pnpm' is one thing, not two."""
    words = telling(decision.observation.title)
    return any(len(words & telling(wish.observation.text)) > len(words) / 2 for wish in wishes)


def _is_over(batch: Batch) -> bool:
    """The summary is wanted though no turn ended: the session has, without a word."""
    marked = any(item.tool in MARKS for item in batch.items)
    return batch.wants_summary and (not marked or batch.session.status != "active")


def _is_known(finding: Finding, batch: Batch) -> bool:
    """A session that was taken for ended went on: what was stored of the turn then is not stored again."""
    now = finding.observation
    replaced_titles = {title for _, title in finding.replaces}
    return now.title not in replaced_titles and any(
        memory.session_id == batch.session.id and memory.kind == now.kind and memory.title == now.title
        for memory in batch.known
    )


def _with_replaced(finding: Finding, batch: Batch) -> Observation:
    now = finding.observation
    titles = {title for _, title in finding.replaces}
    older = [
        memory.id
        for memory in batch.known
        if memory.session_id == batch.session.id and memory.title in titles
    ]
    contradicted = replaced(now, batch.known)
    return replace(now, supersedes=tuple(dict.fromkeys((*older, *contradicted))))
