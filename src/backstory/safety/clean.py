"""The one way in for text: recalled passages taken out, secrets and private parts redacted, and nothing left
that SQLite could not hold.
"""

from __future__ import annotations

import re
import sys

from backstory.safety import fence
from backstory.safety.redact import redact

TEXT_LIMIT = 8_000  # of any one string; no memory shows that much of a trace
CLOSING = "</private>"
CUT_MARGIN = 4_000  # redaction sees this much beyond a cut, so that no cut leaves half a secret
LONG = 200_000  # characters; from here on the middle of an excerpt is not looked at
END_MARGIN = 20_000  # the same before the end of a long text: more than the longest key has
# What may open a private passage, disguised or not: it may go on to the end.
_ANY = r"(?:\x1b\[[0-?]*+[ -/]*+[@-~]|[\W_])*+"
_PRIVATE = re.compile(rf"(?i)<{_ANY}{_ANY.join('private')}")


def clean(text: str, limit: int = TEXT_LIMIT, *, may_quote: bool = False) -> str:
    """Text that may be stored. What may quote recalled text, as a document about us does, keeps it."""
    window = storable(text[: limit + CUT_MARGIN])
    if "</private" in text[limit + CUT_MARGIN :].lower():  # whatever it closes is private up to the cut
        window += CLOSING
    cleaned = redact(window if may_quote else fence.remove(window)).removesuffix(CLOSING)
    if len(text) > limit + CUT_MARGIN:  # what stands at the cut may be half a secret
        cleaned = cleaned[: max(0, len(cleaned) - CUT_MARGIN)]
    return cleaned[:limit]


def clean_whole(text: str, *, may_quote: bool = False) -> tuple[str, bool]:
    """Text that nobody cuts silently, and whether something private or secret was left out of it."""
    cleaned = clean(text, sys.maxsize, may_quote=may_quote)
    return cleaned, cleaned != text.replace("\0", "")


def excerpt(text: str, limit: int) -> str:
    """A clean text cut in the middle, with its size: what matters stands at the beginning and at the end."""
    # The whole is cleaned before the cut: half a fence, half a private passage or key is not seen as one. Of
    # a long text that would take minutes; there, what may be half of something is left out.
    text = fence.remove(storable(text))
    if len(text) <= LONG:
        return without_middle(redact(text), limit)
    half = limit // 2
    end = "" if _PRIVATE.search(text) else redact(text[-half - END_MARGIN :])[END_MARGIN:]
    return _joined(clean(text, half), end[max(0, len(end) - half) :], len(text))


def without_middle(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return _joined(text[:half], text[len(text) - half :], len(text))


def _joined(beginning: str, end: str, size: int) -> str:
    left_out = size - len(beginning) - len(end)
    return f"{beginning}\n[... {left_out:,} of {size:,} characters left out ...]\n{end}"


def storable(text: str) -> str:
    """JSON can spell half a surrogate pair and NUL; SQLite's text can hold neither."""
    if text.isascii():
        return text.replace("\0", "") if "\0" in text else text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
