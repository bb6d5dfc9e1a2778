"""What glibc's malloc keeps of the memory that was freed. With another C library nothing happens."""

from __future__ import annotations

import ctypes

ARENA_MAX = -8  # glibc's number


def one_for_all_threads() -> None:
    """Threads that are yet to start get no heaps of their own, which are never quite used: under Python one
    of them runs at a time anyway."""
    _call("mallopt", ARENA_MAX, 1)


def give_back() -> None:
    """After something that needed much for a moment."""
    _call("malloc_trim", 0)


def _call(name: str, *values: int) -> None:
    try:
        getattr(ctypes.CDLL(None), name)(*values)
    except (AttributeError, OSError):
        pass
