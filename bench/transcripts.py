"""Transcripts of Claude Code (~/.claude/projects/**/*.jsonl) lived again in another folder: as the payloads
that its hooks would have been given there, and as transcripts that might have been written there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from backstory.clients.claude_transcript import Entry, Payload, Reader, entry_of

START_BEFORE_MS = 1_000  # a session starts before the first thing that is written down
END_AFTER_MS = 1_000


def payloads(lines: Iterable[bytes], project: str) -> list[Payload]:
    """Those of one transcript, in order; none where it holds no session."""
    entries = list(_entries(lines))
    if not entries:
        return []
    session = Reader(entries[0]["sessionId"])
    found = [payload for entry in entries for payload in session.take(entry)] + list(session.end())
    if not found:
        return []
    common = {"session_id": session.id, "cwd": found[0]["cwd"]}
    start = {**common, "hook_event_name": "SessionStart", "source": "startup"}
    end = {**common, "hook_event_name": "SessionEnd", "reason": "other"}
    found.insert(0, {**start, "at": found[0]["at"] - START_BEFORE_MS})
    found.append({**end, "at": found[-1]["at"] + END_AFTER_MS})
    move = _Move((entry["cwd"] for entry in entries), project)
    return [move.value(payload) for payload in found]


def moved(lines: Iterable[bytes], project: str, shift: int) -> Iterator[bytes]:
    """The lines of the same transcript, had its session been in that folder so many milliseconds later."""
    several = list(lines)
    move = _Move((entry["cwd"] for entry in _entries(several)), project)
    for line in several:
        try:
            entry = json.loads(line)
            at = datetime.fromisoformat(entry["timestamp"]).timestamp()
        except (ValueError, KeyError, TypeError):
            yield line
            continue
        entry = move.value(entry)
        entry["timestamp"] = datetime.fromtimestamp(at + shift / 1000, UTC).isoformat()
        if isinstance(entry.get("data"), dict) and isinstance(entry["data"].get("message"), dict):
            entry["data"]["message"]["timestamp"] = entry["timestamp"]
        yield json.dumps(entry).encode() + b"\n"


def began(lines: Iterable[bytes]) -> int | None:
    """When the first thing in a transcript happened; None where it holds no session."""
    return next((int(entry["at"]) for entry in _entries(lines)), None)


def _entries(lines: Iterable[bytes]) -> Iterator[Entry]:
    for line in lines:
        try:
            entry = entry_of(line)
        except ValueError:
            continue  # the client was killed while it wrote
        if entry is not None:
            yield entry


class _Move:
    """From the folders that a session worked in to another. `/a/b` is not the beginning of `/a/b-2`."""

    def __init__(self, folders: Iterable[str], to: str) -> None:
        self._to = to
        top: list[str] = []
        for folder in sorted(set(folders), key=len):
            if not any(folder.startswith((f"{one}/", f"{one}\\")) for one in top):
                top.append(folder)
        self._windows = any("\\" in one for one in top)
        self._from = re.compile(
            rf"(?:{'|'.join(map(re.escape, sorted(top, key=len, reverse=True)))})(?![\w-])"
        )
        self._below = re.compile(re.escape(to) + r"(?:\\[\w.\- ]+)+")

    def text(self, text: str) -> str:
        text = self._from.sub(lambda _: self._to, text)
        return self._below.sub(lambda path: path[0].replace("\\", "/"), text) if self._windows else text

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {name: self.value(one) for name, one in value.items()}
        return value


# --- turns --------------------------------------------------------------------------------------------------

NOTIFICATION = "<task-notification>"  # a background task's report, which comes as a prompt


@dataclass(frozen=True, slots=True)
class Turn:
    """From the first prompt after a Stop to the next one; what is left at the end of a session is one too."""

    session_id: str
    prompts: tuple[str, ...]
    answer: str  # the assistant's last message
    first: int  # times of its first and last event
    last: int
    stopped: bool

    @property
    def text(self) -> str:
        return "\n\n".join((*self.prompts, self.answer))


def turns(session: Iterable[Payload]) -> list[Turn]:
    """Those of one session's payloads."""
    found: list[Turn] = []
    turn: list[Payload] = []
    for payload in session:
        name = payload["hook_event_name"]
        if name == "SessionEnd" or (name == "SessionStart" and not turn):
            continue
        turn.append(payload)
        if name == "Stop":
            found.append(_turn(turn))
            turn = []
    return [*found, _turn(turn)] if turn else found


def _turn(several: list[Payload]) -> Turn:
    prompts = [payload["prompt"] for payload in several if "prompt" in payload]
    last = several[-1]
    return Turn(
        session_id=last["session_id"],
        prompts=tuple(prompt for prompt in prompts if not prompt.startswith(NOTIFICATION)),
        answer=last.get("last_assistant_message", ""),
        first=several[0]["at"],
        last=last["at"],
        stopped=last["hook_event_name"] == "Stop",
    )
