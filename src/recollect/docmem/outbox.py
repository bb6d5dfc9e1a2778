"""What a model is to be told at its next prompt: how its live views differ from what it last saw of them.

It waits as one line of JSON in `outbox/<session>`, which the prompt's hook takes, prints and removes. A hook
that was killed on the way leaves `<session>.<name>` behind.

Every node of a view has a mark, which changes when the node does. `seen` has the marks of what the model saw,
`offered` those of what waits. As long as it waits nobody can know which of the two holds: the hook may come
at any moment. Where they differ the mark is UNKNOWN, which equals no other, so the node is told again. To
tell something twice is the worst that can happen.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from recollect.errors import StoreError
from recollect.fence import fence
from recollect.store.views import Block, Marks, View

UNKNOWN = "?"
CUT = ""  # stands in the place of a node id for the line that says that a view is cut
LONGEST = 8_000  # Claude Code puts anything above about 10,000 aside and shows the model its beginning
LONGEST_LIST = 30  # ids in one

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_INTRODUCTION = (
    "These live views of docmem changed since you last saw them. Only what is new or different is shown,"
    " as it is now."
)


# --- what the model saw -------------------------------------------------------------------------------------


def marks(shown: Sequence[Block]) -> Marks:
    return {node_id: mark for node_id, _, mark in shown}


def either(seen: Marks, offered: Marks) -> Marks:
    """What the model saw, when it saw one or the other."""
    return {
        node_id: seen[node_id] if seen.get(node_id) == offered.get(node_id) else UNKNOWN
        for node_id in {**seen, **offered}
    }


# --- what it is told ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """How one view differs from what the model saw of it."""

    node_id: str
    is_deleted: bool = False
    blocks: tuple[tuple[str, str, str], ...] = ()  # node, block, the node before it in the document
    gone: tuple[str, ...] = ()  # nodes that are shown no longer
    is_whole: bool = False  # nothing is cut any more

    @property
    def whole(self) -> str:
        if self.is_deleted:
            return f"## {self.node_id}\n\nThis node was deleted, and its view is gone."
        parts, last = [], ""
        for node_id, block, before in self.blocks:
            if before != last:
                parts.append(f"[after {before}]")
            parts.append(block)
            last = node_id
        return "\n\n".join((f"## {self.node_id}", *parts, *self._ends()))

    @property
    def brief(self) -> str:
        changed = [node_id for node_id, _, _ in self.blocks if node_id != CUT]
        if not changed:
            return self.whole
        said = f"{_listed(changed)}: new or different, and too long to show here."
        how = f'docmem_expand_to_length("{self.node_id}", 10000) shows the view.'
        return "\n\n".join((f"## {self.node_id}", f"{said} {how}", *self._ends()))

    def _ends(self) -> list[str]:
        ends = [f"No longer shown: {_listed(self.gone)}."] if self.gone else []
        return [*ends, "Nothing of it is cut any more."] if self.is_whole else ends


def change(view: View) -> Change | None:
    """What there is to tell about a view; None: nothing."""
    if view.shown is None:
        return Change(view.node_id, is_deleted=True)
    now = marks(view.shown)
    blocks, before = [], ""
    for node_id, block, mark in view.shown:
        if view.seen.get(node_id) != mark:
            blocks.append((node_id, block, before))
        before = node_id
    gone = [node_id for node_id in view.seen if node_id not in now]
    if not blocks and not gone:
        return None
    return Change(
        view.node_id,
        blocks=tuple(blocks),
        gone=tuple(node_id for node_id in gone if node_id != CUT),
        is_whole=CUT in gone,
    )


def told(changes: Sequence[Change]) -> str:
    """The text for the model, fenced. Views that change too much are only named, the longest first."""
    texts = [change.whole for change in changes]
    for number in sorted(range(len(texts)), key=lambda number: -len(texts[number])):
        if _length(text := _joined(texts)) <= LONGEST:
            return text
        texts[number] = changes[number].brief
    shown = len(texts)
    while _length(text := _joined(texts[:shown], len(texts) - shown)) > LONGEST:
        shown -= 1
    return text


def _joined(texts: Sequence[str], more: int = 0) -> str:
    rest = [f"{more} more views changed; docmem_view shows one anew."] if more else []
    return fence("\n\n".join((_INTRODUCTION, *texts, *rest)), "recollect docmem")


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


def is_waiting(data: str, session_id: str) -> bool:
    """Is there something that the model has not seen, or maybe not? The order matters: the hook renames the
    one to the other."""
    path = _path(data, session_id)
    return os.path.lexists(path) or bool(_left_behind(path))


def put(data: str, session_id: str, text: str) -> None:
    """Let it wait for the next prompt, in the place of what waited before."""
    path, making = _path(data, session_id), _path(data, f".{session_id}")
    said = {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": text}}
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        handle = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(handle, "w", encoding="ascii") as file:
            file.write(json.dumps(said) + "\n")
        os.rename(making, path)
    except OSError as error:
        raise StoreError(
            f"{os.path.dirname(path)} cannot be written ({error.strerror}), so the next prompt does not tell"
            " the model what changed in its views; mend that, and the next edit does"
        ) from error


def withdraw(data: str, session_id: str) -> None:
    """Nothing waits any more."""
    path = _path(data, session_id)
    for file in (path, *_left_behind(path)):
        _remove(file)


def sweep(data: str, sessions: Collection[str]) -> None:
    """Only these sessions are told anything: what waits for others is of servers that are gone."""
    folder = _path(data, "")
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name.lstrip(".").partition(".")[0] not in sessions:
            _remove(os.path.join(folder, name))


def _remove(file: str) -> None:
    try:
        os.unlink(file)
    except OSError:
        pass  # the hook was faster, or it cannot be removed: then it is told once too often


def _left_behind(path: str) -> list[str]:
    return glob.glob(f"{glob.escape(path)}.*")


def _path(data: str, session_id: str) -> str:
    return os.path.join(data, "outbox", session_id)
