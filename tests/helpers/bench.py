"""A benchmark that runs in this process: importing what it needs takes longer than a short run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest


def bench(
    script: str, *options: str | Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]
) -> str:
    """What it prints. Its exit code is 1 where a budget is missed, as on a busy machine it may be."""
    patch.setattr(sys, "argv", [script, *map(str, options)])
    captured.readouterr()
    code = importlib.import_module(script.removesuffix(".py")).main()
    said = captured.readouterr()
    assert code in (0, 1)
    assert not said.err  # its own, and what its servers say
    return said.out
