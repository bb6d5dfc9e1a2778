"""Makes docs/demo.svg: the most telling part of the demo, as it came out of a real (pseudo) terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = 122
MOST_LINES = 25  # what fits on a screen beside the text of the README
PARTS = (  # headings of run.py
    "What Claude Code is told when the next session starts",
    "In other words than it was said, with what the score is made of",
)


def main() -> None:
    os.environ |= {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    seen = io.BytesIO()

    def read(terminal: int) -> bytes:
        data = os.read(terminal, 65536)
        seen.write(data)
        return data

    pty.spawn([sys.executable, os.path.join(HERE, "run.py")], read)
    lines = telling(seen.getvalue().decode().replace("\r", "").splitlines())
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    for line in lines:
        console.print(Text.from_ansi(line), soft_wrap=True)
    svg = console.export_svg(title="backstory")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # no font from the network
    with open(os.path.join(HERE, "..", "docs", "demo.svg"), "w", encoding="utf-8") as file:
        file.write(svg)


def telling(printed: Iterable[str]) -> list[str]:
    """Of all that the demo printed what the picture shows: parts from their bold heading to the next."""
    kept: list[str] = []
    is_shown = is_heading = False
    for line in printed:
        was_heading, is_heading = is_heading, re.fullmatch(r"\033\[1m\S.*\033\[0m", line) is not None
        if is_heading:
            is_shown = Text.from_ansi(line).plain in PARTS
        if is_shown and (line or not was_heading):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    if not kept or len(kept) > MOST_LINES:
        raise SystemExit(f"the picture would have {len(kept)} lines; choose other parts of the demo")
    return kept


if __name__ == "__main__":
    main()
