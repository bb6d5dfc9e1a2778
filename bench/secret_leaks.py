"""How many kinds of secrets reach the data folder, the whole way: hook, spool, drain, worker, backup.

A module (`--kinds`) has the material: KINDS of secrets in snippets, PLACEMENTS that put a snippet into hook
payloads, and LOOKALIKES that must stay as they are. Every kind goes through every placement, each time with
another value. Afterwards every file below the data folder is searched as bytes. A kind leaks if any of its
placements does. Beside it, on the same snippets: detect-secrets with its default plugins, and with
`--gitleaks FILE` (its config/gitleaks.toml) the rules of gitleaks that Python can read.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import math
import os
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import report
from report import Budget
from rich.console import Console
from rich.table import Table

import backstory
from backstory.safety.redact import redact
from backstory.store.file import backup
from backstory.surfaces.opened import open_drained
from backstory.synthesis.local import Local
from backstory.synthesis.runner import Settings, Worker

Payload = dict[str, Any]
Secret = str | tuple[str, ...]

PACKAGE = Path(backstory.__file__).parent
HOOK = PACKAGE / "plugin" / "hooks" / "hook.sh"
# Claude Code runs no hook of ours for other events.
# Of what is about to happen hook.sh keeps nothing.
EVENTS = set(json.loads(HOOK.with_name("hooks.json").read_text())["hooks"]) - {"PreToolUse", "SubagentStart"}
KINDS = Path(__file__).parent.parent / "tests" / "safety" / "secret_kinds.py"
GROUP = 15  # kinds in one data folder: a small one is searched faster
THROUGH_THE_SCRIPT = 3  # payloads of a group; the rest is put where the script would have put it
START = 1_750_000_000_000


@dataclass(frozen=True, slots=True)
class Case:
    kind: str
    placement: str
    snippet: str
    secrets: tuple[str, ...]
    payloads: list[Payload]


def main() -> int:
    options = _options()
    kinds = load(options.kinds)
    leaks = {seed: leaked(cases_of(kinds, seed), options.dir) for seed in range(options.seeds)}
    false = false_positives(kinds)
    changed, lines = (0, 0) if options.no_library else library_lines_changed()
    others: dict[str, Finder] = {"detect-secrets": found_by_detect_secrets}
    if options.gitleaks:
        others["gitleaks' rules"] = gitleaks_finder(options.gitleaks)
    missed = {name: missed_by(finder, kinds) for name, finder in others.items()}
    most = max(len(found) for found in leaks.values())
    figures = {
        "kinds": len(kinds.KINDS),
        "placements": len(kinds.PLACEMENTS),
        "leaked": {str(seed): {kind: sorted(where) for kind, where in leaks[seed].items()} for seed in leaks},
        "lookalikes": len(kinds.LOOKALIKES),
        "false_positives": false,
        "library_lines": lines,
        "library_lines_changed_per_10000": round(changed / lines * 10_000, 2) if lines else None,
        "missed_by": missed,
    }
    budgets = [
        Budget("kinds that leak", "at most", math.floor(0.02 * len(kinds.KINDS)), most),
        Budget("look-alikes changed", "at most", 0, len(false)),
    ]
    if lines:
        budgets.append(Budget("library lines changed in 10,000", "at most", 1, changed / lines * 10_000))

    def show(console: Console) -> None:
        table = Table("", "kinds missed", "of", "which")
        for seed, found in leaks.items():
            which = ", ".join(f"{kind} ({len(where)})" for kind, where in found.items())
            table.add_row(f"backstory, seed {seed}", str(len(found)), str(len(kinds.KINDS)), which)
        for name, kinds_missed in missed.items():
            table.add_row(name, str(len(kinds_missed)), str(len(kinds.KINDS)), "")
        console.print(table)
        console.print(f"look-alikes changed: {len(false)} of {len(kinds.LOOKALIKES)} {', '.join(false)}")
        if lines:
            console.print(f"library lines changed: {changed} of {lines:,}")

    return report.tell("secret_leaks", options, figures, budgets, show)


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument(
        "--kinds", type=Path, default=KINDS, help="a module with KINDS, PLACEMENTS, LOOKALIKES"
    )
    parser.add_argument("--gitleaks", type=Path, metavar="FILE", help="gitleaks' config/gitleaks.toml")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--no-library", action="store_true", help="leave the lines of installed code out")
    parser.add_argument("--dir", help="where the data folders lie; default: the folder for temporary files")
    return parser.parse_args()


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("secret_kinds_under_test", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- the whole way ----------------------------------------------------------------------------------------


def cases_of(kinds: ModuleType, seed: int, *, rotating: bool = False) -> Iterator[Case]:
    """Every kind in every placement; or, rotating, each in the one whose turn it is."""
    for number, (kind, make) in enumerate(kinds.KINDS):
        placements = kinds.PLACEMENTS
        if rotating:
            placements = [placements[(number + seed) % len(placements)]]
        for placement, place in placements:
            rng = random.Random(f"{seed} {kind} {placement}")  # noqa: S311 - the same in every run
            snippet, secret = make(rng)
            payloads = [payload for payload in place(snippet, rng) if payload["hook_event_name"] in EVENTS]
            yield Case(kind, placement, snippet, pieces(secret), payloads)


def pieces(secret: Secret) -> tuple[str, ...]:
    return (secret,) if isinstance(secret, str) else tuple(secret)


def leaked(cases: Iterable[Case], above: str | None = None) -> dict[str, set[str]]:
    """kind -> the placements in which it reached the data folder."""
    groups: dict[int, list[Case]] = {}
    numbers: dict[str, int] = {}
    for case in cases:
        number = numbers.setdefault(case.kind, len(numbers))
        groups.setdefault(number // GROUP, []).append(case)
    found: dict[str, set[str]] = {}
    for group in groups.values():
        with tempfile.TemporaryDirectory(prefix="backstory-secrets-", dir=above) as folder:
            data = Path(folder, "data")
            project = Path(folder, "project")
            project.mkdir()
            capture(group, data, project)
            process(data)
            stored = [path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()]
        for case in group:
            if any(form in file for secret in case.secrets for form in forms(secret) for file in stored):
                found.setdefault(case.kind, set()).add(case.placement)
    return found


def forms(secret: str) -> set[bytes]:
    """As it is, and as JSON within JSON spells it."""
    found = {secret}
    for _ in range(2):
        found |= {json.dumps(form, ensure_ascii=ascii)[1:-1] for form in found for ascii in (True, False)}
    return {form.encode() for form in found}


def capture(cases: list[Case], data: Path, project: Path) -> None:
    for part in ("tmp", "new", "failed"):
        (data / "spool" / part).mkdir(parents=True, mode=0o700)
    left = THROUGH_THE_SCRIPT
    for number, case in enumerate(cases):
        session = str(uuid.UUID(int=number + 1))
        for step, payload in enumerate([*case.payloads, *_ending()]):
            text = json.dumps(_filled(payload, session, str(project)))
            if left and number % 7 == 0 and step == 0:
                left -= 1
                env = {"BACKSTORY_HOME": str(data), "PATH": os.environ["PATH"]}
                subprocess.run(["/bin/sh", HOOK], input=text, text=True, env=env, check=True, timeout=20)
                (path,) = [path for path in (data / "spool/new").iterdir() if "-step" not in path.name]
                path = path.rename(path.with_name(f"{number}-step{step}"))
            else:
                path = data / "spool" / "new" / f"{number}-step{step}"
                path.write_text(text)
            at = (START + number * 1_000 + step) * 1_000_000
            os.utime(path, ns=(at, at))


def _ending() -> list[Payload]:
    about = {"session_id": "SESSION", "cwd": "CWD"}
    return [
        {**about, "hook_event_name": "Stop", "last_assistant_message": "Done.", "stop_hook_active": False},
        {**about, "hook_event_name": "SessionEnd", "reason": "other"},
    ]


def _filled(part: Any, session: str, cwd: str) -> Any:
    if isinstance(part, dict):
        return {name: _filled(inner, session, cwd) for name, inner in part.items()}
    if isinstance(part, list):
        return [_filled(inner, session, cwd) for inner in part]
    if isinstance(part, str) and (part == "CWD" or part.startswith("CWD/")):
        return cwd + part.removeprefix("CWD")
    return session if part == "SESSION" else part


def process(data: Path) -> None:
    """The drain, the worker with the rules, a backup."""
    now = int(time.time() * 1000)
    worker = Worker(
        lambda: open_drained(str(data), now=now),
        Settings("local", 0.0, 0.0),
        local=Local(),
        claude=None,
        clock=lambda: now,
    )
    asyncio.run(worker.run())
    backup.make(str(data), now)


# --- what must stay ---------------------------------------------------------------------------------------


def false_positives(kinds: ModuleType) -> list[str]:
    """The look-alikes that do not stay as they are, alone or in a placement."""
    changed = []
    for name, text in kinds.LOOKALIKES:
        rng = random.Random(name)  # noqa: S311
        placed = [payload for _, place in kinds.PLACEMENTS for payload in place(text, rng)]
        if redact(text) != text or any(redact(part) != part for part in _texts(placed)):
            changed.append(name)
    return changed


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        yield from _texts(list(part.values()))
    elif isinstance(part, list):
        for inner in part:
            yield from _texts(inner)


def library_files() -> Iterator[Path]:
    """The standard library, and what is installed beside us."""
    standard = Path(sysconfig.get_path("stdlib"))
    for path in sorted(standard.rglob("*.py")):
        if "site-packages" not in path.parts:
            yield path
    for path in sorted(Path(sysconfig.get_path("purelib")).rglob("*.py")):
        if PACKAGE not in path.parents:
            yield path


def library_lines_changed() -> tuple[int, int]:
    changed = lines = 0
    for path in library_files():
        try:
            text = path.read_text(encoding="utf-8")
        except ValueError:
            continue
        lines += text.count("\n") + 1
        redacted = redact(text)
        if redacted != text:
            left = Counter(redacted.splitlines())
            changed += sum((Counter(text.splitlines()) - left).values())
    return changed, lines


# --- others -----------------------------------------------------------------------------------------------

# The spans of a snippet that a tool flags.
Finder = Callable[[str], list[tuple[int, int]]]


def missed_by(finder: Finder, kinds: ModuleType) -> list[str]:
    missed = []
    for kind, make in kinds.KINDS:
        rng = random.Random(kind)  # noqa: S311
        snippet, secret = make(rng)
        spans = finder(snippet)
        places = [
            (start, start + len(piece)) for piece in pieces(secret) if (start := snippet.find(piece)) >= 0
        ]
        if not any(start < end and begin < stop for begin, end in spans for start, stop in places):
            missed.append(kind)
    return missed


def found_by_detect_secrets(snippet: str) -> list[tuple[int, int]]:
    """Its default plugins on a file; what it flags is a line."""
    from detect_secrets.core.scan import scan_file
    from detect_secrets.settings import default_settings

    with tempfile.TemporaryDirectory() as folder, default_settings():
        file = Path(folder, "snippet.txt")
        file.write_text(snippet, encoding="utf-8")
        flagged = {secret.line_number for secret in scan_file(str(file))}
    spans = []
    position = 0
    for number, line in enumerate(snippet.splitlines(keepends=True), 1):
        if number in flagged:
            spans.append((position, position + len(line)))
        position += len(line)
    return spans


def gitleaks_finder(path: Path) -> Finder:
    rules = []
    for rule in tomllib.loads(path.read_text(encoding="utf-8"))["rules"]:
        try:
            rules.append((re.compile(_in_python(rule["regex"])), rule.get("entropy", 0.0)))
        except (KeyError, re.error) as error:
            print(f"left out: {rule['id']}: {error}", file=sys.stderr)

    def find(snippet: str) -> list[tuple[int, int]]:
        spans = []
        for expression, entropy in rules:
            for match in expression.finditer(snippet):
                group = next((number for number, text in enumerate(match.groups(), 1) if text), 0)
                if _entropy(match[group]) >= entropy:
                    spans.append(match.span(group))
        return spans

    return find


def _in_python(expression: str) -> str:
    """Go lets flags stand anywhere; `\\z` and the names of classes differ."""
    expression = expression.replace(r"\z", r"\Z").replace("[[:alnum:]]", "[0-9A-Za-z]")
    while (found := re.search(r"(?<!\\)\(\?([ims]+)\)", expression)) and found.start() > 0:
        before, after = expression[: found.start()], expression[found.end() :]
        depth = 0
        for end, letter in enumerate(after):  # noqa: B007
            depth += (letter == "(") - (letter == ")")
            if depth < 0:
                break
        else:
            end = len(after)
        expression = f"{before}(?{found[1]}:{after[:end]}){after[end:]}"
    return expression


def _entropy(text: str) -> float:
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values()) if text else 0.0


if __name__ == "__main__":
    sys.exit(main())
