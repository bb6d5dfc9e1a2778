"""Transcripts as Claude Code writes them, and the payloads that its hooks are given for the same things.

log = Log("s1", "/home/me/api").prompt("fix it").bash("make", "ok").say("done")
log.write(folder)                 # <folder>/<slug>/s1.jsonl
for payload in log.payloads: ...  # what the hooks were given meanwhile
"""

from __future__ import annotations

import json
import os
import re
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]

THEN = 1_780_000_000_000  # milliseconds; long before the tests
SECOND = 1_000


def uuid_of(*parts: object) -> str:
    """The same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, " ".join(map(str, parts))))


class Log:
    """A session while it goes on, a second an entry."""

    def __init__(
        self,
        session: str,
        cwd: str | Path,
        at: int = THEN,
        *,
        ids: bool = True,  # whether prompts have ids, as in newer clients
        **common: object,
    ) -> None:
        self.session = session
        self.cwd = str(cwd)
        self.at = at
        self.ids = ids
        self.common: Json = {"userType": "external", "version": "2.1.325", "gitBranch": "main", **common}
        self.entries: list[Json] = []
        self.agents: dict[str, list[Json]] = {}
        self.payloads: list[tuple[int, Json]] = []  # with their times
        self.prompt_id = ""
        self.hook("SessionStart", source="startup")

    def hook(self, name: str, **fields: object) -> None:
        payload: Json = {"session_id": self.session, "cwd": self.cwd, "hook_event_name": name, **fields}
        if self.prompt_id and self.ids:
            payload["prompt_id"] = self.prompt_id
        self.payloads.append((self.at + 40, payload))

    def entry(self, kind: str, to: list[Json] | None = None, **fields: object) -> Json:
        self.at += SECOND
        number = sum(map(len, (self.entries, *self.agents.values())))
        stamp = datetime.fromtimestamp(self.at / 1000, UTC).isoformat(timespec="milliseconds")
        entry: Json = {
            "isSidechain": False,
            "type": kind,
            "uuid": uuid_of(self.session, number),
            "timestamp": stamp.replace("+00:00", "Z"),
            "cwd": self.cwd,
            "sessionId": self.session,
            **self.common,
            **fields,
        }
        if kind == "user" and self.prompt_id and self.ids:
            entry.setdefault("promptId", self.prompt_id)
        (self.entries if to is None else to).append(entry)
        return entry

    def user(self, content: object, **fields: Any) -> Json:
        return self.entry("user", message={"role": "user", "content": content}, **fields)

    def prompt(self, text: str, **fields: object) -> Log:
        self.prompt_id = uuid_of(self.session, "prompt", len(self.entries))
        self.user(text, **fields)
        self.hook("UserPromptSubmit", prompt=text)
        return self

    def command(self, name: str, arguments: str) -> Log:
        """A slash command that asks the model something."""
        self.prompt_id = uuid_of(self.session, "prompt", len(self.entries))
        message = f"<command-message>{name[1:]}</command-message>\n<command-name>{name}</command-name>"
        self.user(f"{message}\n<command-args>{arguments}</command-args>")
        self.hook("UserPromptSubmit", prompt=f"{name} {arguments}")
        self.user("what the command says", isMeta=True)
        return self

    def queued(self, text: str) -> Log:
        """A prompt that is typed while the model works."""
        queued = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
        self.entry("attachment", attachment=queued)
        self.hook("UserPromptSubmit", prompt=text)
        return self

    def say(self, text: str, *, hook: bool = True, sent_on: bool = False) -> Log:
        self.entry("assistant", message=_message([{"type": "text", "text": text}], f"m{len(self.entries)}"))
        if hook:
            self.hook("Stop", stop_hook_active=sent_on, last_assistant_message=text)
        return self

    def use(self, tool: str, given: Json, result: object, *, agent: str = "", error: str = "") -> Log:
        to = self.agents.setdefault(agent, []) if agent else None
        tool_id = f"toolu_{self.session}_{sum(map(len, (self.entries, *self.agents.values())))}"
        side = {"isSidechain": True, "agentId": agent} if agent else {}
        block = {"type": "tool_use", "id": tool_id, "name": tool, "input": given}
        self.entry("assistant", to, message=_message([block], f"m{tool_id}"), **side)
        part = {
            "type": "tool_result",
            "tool_use_id": tool_id,
            "content": error or "ok",
            "is_error": bool(error),
        }
        self.entry(
            "user",
            to,
            message={"role": "user", "content": [part]},
            toolUseResult=f"Error: {error}" if error else result,
            **side,
        )
        fields = {"tool_name": tool, "tool_input": given, "tool_use_id": tool_id}
        if agent:
            fields |= {"agent_id": agent, "agent_type": "general-purpose"}
        if error:
            self.hook("PostToolUseFailure", **fields, error=error)
        else:
            self.hook("PostToolUse", **fields, tool_response=result)
        return self

    def bash(self, command: str, output: str = "", **fields: Any) -> Log:
        return self.use("Bash", {"command": command}, {"stdout": output, "stderr": ""}, **fields)

    def edit(self, path: str) -> Log:
        given = {"file_path": path, "old_string": "a", "new_string": "b"}
        return self.use("Edit", given, {"filePath": path, "oldString": "a", "newString": "b"})

    def sent_on(self, reason: str) -> Log:
        """A Stop hook did not let the turn end."""
        self.user(f"Stop hook feedback:\n{reason}", isMeta=True)
        return self

    def compact(self, summary: str) -> Log:
        self.prompt_id = uuid_of(self.session, "compact", len(self.entries))
        self.hook("PreCompact", trigger="manual", custom_instructions=None)
        self.entry("system", subtype="compact_boundary", compactMetadata={"trigger": "manual"})
        plain = re.sub(r"<analysis>.*</analysis>|</?summary>", "", summary, flags=re.DOTALL).strip()
        self.user(
            "This session is being continued from a previous conversation that ran out of context. The"
            f" summary below covers the earlier portion of the conversation.\n\nSummary:\n{plain}\n\n"
            "If you need specific details from before compaction, read the full transcript at: /x.jsonl\n"
            "Continue the conversation from where it left off without asking the user any questions.",
            isCompactSummary=True,
        )
        self.hook("SessionStart", source="compact")
        self.hook("PostCompact", trigger="manual", compact_summary=summary)
        return self

    def end(self) -> Log:
        self.at += SECOND
        self.hook("SessionEnd", reason="other")
        return self

    def fork(self, session: str) -> Log:
        """`--fork-session`: the same entries with another session id and, in all of them, the id of the
        prompt that comes next."""
        new = Log(session, self.cwd, self.at, ids=self.ids, **self.common)
        new.entries = [{**entry, "sessionId": session} for entry in self.entries]
        new.prompt_id = uuid_of(session, "prompt", len(new.entries))
        for entry in new.entries:
            if "promptId" in entry:
                entry["promptId"] = new.prompt_id
        return new

    def write(self, folder: Path, *, age_hours: float = 48) -> Path:
        """Below the folder as the client has it; last written to so long ago."""
        slug = folder / re.sub(r"[^a-zA-Z0-9]", "-", self.cwd)
        slug.mkdir(parents=True, exist_ok=True)
        path = slug / f"{self.session}.jsonl"
        files = {path: self.entries}
        for agent, entries in self.agents.items():
            inside = slug / self.session / "subagents"
            inside.mkdir(parents=True, exist_ok=True)
            files[inside / f"agent-{agent}.jsonl"] = entries
            (inside / f"agent-{agent}.meta.json").write_text(json.dumps({"agentType": "general-purpose"}))
        for file, entries in files.items():
            file.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
            age(file, age_hours)
        return path

    def spool(self, data: Path) -> None:
        """What the hooks left, with the times of the events."""
        new = data / "spool" / "new"
        new.mkdir(parents=True, exist_ok=True)
        for number, (at, payload) in enumerate(self.payloads):
            file = new / f"{self.session}-{number:04}"
            file.write_text(json.dumps(payload))
            os.utime(file, ns=(at * 1_000_000, at * 1_000_000))


def age(file: Path, hours: float) -> None:
    then = file.stat().st_ctime - hours * 3600
    os.utime(file, (then, then))


def _message(content: list[Json], message_id: str) -> Json:
    return {"id": message_id, "type": "message", "role": "assistant", "model": "m", "content": content}


def worked(session: str, cwd: str | Path, at: int = THEN, **common: Any) -> Log:
    """A session with all that a turn is made of."""
    log = Log(session, cwd, at, **common).prompt(f"mend the {session} parser, it crashes on an empty file")
    log.bash("pytest -q", error="Exit code 1\nE   ValueError: empty file\n1 failed")
    log.edit(f"{cwd}/parser.py").bash("pytest -q", "2 passed")
    log.bash(
        "git commit -am 'Guard the parser'", f"[main 3f2c1ab] Guard the {session} parser\n 1 file changed"
    )
    log.say(f"The {session} parser guards against empty files now.")
    log.prompt("which format do we keep?")
    asked = {"questions": [{"question": "Which format?", "options": [{"label": "TOML", "description": "d"}]}]}
    log.use("AskUserQuestion", asked, {**asked, "answers": {"Which format?": "TOML"}})
    log.say("We keep TOML.").sent_on("update the docs").say("The docs say so now.", sent_on=True)
    return log
