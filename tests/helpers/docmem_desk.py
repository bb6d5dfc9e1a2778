"""A project at the MCP server `docmem` for one test, and the shapes of what it is told and answers."""

from __future__ import annotations

import json
import re
from pathlib import Path

from backstory.claude_md.write.dynamic import HEADER
from tests.helpers.chaos import Json
from tests.helpers.mcp_client import Server

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
HASH = r"[A-Za-z0-9+/]{86}=="
ID = r"[a-z0-9]{8}"
SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"[::-1]


class Desk:
    """A server and a project for one test."""

    def __init__(self, server: Server, data: Path, link: Path, project: Path) -> None:
        self.server, self.data, self.link = server, data, link
        self.ask, self.refusal, self.call = server.ask, server.refusal, server.call
        self.sit_at(project)

    def sit_at(self, project: Path) -> None:
        """From now on the server works for this project."""
        project.mkdir(parents=True, exist_ok=True)
        beside = self.link.with_suffix(".new")
        beside.symlink_to(project)
        beside.replace(self.link)
        self.project = project

    def create(self, root_id: str = "notes") -> str:
        self.ask("docmem_create", root_id=root_id)
        return root_id

    def add(
        self,
        content: str,
        target: str = "notes",
        mode: str = "append-child",
        context: tuple[str, str, str] = ("note", "", ""),
        **more: object,
    ) -> str:
        reply = self.ask("docmem_create_node", **node(content, target, mode, context), **more)
        made = re.match(rf"docmem_create_node: created ({ID}) ", reply)
        assert made, reply
        return made[1]

    def find(self, node_id: str) -> dict[str, str]:
        return fields(self.ask("docmem_find", id=node_id))

    def hash(self, node_id: str) -> str:
        return self.find(node_id)["hash"]

    def text(self, node_id: str) -> str:
        return self.find(node_id)["text"]

    def outline(self, node_id: str = "notes") -> list[tuple[int, str]]:
        """Depth and id of each node of a structure."""
        lines = self.ask("docmem_structure", node_id=node_id).splitlines()
        assert lines[0] == "docmem_structure:"
        found = [re.fullmatch(rf"((?:  )*)- (\S+) .*:.*:.* {STAMP}", line) for line in lines[1:]]
        return [(len(one[1]) // 2, one[2]) for one in found if one]

    def nodes(self, sql: str = "SELECT id FROM nodes ORDER BY id") -> list[list[object]]:
        return [json.loads(line) for line in self.ask("docmem_query_nodes", sql=sql).split("\n")[2:]]


def node(
    content: str = "a heron",
    target: str = "notes",
    mode: str = "append-child",
    context: tuple[str, str, str] = ("note", "", ""),
) -> Json:
    return {"target_id": target, "content": content, "mode": mode, **named(context)}


def named(context: tuple[str, str, str]) -> Json:
    return dict(zip(("context_type", "context_name", "context_value"), context, strict=True))


def fields(reply: str) -> dict[str, str]:
    """What docmem_find says. The text is all that comes after its name."""
    head, _, text = reply.partition("\ntext:\n")
    tool, metadata, *lines = head.split("\n")
    assert tool == "docmem_find:"
    return {"metadata": metadata, **dict(line.split(": ", 1) for line in lines), "text": text}


def shown(text: bytes) -> list[str]:
    """The ids of what a CLAUDE.md shows."""
    section = text.partition(HEADER)[2]
    return [line.decode() for line in re.findall(rb"^## (\S+)$", section, re.MULTILINE)]
