"""How time grows with the input."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

Text = TypeVar("Text", str, bytes)


def assert_linear(work: Callable[[Text], object], short: Text, long: Text) -> float:
    """`long` is four times as long and takes less than 8 times as long; by the square it would be 16 times.

    Tells how long that is: processor time, the best of as many as five tries, because other processes share
    the machine's caches.
    """
    little = much = float("inf")
    for _ in range(5):
        little = min(little, processor_time(work, short))
        much = min(much, processor_time(work, long))
        if much < 8 * max(little, 0.001):
            return much
    pytest.fail(f"{little:.3f} s became {much:.3f} s")


def processor_time(work: Callable[[Text], object], text: Text) -> float:
    """Without the collector of garbage, which goes through all that the other tests have left."""
    gc.disable()
    try:
        began = time.process_time()
        work(text)
        return time.process_time() - began
    finally:
        gc.enable()
