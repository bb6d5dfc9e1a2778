"""What it costs to have a session observed by a model: tokens sent for each token of new content.

A session of 200 events is made up, in sizes as they occur: prompts, code that is read and edited, output of
commands, some of it far over what is kept. It goes the real way: payloads into the spool, turn by turn, a
real `backstory worker` with the real Claude Code, and a scripted model on loopback, which stores an
observation now and then and a summary after every turn. Every body that reaches the model is counted whole:
system prompt, tools, history, the client's own additions, side questions, and also what a cache would serve.

    sent / content        content: what the queue holds of the session, input and output, each item once

Both are counted as JSON and by the same tokenizer, the one that backstory installs. Beside it stands what
the same session would cost where every event is sent alone after all that came before it.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import report
from report import Budget
from rich.console import Console
from rich.table import Table

from backstory import paths
from backstory.model import Item
from backstory.synthesis import prompt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.helpers.claude import environment
from tests.helpers.scripted_model import ScriptedModel, Step, say, text_of, together, use

EVENTS = 200
TURN = 17  # events on average, the prompt and the Stop among them
MIX = {"Read": 28, "Bash": 30, "Edit": 22, "Grep": 8, "Write": 4, "failure": 4, "Agent": 4}
TARGET = 1.0
PATIENCE = 120  # seconds for a turn to be observed
OBSERVED = 0.6  # of the batches have something worth keeping
STORE, SUMMARY = "mcp__memory__store_observation", "mcp__memory__store_summary"

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    case: str
    requests: int
    tokens: int
    ratio: float  # to the content


def main() -> int:
    options = _options()
    generator = random.Random(options.seed)  # noqa: S311
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as folder, Model(generator) as model:
        project = os.path.join(folder, "shop")
        os.makedirs(project)
        env = {
            **environment(Path(folder) / "home", model.url),
            "BACKSTORY_SYNTHESIZER": "claude",
            "BACKSTORY_SPEND_DAILY_USD": "1000",
            "BACKSTORY_WORKER_IDLE_SECONDS": "600",  # one worker for all of it, with all that it remembers
        }
        turns = list(session(options.events, project, generator))
        seconds = _understand(turns, env)
        items = _queue(env)
    return _report(options, model.requests, items, seconds)


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help=f"how many [{EVENTS}]")
    parser.add_argument("--seed", type=int, default=7, help="another session [7]")
    return parser.parse_args()


# The session


def session(events: int, cwd: str, generator: random.Random) -> Iterator[list[Payload]]:
    """Turns of payloads in the client's shapes."""
    made = 0
    while made < events:
        length = min(max(3, round(generator.gauss(TURN, TURN / 3))), max(3, events - made))
        tools = generator.choices(list(MIX), list(MIX.values()), k=length - 2)
        turn = [_payload(cwd, "UserPromptSubmit", prompt=_prose(generator, 35), prompt_id=f"p{made}")]
        for place, tool in enumerate(tools):
            turn.append(_tool_use(tool, cwd, f"toolu_{made}_{place}", generator))
        turn.append(
            _payload(cwd, "Stop", stop_hook_active=False, last_assistant_message=_prose(generator, 110))
        )
        made += len(turn)
        yield turn


def _payload(cwd: str, event: str, **fields: Any) -> Payload:
    transcript = f"{cwd}/.claude/projects/shop/bench.jsonl"
    common = {"session_id": "bench", "transcript_path": transcript, "cwd": cwd, "permission_mode": "default"}
    return {**common, "hook_event_name": event, **fields}


def _tool_use(tool: str, cwd: str, use_id: str, generator: random.Random) -> Payload:
    path, text = generator.choice(_sources())
    path = f"{cwd}/src/{path}"
    length = min(40_000, int(generator.lognormvariate(7.2, 1.3)))  # characters: 1,300 in the middle
    if tool == "failure":
        failed = {"tool_name": "Bash", "tool_input": {"command": f"python -m pytest {path} -q"}}
        error = f"Exit code 1\n{_piece(text, min(length, 6_000), generator)}"
        return _payload(
            cwd, "PostToolUseFailure", tool_use_id=use_id, error=error, is_interrupt=False, **failed
        )
    given, response = _in_and_out(tool, path, text, length, generator)
    return _payload(
        cwd, "PostToolUse", tool_name=tool, tool_input=given, tool_response=response, tool_use_id=use_id
    )


def _in_and_out(
    tool: str, path: str, text: str, length: int, generator: random.Random
) -> tuple[dict[str, Any], Any]:
    part = _piece(text, length, generator)
    match tool:
        case "Read":
            lines = part.count("\n")
            file = {"filePath": path, "content": part, "numLines": lines, "startLine": 1, "totalLines": lines}
            return {"file_path": path}, {"type": "text", "file": file}
        case "Edit":
            old = _piece(text, min(length, 1_500), generator)
            new = old.replace("self", "this", 3) + _piece(text, 200, generator)
            echo = {"filePath": path, "oldString": old, "newString": new, "originalFile": text[:30_000]}
            return {"file_path": path, "old_string": old, "new_string": new}, echo
        case "Write":
            written = {"type": "create", "filePath": path, "content": part, "structuredPatch": []}
            return {"file_path": path, "content": part}, written
        case "Grep":
            return {"pattern": "def ", "path": path}, {"filenames": [path] * 5, "numFiles": 5}
        case "Agent":
            told = {"content": [{"type": "text", "text": _prose(generator, 200)}], "totalTokens": 9_000}
            return {"description": _prose(generator, 5), "prompt": _prose(generator, 60)}, told
    command = generator.choice(
        ["python -m pytest -q", "git diff", "git log -p -3", "make check", f"cat {path}"]
    )
    output = {"stdout": part, "stderr": "", "interrupted": False, "isImage": False}
    return {"command": command, "description": _prose(generator, 6)}, output


@cache
def _sources() -> list[tuple[str, str]]:
    """Real code and prose to take pieces of: the standard library."""
    folder = sysconfig.get_path("stdlib")
    found = []
    for name in ("http", "urllib", "asyncio", "email", "unittest", "json", "importlib"):
        for path in sorted(glob.glob(os.path.join(folder, name, "*.py"))):
            text = Path(path).read_text(encoding="utf-8")
            if len(text) > 4_000:
                found.append((os.path.relpath(path, folder), text))
    return found


@cache
def _words() -> list[str]:
    blocks = (block for _, text in _sources() for block in re.findall(r'"""(.+?)"""', text, re.DOTALL))
    return " ".join(blocks).split()


def _prose(generator: random.Random, words: int) -> str:
    start = generator.randrange(len(_words()) - words)
    return " ".join(_words()[start : start + words])


def _piece(text: str, length: int, generator: random.Random) -> str:
    start = generator.randrange(max(1, len(text) - length))
    return text[start : start + length]


# The model


class Model(ScriptedModel):
    """Stores what a model would, in about as many words."""

    def __init__(self, generator: random.Random) -> None:
        super().__init__()
        self._generator = random.Random(generator.random())  # noqa: S311

    def answer(self, body: dict[str, Any]) -> Step:
        super().answer(body)  # which notes it
        if not body.get("tools"):
            return say("A title")
        asked = text_of([message for message in body["messages"] if message["role"] == "user"][-1]["content"])
        wants_summary = f"call {prompt.SUMMARY}" in asked
        many = self._generator.choice((1, 1, 2)) if self._generator.random() < OBSERVED else 0
        calls = [self._observation(asked) for _ in range(many)] + ([self._summary()] if wants_summary else [])
        return together(*calls) if calls else say(prompt.NOTHING)

    def _observation(self, asked: str) -> Step:
        say_some = self._generator
        numbers = [int(number) for number in re.findall(r"^\[(\d+)\] ", asked, re.MULTILINE)]
        return use(
            STORE,
            kind=say_some.choice(["bugfix", "feature", "discovery", "decision", "refactor"]),
            title=_prose(say_some, 9)[:150],
            text=_prose(say_some, 35)[:700],
            files=re.findall(r"src/[\w/]+\.py", asked)[:2],
            concepts=_prose(say_some, 3).split(),
            items=sorted(say_some.sample(numbers, min(2, len(numbers)))),
        )

    def _summary(self) -> Step:
        return use(SUMMARY, **{name: _prose(self._generator, 30)[:1_000] for name in prompt.SUMMARY_FIELDS})


# The real way


def _understand(turns: list[list[Payload]], env: dict[str, str]) -> float:
    """Feed the turns to a worker, each when the one before has been observed."""
    data = Path(paths.data_folder(env) or "")
    started = time.monotonic()
    with _worker(env, data) as worker:
        for number, turn in enumerate(turns, 1):
            for place, payload in enumerate(turn):
                _spool(data, f"{number:04}-{place:04}", payload)
            deadline = time.monotonic() + PATIENCE
            while _finished(data) < number:
                if worker.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"turn {number} was not observed; the log says:\n{_log(data)}")
                time.sleep(0.1)
    return time.monotonic() - started


@contextmanager
def _worker(env: dict[str, str], data: Path) -> Iterator[subprocess.Popen[bytes]]:
    for part in ("tmp", "new", "failed"):
        (data / "spool" / part).mkdir(parents=True)
    worker = subprocess.Popen([sys.executable, "-m", "backstory", "worker"], env=env)
    try:
        yield worker
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(30)


def _spool(data: Path, name: str, payload: Payload) -> None:
    """As a hook leaves it: complete from the first moment on."""
    (data / "spool" / "tmp" / name).write_text(json.dumps(payload), encoding="utf-8")
    (data / "spool" / "tmp" / name).rename(data / "spool" / "new" / name)


def _finished(data: Path) -> int:
    """How many turns have been observed."""
    sql = "SELECT sum(processed_at_epoch IS NOT NULL) FROM observation_queue WHERE tool_name = 'FINALIZE'"
    try:
        with closing(sqlite3.connect(f"file:{data / 'backstory.db'}?mode=ro", uri=True)) as db:
            return int(db.execute(sql).fetchone()[0] or 0)
    except sqlite3.OperationalError:  # the worker has not made it yet
        return 0


def _log(data: Path) -> str:
    log = Path(paths.log_file(str(data)))
    return log.read_text(encoding="utf-8")[-3_000:] if log.exists() else "nothing"


def _queue(env: dict[str, str]) -> list[tuple[str, str, str, str | None]]:
    """(tool, input, output, action) of all items, as stored. All must have been observed by the model."""
    with closing(sqlite3.connect(paths.database(paths.data_folder(env) or ""))) as db:
        rows = db.execute(
            "SELECT tool_name, tool_input, tool_output, processed_by, skipped, action"
            " FROM observation_queue ORDER BY id"
        ).fetchall()
    assert all(row[3] == "claude" and row[4] is None for row in rows), (
        "not everything was understood by the model"
    )
    return [(row[0], row[1], row[2], row[5]) for row in rows]


# Counting


def count(*texts: str) -> int:
    return sum(
        len(each.ids) for each in _tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)
    )


@cache
def _tokenizer() -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer

    package = find_spec("wordllama")
    assert package is not None and package.submodule_search_locations
    name = os.path.join("tokenizers", "l2_supercat_tokenizer_config.json")
    tokenizer = Tokenizer.from_file(os.path.join(package.submodule_search_locations[0], name))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _body(body: dict[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _repeated(requests: list[dict[str, Any]]) -> int:
    """Tokens that stood at the beginning of the request before, in the same model session."""
    before: dict[str, list[str]] = {}
    repeated = 0
    for body in requests:
        parts = [_body({"system": body.get("system")}), _body({"tools": body.get("tools")})]
        parts += [re.sub(r',"cache_control":\{[^}]*\}', "", _body(message)) for message in body["messages"]]
        known = before.get(key := _body(body.get("metadata") or {}), [])
        for part, old in zip(parts, known, strict=False):
            if part != old:
                break
            repeated += count(part)
        before[key] = parts
    return repeated


def _one_by_one(items: list[int], fixed: int) -> int:
    """Every item in a request of its own, after the fixed part and all items before it. (What the model
    replied would come on top.)"""
    total = so_far = 0
    for tokens in items:
        so_far += tokens
        total += fixed + so_far
    return total


def _report(
    options: argparse.Namespace,
    requests: list[dict[str, Any]],
    items: list[tuple[str, str, str, str | None]],
    seconds: float,
) -> int:
    sizes = [count(given, came) for _, given, came, _ in items]
    content = sum(sizes)
    sent = count(*map(_body, requests))
    fixed = count(_body({name: requests[0].get(name) for name in ("system", "tools")}))
    alone = _one_by_one(sizes, fixed)
    forgetful = content + fixed * len(items)
    shown = count(*(json.dumps(_described(item), ensure_ascii=False) for item in items))
    rows = [
        Row("backstory", len(requests), sent, round(sent / content, 2)),
        Row("every event alone, with all before it", len(items), alone, round(alone / content, 2)),
        Row(
            "every event alone, with nothing before it", len(items), forgetful, round(forgetful / content, 2)
        ),
    ]
    budget = Budget("tokens sent a token of new content", "at most", TARGET, rows[0].ratio)
    figures = {
        "events": options.events,
        "items": len(items),
        "content_tokens": content,
        "shown_tokens": shown,
        "ratio_to_shown": round(sent / shown, 2),
        "fixed_tokens": fixed,
        "repeated_tokens": _repeated(requests),
        "seconds": round(seconds, 1),
        "rows": [asdict(row) for row in rows],
    }
    return report.tell(
        "synthesis_cost", options, figures, [budget], lambda console: _show(console, figures, rows)
    )


def _described(item: tuple[str, str, str, str | None]) -> str:
    tool, given, came, action = item
    return prompt.describe(Item(0, "", tool, json.loads(given), json.loads(came), 0, None, action))


def _show(console: Console, figures: dict[str, Any], rows: list[Row]) -> None:
    table = Table("design", "requests", "tokens sent", "x content")
    for row in rows:
        table.add_row(row.case, f"{row.requests:,}", f"{row.tokens:,}", f"{row.ratio:.2f}")
    table.caption = (
        f"{figures['events']} events, {figures['items']} items, {figures['content_tokens']:,} tokens of"
        f" content; {figures['fixed_tokens']:,} fixed a request; {figures['repeated_tokens']:,} of those sent"
        f" stood in the request before; {figures['ratio_to_shown']:.2f} x what the model is shown of them"
    )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
