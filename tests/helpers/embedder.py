"""The default embedder, loaded once for all commands that run in this process."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from backstory.recall.embedders.static import Static


@cache
def _loaded() -> Static:
    from backstory.recall.embedders.static import Static

    return Static()


@pytest.fixture(autouse=True)
def loaded_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import this where commands search: to read the tokenizer takes ten times as long as they do."""
    _loaded()
    monkeypatch.setattr("backstory.recall.embedders.static.Static", _loaded)
