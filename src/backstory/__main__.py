"""`backstory`. An MCP server and the status line are in a hurry, so they start without the commands."""

from __future__ import annotations

import os
import sys

SERVERS = {("mcp",): "backstory", ("mcp", "memory"): "memory", ("mcp", "docmem"): "docmem"}


def main() -> None:
    if sys.argv[1:] == ["statusline"]:
        from backstory.surfaces import statusline

        return statusline.main()
    server = SERVERS.get(tuple(sys.argv[1:]))
    if server is None or None in (sys.stdin, sys.stdout, sys.stderr):
        from backstory.surfaces.cli.main import main as commands

        commands()
    else:
        _serve(server)


def _serve(server: str) -> None:
    from backstory import log, paths
    from backstory.surfaces.mcp.start import serve

    # An empty or relative entry is the current folder, somebody's project, of which nothing is run.
    os.environ["PATH"] = paths.whole_entries(os.environ.get("PATH", ""))
    try:
        serve(server)
    except Exception as error:  # noqa: BLE001  the edge of the program
        log.crash("mcp")
        sys.exit(f"backstory: {type(error).__name__}: {error} (a fault of backstory; the log has more)")
    # A thread may still look whether the client hung up, and holds stdin: Python's own end would die of that.
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError:
        pass  # nobody reads it any more
    os._exit(0)


if __name__ == "__main__":
    main()
