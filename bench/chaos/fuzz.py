"""Nonsense for whatever reads what others wrote: seeds that look right, changed in a few small steps.

A target is a function that is given a text and raises nothing: our own errors are answers, and it catches
them. What must hold besides, like that bytes outside of our sections stay, it asserts. Nothing may take more
than LIMIT of processor time, and now and then a text is long, to see that.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import shlex
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from backstory import shell
from backstory.capture import changes
from backstory.capture.event import read_event
from backstory.claude_md.write import dynamic, sections
from backstory.clients.canonical import Use
from backstory.docmem import exchange
from backstory.errors import BadInput, BadPayload, NotFound
from backstory.intake.note import keep
from backstory.model import Node
from backstory.recall.answer import answer as search
from backstory.recall.documents.chunk import SIZE, chunks, plain, tokens
from backstory.recall.index import Index
from backstory.store.file.connection import connect
from tests.helpers.chaos import bash, event, prompt, tool_use

LIMIT = 1.0  # seconds
LONG = 400  # one text of so many is long
LONGEST = 60_000  # characters of one

Target = Callable[[str, random.Random], None]


@dataclass(slots=True)
class Row:
    target: str
    inputs: int = 0
    crashes: int = 0
    slow: int = 0  # beyond the limit
    slowest_ms: float = 0.0
    slowest_bytes: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


# --- texts --------------------------------------------------------------------------------------------------

ODD = [
    *(
        "\0",
        "\x1b[2J",
        "\r",
        "\r\n",
        "\t",
        " ",
        "\n",
        "\n\n",
        "\\",
        "'",
        '"',
        "`",
        "```",
        "~~~",
        "$",
        "$(",
        ")",
    ),
    *(
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        "<!--",
        "-->",
        "#",
        "@",
        "é",
        "漢字",
        "\u202e",
        "\ufeff",
        "\ud83e",
        "🦭",
        "\x7f",
    ),
    *(
        "0",
        "-1",
        "1e999",
        "null",
        "true",
        "NaN",
        "\u0130",
        "ﬁ",
        "\u2028",
        "\x0c",
        "%s",
        "../",
        "*",
        "^",
        ":",
        '"""',
    ),
]


def mutated(dice: random.Random, seeds: list[str], tokens: list[str]) -> str:
    text = dice.choice(seeds)
    for _ in range(dice.choice((1, 1, 2, 3, 5, 8, 13))):
        here, there = dice.randint(0, len(text)), dice.randint(0, len(text))
        here, there = min(here, there), min(max(here, there), min(here, there) + 200)
        step = dice.randrange(8)
        if step == 0:
            text = text[:here] + text[there:]
        elif step == 1:
            text = text[:there] + text[here:]
        elif step <= 3:
            text = text[:here] + dice.choice(tokens) + text[here:]
        elif step == 4:
            text = text[:here] + dice.choice(ODD) + text[there:]
        elif step == 5:
            other = dice.choice(seeds)
            text = text[:here] + other[dice.randint(0, len(other)) :]
        elif step == 6:
            lines = text.split("\n")
            dice.shuffle(lines)
            text = "\n".join(lines)
        else:
            text = text[:here] + text[here:there] * dice.randint(2, 9) + text[there:]
        text = text[:4_000]
    if dice.randrange(LONG) == 0:
        size = dice.choice((2_000, 10_000, LONGEST))
        piece = dice.choice((dice.choice(tokens), dice.choice(ODD), text[:50] or "a"))
        text = (text + piece * (size // len(piece)) + text)[: size + 4_000]
    return text


def raw_of(text: str, dice: random.Random) -> bytes:
    """Bytes that are mostly UTF-8."""
    raw = text.encode("utf-8", "surrogatepass")
    if dice.randrange(25) == 0:
        at = dice.randint(0, len(raw))
        raw = raw[:at] + dice.randbytes(dice.randint(1, 4)) + raw[at:]
    return raw


def _of(seeds: list[str], tokens: list[str]) -> Callable[[random.Random], str]:
    return lambda dice: mutated(dice, seeds, tokens)


# --- hook payloads ------------------------------------------------------------------------------------------


def _payload_seeds() -> list[str]:
    edit = {"file_path": "/p/a.py", "old_string": "a = 1\n", "new_string": "a = 2\n"}
    patch = {"structuredPatch": [{"oldStart": 1, "lines": ["-a", "+b"]}], "filePath": "/p/a.py"}
    seeds = [
        bash("git mv a b && rm -rf 'c d'", stdout="token=ghp_" + "a1B2" * 9, stderr="Error: no\n"),
        tool_use("Edit", edit, patch),
        tool_use("Write", {"file_path": "/p/b", "content": "<private>x</private>"}, {"type": "create"}),
        tool_use("Read", {"file_path": "/p/c"}, {"file": {"content": "x\n" * 40, "numLines": 40}}),
        tool_use(
            "mcp__memory__memory_search",
            {"query": "q"},
            [{"type": "text", "text": "<backstory>x</backstory>"}],
        ),
        tool_use("AskUserQuestion", {"questions": [{"question": "Q?"}]}, {"answers": {"Q?": "yes"}}),
        event("PostToolUseFailure", tool_name="Bash", tool_input={"command": "make"}, error="Exit code 2"),
        prompt("password = hunter2hunter2 in /etc/passwd, please"),
        event("Stop", last_assistant_message="Done. TODO: the rest.", stop_hook_active=False),
        event("PostCompact", compact_summary="<analysis>a</analysis><summary>b</summary>"),
        event("SessionStart", source="startup"),
        event("SessionEnd", reason="other"),
    ]
    return [json.dumps(seed, ensure_ascii=number % 2 == 0) for number, seed in enumerate(seeds)]


PAYLOADS = _payload_seeds()
ENVELOPE = ("session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name")
PAYLOAD_TOKENS = [
    *(
        '"tool_input": ',
        '"command": ',
        '"session_id": ',
        '"hook_event_name": "Stop"',
        "{}",
        "[]",
        '"',
        "\\ud83e",
    ),
    *(
        '"tool_name": "Write"',
        '"tool_response": ',
        "null",
        "1e400",
        "[[[[[[[[[",
        '{"a":' * 20,
        "</backstory>",
    ),
    *(
        "<private>",
        "</private>",
        "AKIAIOSFODNN7EXAMPLE",
        "-----BEGIN PRIVATE KEY-----",
        "api_key=",
        "rm -rf ",
        "<<EOF\\n",
    ),
]


def payload_text(dice: random.Random) -> str:
    """Mostly what a client could send: of nonsense that is no JSON, a parser sees the first sign only."""
    if dice.randrange(4) == 0:
        return mutated(dice, PAYLOADS, PAYLOAD_TOKENS)
    whole = json.loads(dice.choice(PAYLOADS))
    for _ in range(dice.randint(1, 3)):
        inside: Any = whole
        while isinstance(inside, dict | list) and inside:
            keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
            # Without these it is no event, and nothing else in it is looked at.
            rest = [key for key in keys if key not in ENVELOPE or dice.randrange(8) == 0]
            at = dice.choice(rest or keys)
            if not isinstance(inside[at], dict | list) or dice.randrange(4) == 0:
                inside[at] = dice.choice(
                    (mutated(dice, WRITTEN, WRITTEN_TOKENS), None, -1, 1e400, [], {}, True)
                    if dice.randrange(3) == 0
                    else (mutated(dice, WRITTEN, WRITTEN_TOKENS),)
                )
                break
            inside = inside[at]
    return json.dumps(whole, ensure_ascii=dice.random() < 0.5)


def payload(text: str, dice: random.Random) -> None:
    raw = raw_of(text, dice)
    changes.of_payload(raw)
    try:
        found = read_event(raw, spool_name="name", at=1)
    except BadPayload as error:
        assert str(error) and len(str(error)) < 400
        return
    for part in (found.session_id, found.cwd, found.agent, found.source, found.text, found.key):
        _storable(part)
    if found.use:
        _storable_use(found.use)


def _storable(text: str) -> None:
    text.encode()
    assert "\0" not in text


def _storable_use(use: Use) -> None:
    for part in (use.tool, use.printed, use.error or "", *use.more_paths):
        _storable(part)
    for value in (use.given, use.result, use.excerpt, use.written):
        said = json.dumps(value, ensure_ascii=False)
        said.encode()
        assert "\\u0000" not in said


# --- CLAUDE.md ----------------------------------------------------------------------------------------------

CLAUDE_FILES = [
    "# api\n\n<!-- AUTO-MANAGED: patterns -->\nOurs.\n<!-- END AUTO-MANAGED -->\n\n"
    "<!-- MANUAL -->\nMine.\n<!-- END MANUAL -->\n",
    "Text\r\n\r\n<!-- AUTO-MANAGED: a -->\r\n<!-- END AUTO-MANAGED -->\r\n"
    "```md\r\n<!-- AUTO-MANAGED: b -->\r\n```\r\n",
    "# Rules\n\n# DOCMEM Dynamic\n\n## ab12cd34\n\nab12cd34 note:: 2026\ntext\n"
    "<!-- end of DOCMEM Dynamic -->\nmore\n",
    "~~~\n# DOCMEM Dynamic\n~~~\n- ```\n  x\n  ```\n<!-- AUTO-MANAGED: a -->\n"
    "<!-- AUTO-MANAGED: b -->\n<!-- END AUTO-MANAGED -->\n",
    "",
]
CLAUDE_TOKENS = [
    *("<!-- AUTO-MANAGED: a -->\n", "<!-- AUTO-MANAGED: patterns -->\n", "<!-- END AUTO-MANAGED -->\n"),
    *(
        "<!-- MANUAL -->\n",
        "<!-- END MANUAL -->\n",
        "\n# DOCMEM Dynamic\n\n## ",
        "<!-- end of DOCMEM Dynamic -->\n",
    ),
    *(
        "\n```\n",
        "\n~~~\n",
        "\n````md\n",
        "- ```\n",
        "  ```\n",
        "\n# Heading\n",
        "<pre>\n",
        "@file",
        "`@x`",
        "<!--",
        "-->",
    ),
]


def markers(text: str, dice: random.Random) -> None:
    raw = raw_of(text, dice)
    body = mutated(dice, CLAUDE_FILES, CLAUDE_TOKENS)[:500]
    before = sections.parse(raw)
    for section in before.sections[:2]:
        made = sections.with_section(raw, section.name, body)
        assert made.startswith(raw[: section.body_start]) and made.endswith(raw[section.body_stop :])
        after = sections.parse(made)
        assert [one.name for one in after.sections] == [one.name for one in before.sections]
        found = sections.body(made, next(one for one in after.sections if one.name == section.name))
        wanted = sections.harmless(body)
        assert found in (wanted, sections.spaced(wanted))  # as a formatter would have it, where one was there
        assert sections.with_section(made, section.name, body) == made
    try:
        added = sections.with_new(raw, [("new-one", body)])
        size = len(added) - len(raw)
        at = next((at for at, sign in enumerate(raw) if added[at] != sign), len(raw))
        assert added[:at] + added[at + size :] == raw
    except BadInput:
        pass
    settled = raw
    while (rest := dynamic.without(settled)) != settled:
        settled = rest
    shown = dynamic.with_views(settled, [("ab12cd34", body)])
    assert dynamic.without(shown) == settled
    assert dynamic.with_views(shown, [("ab12cd34", body)]) == shown
    assert dynamic.with_views(shown, []) == settled
    assert [one.name for one in sections.parse(shown).sections] == [
        one.name for one in sections.parse(settled).sections
    ]


# --- TOML ---------------------------------------------------------------------------------------------------

TREES = [
    '[a]\ncontext = "root:a:"\ncontent = ""\n\n'
    '[b]\nparent-node-id = "a"\ncontext = "note:x\\\\:y:z"\ncontent = """\none\ntwo"""\n',
    "[a]\ncontext = 'root::'\n[c]\nparent-node-id = 'b'\ncontext = '::'\n"
    "[b]\nparent-node-id = 'a'\ncontext = '::'\ncontent = '''\nx'''\n",
    '# a comment, with [brackets]\n["a b"]\ncontext="::"\ncontent="\\u00e9 \\"x\\" \\\\"\n',
]
TREE_TOKENS = [
    *(
        '[x]\ncontext = "::"\n',
        'parent-node-id = "a"\n',
        'content = """',
        '"""',
        "'''",
        '"',
        "[[a]]",
        "[a.b]",
        "\\u0041",
    ),
    *(
        "\\UFFFFFFFF",
        "= 1",
        "= [1, 2]",
        "= {a = 1}",
        "a.b.c = 1\n",
        "1979-05-27",
        "#",
        'context = "a:b:c"\n',
        "\\",
    ),
]


def tree_text(dice: random.Random) -> str:
    """A document, or a tree of nodes that say anything, as it is exported."""
    if dice.randrange(2):
        return mutated(dice, TREES, TREE_TOKENS)
    names = [f"n{number}" for number in range(dice.randint(1, 6))]
    said = [mutated(dice, WRITTEN, WRITTEN_TOKENS).encode("utf-8", "replace").decode()[:600] for _ in names]
    above = [dice.choice(names[:number]) if number else None for number in range(len(names))]
    return exchange.export_toml(
        _node(name, parent, text, (text[:24], text[-24:], ":"))
        for name, parent, text in zip(names, above, said, strict=True)
    )


def _node(name: str, parent: str | None, text: str, context: tuple[str, str, str]) -> Node:
    return Node(name, 0, parent, "n0", text, 0.0, 0, *context, False, "", 1, 0, 0)


def toml(text: str, dice: random.Random) -> None:
    try:
        made = exchange.parse_toml(text)
    except BadInput:
        for parse in (exchange.parse_text, exchange.parse_markdown):  # what one may do with it as well
            with suppress(BadInput):
                parse(text, "name")
        return
    tree = [
        _node(f"n{number}", None if one.parent is None else f"n{one.parent}", one.text, one.context)
        for number, one in enumerate(made)
    ]
    again = exchange.parse_toml(exchange.export_toml(tree))
    assert [(one.parent, one.text, one.context) for one in again] == [
        (one.parent, one.text, one.context) for one in made
    ]
    exchange.export_markdown(tree)


# --- queries ------------------------------------------------------------------------------------------------

QUERIES = [
    "how do we mend getUserById in src/auth/jwt.py?",
    'token "exact phrase" AND NOT (max_retry_count OR -x)',
    "修复登录错误 login",
    "to be or not to be",
    "NEAR(a b, 3) title:* ^word col : {a b} + c",
    "mem_abcdefghijkl",
]
QUERY_TOKENS = [
    *(
        '"',
        "*",
        "AND ",
        "OR ",
        "NOT ",
        "NEAR(",
        ")",
        ":",
        "^",
        "-",
        "+",
        "{",
        "}",
        "getUserById",
        "漢字",
        "migrati",
        "the ",
    ),
    *("content:", "rank", "memories_fts", "';--", "_", "__", "a" * 70, "ß", "\u0345", "e\u0301", "½", "²"),
]


class Queries:
    """A search on a real store, by its words."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        path = str(folder / f"fuzz-{os.getpid()}" / "backstory.db")
        self._db = connect(path)
        for number, text in enumerate((*QUERIES[:4], *CLAUDE_FILES, "café straße ½ migration of the users")):
            if text:
                keep(self._db, self._folder, f"note {number}: {text}", now=number)
        self._index = Index(None)

    def __call__(self, text: str, dice: random.Random) -> None:
        try:
            answer = search(self._index, self._db, self._folder, text, now=1_000, limit=dice.randint(1, 10))
        except (BadInput, NotFound):
            return
        assert all(math.isfinite(hit.score) for hit in answer.hits)


# --- documents and commands ---------------------------------------------------------------------------------

DOCUMENTS = [
    "---\ntitle: A guide\n---\n# Guide\n\nSome text. More text.\n\n## Install\n\n"
    "```sh\n# no heading\nmake\n```\n\nUse\n===\n\n- item\n",
    "Title\n=====\n\nA paragraph::\n\n    code\n\nPart\n----\n\n.. note:: x\n\n~~~~\nOver\n~~~~\n",
    "A long sentence of many words that says little. " * 60,
    "漢字かな。" * 50 + "\n\n# 見出し\n\n한글 " * 20,
]
DOCUMENT_TOKENS = [
    *(
        "\n# Heading\n",
        "\n## Deeper #\n",
        "\n```\n",
        "\n~~~\n",
        "    ```\n",
        "\n====\n",
        "\n----\n",
        "\n\n",
        "---\n",
        "- ",
        "> ",
    ),
    *("::\n\n", ".. x\n", "word " * 200, "x" * 1_000, "漢" * 300, "\ttab", "1. ", "\n\n\n\n", "title: x\n"),
]


def documents(text: str, dice: random.Random) -> None:
    kind = dice.choice(("md", "rst", "txt", "html"))
    whole = plain(text)
    found = chunks(text, kind)
    for one in found:
        assert one.text.strip() and one.text in whole
        assert tokens(one.text) <= SIZE
    covered, begin = bytearray(len(whole)), 0
    for one in found:  # they overlap, so a long word may stand in two of them, whole in neither
        begin = whole.index(one.text, begin)
        covered[begin : begin + len(one.text)] = b"\1" * len(one.text)
    kept = set(re.findall(r"\w+", "\n".join(f"{one.heading}\n{one.text}" for one in found)))
    words = [word for word in re.finditer(r"\w+", whole) if len(word[0]) < 200]
    missing = {word[0] for word in words if 0 in covered[slice(*word.span())]} - kept
    # The row below a title is how it is written, not what it says.
    assert not {word for word in missing if len(set(word)) > 1 or word[0].isalnum()}, sorted(missing)[:5]


COMMANDS = [
    'cd /x && git commit -m "$(cat <<\'EOF\'\nsay "it"\nEOF\n)" && git push 2>&1 | tail -3',
    "for f in *.py; do sed -i 's/a/b/' \"$f\"; done; rm -rf build/ 'a b' {c,d}",
    "FOO=1 sudo -u me timeout -k 5 10 mv -t /tmp a b; cat <<-E >> out\n\tx\n\tE\n",
    "echo ${x:-$(y `z`)} <(a) > >(b) &> c # comment",
    "git mv 'old name' new && git rm --cached -r -- x && cd - && pushd /a",
]
COMMAND_TOKENS = [
    *(
        "$(",
        ")",
        "`",
        "${",
        "}",
        "<<EOF\n",
        "<<'E'\n",
        "\nEOF\n",
        "'",
        '"',
        "\\",
        "\\\n",
        "&&",
        "||",
        ";",
        "|",
        "&",
        ">",
        ">>",
    ),
    *(
        "<<<",
        "2>&1",
        "#",
        "cd ..; ",
        "rm ",
        "mv -t ",
        "git -C x ",
        "(",
        "((",
        "case x in a) ;; esac",
        "if x; then ",
        "$((1+",
    ),
]


def commands(text: str, dice: random.Random) -> None:
    steps = shell.read(text)
    for step in steps:
        if isinstance(step, shell.Command):
            shell.without_prefix(step)
    changes.by_command(text, "/project")
    words = [word for word in re.split(r"(?<=[ \n'])", text[:300]) if word and "\0" not in word][:8]
    if words:
        (again,) = shell.read(" ".join(map(shlex.quote, words)))
        assert [word.text for word in again if isinstance(word, shell.Word)] == words
        assert all(word.is_known and not word.is_pattern for word in again if isinstance(word, shell.Word))


WRITTEN = [*CLAUDE_FILES, *DOCUMENTS, *COMMANDS, *QUERIES, "/project/src/a.py", "password: hunter2hunter2"]
WRITTEN_TOKENS = [*PAYLOAD_TOKENS, *CLAUDE_TOKENS, *COMMAND_TOKENS]

# The share of all inputs, by what one costs, and what makes one.
TARGETS: dict[str, tuple[float, Callable[[random.Random], str]]] = {
    "payloads": (0.15, payload_text),
    "CLAUDE.md markers": (0.2, _of(CLAUDE_FILES, CLAUDE_TOKENS)),
    "TOML": (0.15, tree_text),
    "FTS queries": (0.1, _of(QUERIES, QUERY_TOKENS)),
    "chunker": (0.15, _of(DOCUMENTS, DOCUMENT_TOKENS)),
    "shell reader": (0.25, _of(COMMANDS, COMMAND_TOKENS)),
}


def _target(name: str, folder: Path) -> Target:
    if name == "FTS queries":
        return Queries(folder)
    functions: dict[str, Target] = {
        "payloads": payload,
        "CLAUDE.md markers": markers,
        "TOML": toml,
        "chunker": documents,
        "shell reader": commands,
    }
    return functions[name]


def fuzz(name: str, inputs: int, seed: int, folder: Path) -> Row:
    row, target = Row(name), _target(name, folder)
    _, make = TARGETS[name]
    for number in range(inputs):
        dice = random.Random(f"{name} {seed} {number}")  # noqa: S311  each input can be made again alone
        attack(row, target, make(dice), dice)
    return row


def attack(row: Row, target: Target, text: str, dice: random.Random) -> None:
    row.inputs += 1
    started = time.process_time()
    try:
        target(text, dice)
    except Exception:  # noqa: BLE001  that is what we look for
        row.crashes += 1
        if len(row.notes) < 10:
            row.notes.append(f"{text[:400]!r}: {traceback.format_exc()[-600:]}")
    seconds = time.process_time() - started
    row.seconds += seconds
    if seconds * 1000 > row.slowest_ms:
        row.slowest_ms, row.slowest_bytes = round(seconds * 1000, 1), len(text)
    if seconds > LIMIT:
        row.slow += 1
        row.notes.append(f"{seconds:.1f} s: {text[:200]!r} ({len(text):,} characters)")


def run(folder: Path, inputs: int, seed: int, tell: Callable[[str], None], processes: int = 2) -> list[Row]:
    """The targets in parts, those that take longest first, on so many processes."""
    done = {name: Row(name) for name in TARGETS}
    parts = []
    for name, (share, _) in TARGETS.items():
        count = max(1, round(inputs * share))
        pieces = min(8, -(-count // 1_000))
        parts += [(name, count // pieces + (piece < count % pieces), seed + piece) for piece in range(pieces)]
    if processes < 2:
        found = [fuzz(name, count, number, folder) for name, count, number in parts]
    else:
        with ProcessPoolExecutor(processes, get_context("fork")) as pool:
            waiting = [pool.submit(fuzz, name, count, number, folder) for name, count, number in parts]
            found = [one.result() for one in waiting]
    for part in found:
        row = done[part.target]
        row.inputs += part.inputs
        row.crashes += part.crashes
        row.slow += part.slow
        row.seconds += part.seconds
        row.notes += part.notes
        if part.slowest_ms > row.slowest_ms:
            row.slowest_ms, row.slowest_bytes = part.slowest_ms, part.slowest_bytes
    for row in done.values():
        tell(f"fuzzed {row.target}: {row.inputs:,} inputs, {row.crashes} crashes, {row.seconds:.0f} s")
    return list(done.values())
