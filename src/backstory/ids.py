"""Ids that people and models see. The random bytes come straight from the system: no module to load."""

import os

from backstory.blob import digest

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # 32 signs without i, l, o, u, so that none is misread
MEMORY_PREFIX = "mem_"


def new_id(prefix: str = MEMORY_PREFIX) -> str:
    """60 random bits: a collision among a million memories is a one in two million event, and then refused
    by the UNIQUE column."""
    return prefix + "".join(_ALPHABET[byte & 31] for byte in os.urandom(12))


def derived(*parts: str, prefix: str = MEMORY_PREFIX) -> str:
    """The same for the same parts: what is made of an event has one id, wherever and however often that event
    is taken in."""
    bits = int(digest("\n".join(parts).encode("utf-8", "replace"))[:15], 16)
    return prefix + "".join(_ALPHABET[bits >> 5 * place & 31] for place in range(12))


def is_memory_id(text: str) -> bool:
    rest = text.removeprefix(MEMORY_PREFIX)
    return rest != text and len(rest) == 12 and all(sign in _ALPHABET for sign in rest)
