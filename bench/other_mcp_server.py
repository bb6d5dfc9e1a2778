"""An MCP server of somebody else's, of which users have several: it imports what such servers do, and has a
few tools. bench/mcp_start.py starts ten of them beside ours, half of them under Node.js.
"""

from __future__ import annotations

import argparse  # noqa: F401
import asyncio  # noqa: F401
import email.parser  # noqa: F401
import http.client  # noqa: F401
import json
import logging  # noqa: F401
import sys
import urllib.request  # noqa: F401

TOOLS = [
    {
        "name": f"tool_{number}",
        "description": "Looks something up elsewhere.",
        "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}},
    }
    for number in range(5)
]


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "initialize":
            version = message["params"]["protocolVersion"]
            who = {"name": "other", "version": "1"}
            answer["result"] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": who}
        elif message["method"] == "tools/list":
            answer["result"] = {"tools": TOOLS}
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
