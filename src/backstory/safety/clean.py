"""The one way in for text: recalled passages taken out, secrets and private parts redacted, and nothing left
that SQLite could not hold.
"""

from __future__ import annotations

import sys

from backstory.safety import fence
from backstory.safety.redact import redact

TEXT_LIMIT = 8_000  # of any one string; no memory shows that much of a trace
CLOSING = "</private>"
CUT_MARGIN = 4_000  # redaction sees this much beyond a cut, so that no cut leaves half a secret


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
    # The whole is cleaned before the cut: half a fence, half a private passage or key is not seen as one.
    return without_middle(redact(fence.remove(storable(text))), limit)


def without_middle(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    left_out = f"[... {len(text) - 2 * half:,} of {len(text):,} characters left out ...]"
    return f"{text[:half]}\n{left_out}\n{text[len(text) - half :]}"


def storable(text: str) -> str:
    """JSON can spell half a surrogate pair and NUL; SQLite's text can hold neither."""
    if text.isascii():
        return text.replace("\0", "") if "\0" in text else text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
