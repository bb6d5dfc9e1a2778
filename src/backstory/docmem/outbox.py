"""What a model is to be told at its next prompt: how its live views differ from what it last saw of them.

It waits as one line of JSON in `outbox/<session>`, which the prompt's hook takes, prints and removes. A hook
that was killed on the way leaves `<session>.<name>` behind.

Every node of a view has a stamp, which changes when the node does. `seen` has the stamps of what the model
saw, `offered` those of what waits. As long as it waits nobody can know which of the two holds: the hook may
come at any moment. Where they differ the stamp is UNKNOWN, which equals no other, so the node is told again.
To tell something twice is the worst that can happen.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce

from backstory import paths
from backstory.errors import StoreError
from backstory.safety.fence import fence
from backstory.store.file import disk
from backstory.store.views import Block, Stamps, View

UNKNOWN = "?"
CUT = ""  # stands in the place of a node id for the line that says that a view is cut
LONGEST = 8_000  # Claude Code puts anything above about 10,000 aside and shows the model its beginning
LONGEST_LIST = 30  # ids in one

# Why a view is gone.
DELETED = "This node was deleted, and its view is gone."
ENDED = "This view ended with its server; docmem_view add shows it again."
ELSEWHERE = "This view is gone: the folder belongs to another project now, which has other nodes."

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_INTRODUCTION = (
    "These live views of docmem changed since you last saw them. Only what is new or different is shown,"
    " as it is now."
)


# --- what the model saw -------------------------------------------------------------------------------------


def stamps(shown: Sequence[Block]) -> Stamps:
    return {node_id: stamp for node_id, _, stamp in shown}


def either(seen: Stamps, offered: Stamps) -> Stamps:
    """What the model saw, when it saw one or the other."""
    return {
        node_id: seen[node_id] if seen.get(node_id) == offered.get(node_id) else UNKNOWN
        for node_id in {**seen, **offered}
    }


# --- what it is told ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """How the view of a node differs from what the model saw of it."""

    node_id: str
    gone: str = ""  # why it is
    blocks: tuple[tuple[str, str, str], ...] = ()  # node, block, the node before it in the document
    left: tuple[str, ...] = ()  # nodes that are shown no longer
    is_whole: bool = False  # nothing is cut any more

    def text(self, chosen: Collection[str]) -> str:
        """With these blocks; the nodes of the others are named."""
        parts, others, last = [f"## {self.node_id}"], [], ""
        for node_id, block, before in self.blocks:
            if node_id not in chosen and node_id != CUT:
                others.append(node_id)
                continue
            if before != last:
                parts.append(f"[after {before}]")
            parts.append(block)
            last = node_id
        if self.gone:
            parts.append(self.gone)
        if others:
            how = f'docmem_expand_to_length("{self.node_id}", 10000) shows the view.'
            parts.append(f"New or different, and too long to show here: {_listed(others)}. {how}")
        if self.left:
            parts.append(f"No longer shown: {_listed(self.left)}.")
        if self.is_whole:
            parts.append("Nothing of it is cut any more.")
        return "\n\n".join(parts)


def changes(views: Iterable[View]) -> list[Change]:
    """What there is to tell about these views of one session: a node that two servers show, once."""
    by_node: dict[str, list[View]] = {}
    for view in views:
        by_node.setdefault(view.node_id, []).append(view)
    return [found for same in by_node.values() if (found := _change(same))]


def _change(same: Sequence[View]) -> Change | None:
    """What there is to tell about the views of a node; None: nothing."""
    standing = [view for view in same if not view.gone]
    if not standing:
        return Change(same[-1].node_id, gone=same[-1].gone)
    seen = reduce(either, [view.seen for view in standing])
    view = standing[-1]
    now = stamps(view.shown)
    blocks, before = [], ""
    for node_id, block, stamp in view.shown:
        if seen.get(node_id) != stamp:
            blocks.append((node_id, block, before))
        before = node_id
    left = [node_id for node_id in seen if node_id not in now]
    if not blocks and not left:
        return None
    return Change(
        view.node_id,
        blocks=tuple(blocks),
        left=tuple(node_id for node_id in left if node_id != CUT),
        is_whole=CUT in left,
    )


def told(changes: Sequence[Change]) -> str:
    """The text for the model, fenced. Where it would be too long, of each view the last blocks that fit are
    shown, and the nodes of the others are named; short views come first in this."""
    chosen: list[set[str]] = [{node_id for node_id, _, _ in change.blocks} for change in changes]
    texts = [change.text(whole) for change, whole in zip(changes, chosen, strict=True)]
    if _length(text := _joined(texts)) <= LONGEST:
        return text
    order = sorted(range(len(changes)), key=lambda number: len(texts[number]))
    texts = [change.text(()) for change in changes]
    count = len(texts)
    while _length(text := _joined(texts[:count], len(texts) - count)) > LONGEST:
        count -= 1
    if count < len(texts):
        return text
    for number in order:
        change, taken, room = changes[number], set[str](), LONGEST - _length(text)
        for node_id, block, _ in reversed(change.blocks):
            if len(block) > room:
                continue
            texts[number] = change.text({*taken, node_id})
            if _length(longer := _joined(texts)) > LONGEST:
                break
            taken.add(node_id)
            text, room = longer, LONGEST - _length(longer)
        texts[number] = change.text(taken)
    return text


def _joined(texts: Sequence[str], more: int = 0) -> str:
    rest = [f"{more} more views changed; docmem_view shows one anew."] if more else []
    return fence("\n\n".join((_INTRODUCTION, *texts, *rest)), "backstory docmem")


def _length(text: str) -> int:
    """As Claude Code counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _listed(node_ids: Sequence[str]) -> str:
    rest = len(node_ids) - LONGEST_LIST
    return ", ".join(node_ids[:LONGEST_LIST]) + (f" and {rest} more" if rest > 0 else "")


# --- the file -----------------------------------------------------------------------------------------------


def is_name(session_id: str) -> bool:
    """Can it be the name of a file? Else its session is told nothing."""
    return _NAME.fullmatch(session_id) is not None


def waiting(data: str) -> set[str]:
    """The sessions for which there is something that the model has not seen, or maybe not. Looking twice, as
    the hook may rename a file while a folder is listed."""
    folder = _path(data, "")
    if not os.path.isdir(folder):
        return set()
    return {_session(name) for _ in range(2) for name in os.listdir(folder) if not name.startswith(".")}


def put(data: str, session_id: str, text: str) -> None:
    """Let it wait for the next prompt, in the place of what waited before: a string of JSON, which the hook
    puts into the answer that its client expects."""
    path, making = _path(data, session_id), _path(data, f".{session_id}")
    try:
        paths.make_folder(os.path.dirname(path))
        handle = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(handle, "w", encoding="ascii") as file:
            file.write(json.dumps(text) + "\n")
        os.rename(making, path)
    except OSError as error:
        untold = "the next prompt does not tell the model what changed in its views"
        raise StoreError(f"{untold}: {disk.sentence(error, data, os.path.dirname(path))}") from error


def withdraw(data: str, session_id: str) -> None:
    """Nothing waits any more."""
    path = _path(data, session_id)
    for file in (path, *glob.glob(f"{glob.escape(path)}.*")):
        _remove(file)


def sweep(data: str, sessions: Collection[str]) -> None:
    """Only these sessions are told anything: what waits for others is of servers that are gone."""
    folder = _path(data, "")
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if _session(name) not in sessions:
            _remove(os.path.join(folder, name))


def _session(name: str) -> str:
    """Whose file it is: it waits, or a hook has taken it, or it is being written."""
    return name.lstrip(".").partition(".")[0]


def _remove(file: str) -> None:
    with suppress(OSError):  # the hook was faster, or it cannot be removed: then it is told once too often
        os.unlink(file)


def _path(data: str, session_id: str) -> str:
    return os.path.join(data, "outbox", session_id)
