"""What the tests of the worker start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.worker_desk import Desk


@pytest.fixture
def desk(data: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr("backstory.synthesis.runner.POLL_SECONDS", 0.02)
    return Desk(data)
