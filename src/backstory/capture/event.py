"""A hook payload becomes an event: read by the client, made safe to store, trusted afterwards.

Every text in an event has been through `clean`: recalled text taken out, secrets and private parts redacted,
nothing in it that SQLite could not hold. Only the working folder and the paths of changed files stay as they
are: they say which project this is, and which file to look at.
"""

from __future__ import annotations

import json
import re

from backstory.blob import digest
from backstory.capture import changes
from backstory.capture.ignore import ALWAYS, Ignored
from backstory.clients import claude_code
from backstory.clients.canonical import (
    AGENT,
    ASK,
    COMPACTION,
    NOTIFICATION,
    PLAN,
    PROMPT,
    SEARCH,
    SHELL,
    TURN_END,
)
from backstory.errors import BadPayload
from backstory.safety.clean import CUT_MARGIN, TEXT_LIMIT, clean, excerpt, storable
from backstory.safety.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.clients.canonical import Event, Use

RESULT_LIMIT = 10_000  # characters of JSON; more is not a memory
SAID_LIMIT = 100_000  # of a prompt, an answer, or the summary of a compaction
ROOM = 24_000  # characters of a tool's input or result that are looked at; a trace shows a few hundred
REASON_LIMIT = 200
ID_LIMIT = 200
AGENT_LIMIT = 80
CHANGE_LIMIT = 2_000  # characters of a text that was written or replaced, for synthesis
PRINTED_LIMIT = 24_000  # of what a shell printed, to look for errors and commits in
EXCERPT_LIMIT = 4_000  # of any one string in a result that is too large to be a memory
EXCERPT_ROOM = 8_000  # of such a result altogether
PUT_ASIDE_LIMIT = 200_000  # of a payload that could not be stored
SAYING = (NOTIFICATION, TURN_END, COMPACTION)  # what has only the id of the prompt before it
TELLING = (SHELL, SEARCH, ASK, PLAN, AGENT)  # of their results a trace or a turn says something
_STRING = re.compile(r'(?s)"(?:[^"\\]|\\.)*+"?')  # of JSON


def read_event(raw: bytes, *, spool_name: str, at: int, ignored: Ignored = ALWAYS) -> Event:
    """The event in a payload, or BadPayload with the reason."""
    try:
        return _event(_parse(raw), spool_name, at, ignored)
    except BadPayload as error:  # it may quote the payload
        raise BadPayload(clean(str(error), REASON_LIMIT)) from error
    except RecursionError as error:
        raise BadPayload("nested too deep") from error


def redacted_payload(raw: bytes) -> str:
    """What may be kept of a payload that could not be stored: as it came where it is short and says nothing
    secret. What cannot be read cannot be redacted, and is left out: a string that was cut off may end with
    half a secret."""
    text = _text(raw)
    try:
        value = json.loads(text)
        kept = _excerpt_of(value, SAID_LIMIT, [SAID_LIMIT])
        written = text if kept == value else json.dumps(kept, ensure_ascii=False)
    except (ValueError, RecursionError):
        written = clean(_STRING.sub(_redacted_string, text[:SAID_LIMIT]), SAID_LIMIT)
        if len(text) > SAID_LIMIT:
            written = written[:-CUT_MARGIN]
    return redact(written)[:PUT_ASIDE_LIMIT]  # a value may show what it is only beside its name


def _text(raw: bytes) -> str:
    """Up to what is no text."""
    raw = raw.partition(b"\0")[0]
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        return raw[: error.start].decode("utf-8", "surrogatepass")


def _redacted_string(string: re.Match[str]) -> str:
    try:
        value = json.loads(string[0], strict=False)
    except ValueError:
        return ""
    kept = excerpt(value, SAID_LIMIT)
    return string[0] if kept == value else json.dumps(kept, ensure_ascii=False)


def past_event(
    payload: dict[str, object], *, name: str, at: int, for_synthesis: bool, ignored: Ignored
) -> Event:
    """The same of a payload that a client's transcript tells of; `name` is its key where it has no id. What
    only synthesis looks at is left out where there will be none."""
    event = _event(payload, name, at, ignored, for_synthesis=for_synthesis)
    if payload.get("is_joined"):
        event.key = event.words_key or event.key
    return event


def _event(
    payload: dict[str, object], name: str, at: int, ignored: Ignored, *, for_synthesis: bool = True
) -> Event:
    event = claude_code.read(payload)
    event.at = at
    event.changed = changes.changed(event)
    ignored.apply(event)
    _clean(event, name, for_synthesis)
    return event


def _parse(raw: bytes) -> dict[str, object]:
    try:
        payload = json.loads(raw)
    except ValueError as error:
        raise BadPayload(f"not JSON: {error}" if raw.strip() else "empty payload") from error
    if not isinstance(payload, dict):
        raise BadPayload(f"not a JSON object but {type(payload).__name__}")
    return payload


def _clean(event: Event, name: str, for_synthesis: bool) -> None:
    event.session_id = clean(event.session_id, ID_LIMIT)
    event.cwd = storable(event.cwd)
    event.agent = clean(event.agent, AGENT_LIMIT)
    event.source = clean(event.source, AGENT_LIMIT)
    if event.kind in (PROMPT, NOTIFICATION):
        event.text = clean(event.text, SAID_LIMIT)
    else:
        event.text = excerpt(event.text, SAID_LIMIT)
    if event.kind == COMPACTION:
        event.text = claude_code.without_messages(event.text)
    if event.use:
        _clean_use(event.use, for_synthesis)
    # By the client's own id, so that two registrations of the plugin store an event once, and a transcript
    # tells nothing twice. An id that cannot be kept as it is would no longer tell events apart; then the
    # spool's name does.
    if event.id is not None and event.id != clean(event.id, ID_LIMIT):
        event.id = None
    event.key = name if event.id is None else f"{event.session_id}:{event.id}:{event.name}"
    if event.id is not None and event.kind in (PROMPT, *SAYING):
        event.words_key = f"{event.key}:{digest(''.join(event.text.split()).encode())[:16]}"
    if event.kind in SAYING:
        event.key = event.words_key or event.key


def _clean_use(use: Use, for_synthesis: bool) -> None:
    use.tool = clean(use.tool, ID_LIMIT)
    use.given = _clean_dict(use.given)
    use.more_paths = [clean(path) for path in use.more_paths]
    written = _excerpt_of(use.written, CHANGE_LIMIT, [EXCERPT_ROOM]) if for_synthesis else {}
    use.written = written if isinstance(written, dict) else {}
    if use.action == SHELL and len(said := use.output if use.error is None else use.error) > EXCERPT_LIMIT:
        use.printed = excerpt(said, PRINTED_LIMIT)
    if use.error is not None:
        use.error = excerpt(use.error, TEXT_LIMIT)
        return
    size = len(json.dumps(use.result, ensure_ascii=False, separators=(",", ":")))
    use.too_large = size > RESULT_LIMIT
    if not for_synthesis and use.action not in TELLING:
        use.result = None
    elif use.too_large:
        use.excerpt, use.result = _excerpt_of(use.result, EXCERPT_LIMIT, [EXCERPT_ROOM]), None
    else:
        use.result = _clean_dict({"": use.result})[""]


def _excerpt_of(part: object, limit: int, room: list[int]) -> object:
    """A value of JSON with every text in it cut, as far as the room goes."""
    room[0] -= 8
    if isinstance(part, str):
        cut = excerpt(part, max(0, min(limit, room[0])))
        room[0] -= len(cut)
        return cut
    if isinstance(part, dict):
        return {
            clean(name, ID_LIMIT): _excerpt_of(inner, limit, room)
            for name, inner in part.items()
            if room[0] > 0
        }
    if isinstance(part, list):
        return [_excerpt_of(inner, limit, room) for inner in part if room[0] > 0]
    return part


def _clean_dict(given: dict[str, object]) -> dict[str, object]:
    """The same with every text in it clean, as far as the room goes."""
    room = ROOM

    def visit(part: object) -> object:
        nonlocal room
        room -= 8
        if isinstance(part, str):
            cleaned = clean(part, min(TEXT_LIMIT, max(0, room)))
            room -= len(part)
            return cleaned
        if isinstance(part, dict):
            return {clean(name, ID_LIMIT): visit(inner) for name, inner in part.items() if room > 0}
        if isinstance(part, list):
            return [visit(inner) for inner in part if room > 0]
        return part

    return {clean(name, ID_LIMIT): visit(part) for name, part in given.items() if room > 0}
