"""Makes docs/demo.svg: the demo in a real terminal (a pseudo terminal), drawn as it came out."""

from __future__ import annotations

import io
import os
import pty
import re
import sys

from rich.console import Console
from rich.text import Text

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = 118


def main() -> None:
    os.environ |= {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    seen = io.BytesIO()

    def read(terminal: int) -> bytes:
        data = os.read(terminal, 65536)
        seen.write(data)
        return data

    pty.spawn([sys.executable, os.path.join(HERE, "run.py")], read)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    console.print("[bold]$ make demo[/bold]")
    for line in seen.getvalue().decode().replace("\r", "").splitlines():
        console.print(Text.from_ansi(line), soft_wrap=True)
    svg = console.export_svg(title="backstory")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # no font from the network
    with open(os.path.join(HERE, "..", "docs", "demo.svg"), "w", encoding="utf-8") as file:
        file.write(svg)


if __name__ == "__main__":
    main()
