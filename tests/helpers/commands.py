"""`backstory` and the hook as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import HOOK

BACKSTORY = os.path.join(os.path.dirname(sys.executable), "backstory")


def backstory(*args: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BACKSTORY, *args], cwd=cwd, input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


def hook(payload: dict[str, object], *args: str) -> None:
    subprocess.run(["sh", str(HOOK), *args], input=json.dumps(payload).encode(), check=True)


def tool_use(cwd: Path, command: str, session: str = "s1") -> dict[str, object]:
    return {
        "hook_event_name": "PostToolUse",
        "session_id": session,
        "cwd": str(cwd),
        "tool_name": "Bash",
        "tool_use_id": f"toolu_{command}",
        "tool_input": {"command": command},
        "tool_response": {"stdout": "fine", "stderr": ""},
    }
