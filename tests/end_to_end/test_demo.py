"""What `make demo` shows, from the first hook to a CLAUDE.md that follows an edit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow


def test_the_demo_runs_to_its_end_and_shows_a_claude_md_that_followed_an_edit(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    command = [sys.executable, os.path.join(REPOSITORY, "demo", "run.py")]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "- Lint: `make lint` (from `Makefile`)" in ran.stdout.rpartition("the turn ends")[2]
