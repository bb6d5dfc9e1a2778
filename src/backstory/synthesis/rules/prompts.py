"""What of a prompt is a request, and what only yes, thanks or a command to the client."""

from __future__ import annotations

import re

_ACK = re.compile(
    r"(?:ok(?:ay)?|yes|yep|yeah|no|sure|thanks?|thank you|thx|ty|great|nice|cool|super|perfect|good|fine"
    r"|right|lol|haha|go(?: ahead| on)?|continue|proceed|do it|please|pls|bye|hi|hello|hey|done|agreed"
    r"|exactly|correct|that's it|for (?:today|now)|looks? good|lgtm|sounds good|works|awesome|wonderful"
    r"|alright|then|very much|so|much|and|a lot)"
    r"(?:\W+|$)",
    re.I,
)


def is_request(prompt: str) -> bool:
    """Something the user wants, not a command to the client, a yes or a thank you."""
    text = prompt.strip()
    if not text or (text.startswith("/") and re.match(r"/[\w:-]{1,60}(?:\s|$)", text)):
        return False
    rest = text[:400]
    for _ in range(12):
        ack = _ACK.match(rest)
        if not ack or not ack.end():
            break
        rest = rest[ack.end() :]
    return len(rest.split()) >= 3 or len(rest) >= 12


_LEAD = re.compile(
    r"(?:ok(?:ay)?|hm+|ah|oh|so|hi|hey|hello|lol|haha)\b[\s,.!:;-]+|(?:yes|yeah|no|sure|thanks?|thank you"
    r"|thx|great|nice|cool|super|perfect|good|fine|right|well|awesome|convinced|agreed)"
    r"[,.!:;-]+\s+",
    re.I,
)


def without_acks(prompt: str) -> str:
    """'ok. nice, thx! are they affected too?' is about whether they are."""
    rest = prompt.strip()
    for _ in range(6):
        ack = _LEAD.match(rest)
        if not ack:
            break
        rest = rest[ack.end() :]
    return rest
