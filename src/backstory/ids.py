"""Ids that people and models see. The random bytes come straight from the system: no module to load."""

import os

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # 32 signs without i, l, o, u, so that none is misread
MEMORY_PREFIX = "mem_"


def new_id(prefix: str = MEMORY_PREFIX) -> str:
    """60 random bits: a collision among a million memories is a one in two million event, and then refused
    by the UNIQUE column."""
    return prefix + "".join(ALPHABET[byte & 31] for byte in os.urandom(12))


def is_id(text: str, prefix: str = MEMORY_PREFIX) -> bool:
    rest = text.removeprefix(prefix)
    return len(rest) == 12 and len(text) == len(prefix) + 12 and all(sign in ALPHABET for sign in rest)
