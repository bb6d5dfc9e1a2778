"""What a hook asks the memory server of its session, over a unix socket: one line of JSON there, one back.

    {"moment": "prompt", "session": "...", "folder": "/project", "text": "..."}
    {"done": true, "text": "what the model is told"}

The server (surfaces/mcp/listener.py) has the index in RAM, so a hook need not load one. While this runs the
user waits: no server, or no answer within SECONDS, and nothing is told. hook.sh starts it with `python -I
-S`. `socket` and `json` take longer to load than all the rest, so what they are made of is used.

In `run/` lie the sockets, and for each session what hook.sh looks at before it starts Python:
`<session>.prompts` says `done`, or how often it was asked in vain; `<session>.files` has the files that were
asked about, and a line `told` for each time that something was told.
"""

from __future__ import annotations

import _socket
import os
import stat
import sys
import time
from _json import encode_basestring_ascii, scanstring

from backstory.blob import digest

SECONDS = 0.15  # for everything: to connect, to ask, to hear
LARGEST_PAYLOAD = 200_000  # bytes; a prompt that is longer is a paste
LARGEST_REQUEST = 300_000  # bytes of a line; what is not ASCII takes more in JSON
LARGEST_ANSWER = 20_000
LONGEST_TEXT = 1_900  # characters; beside an outbox of 8,000 the client still takes it
LONGEST_PATH = 103  # bytes of a socket's path; Linux takes 107
MOST_SERVERS = 4  # that are tried
MOST_TRIES = 3  # prompts of a session without an answer
SOCKET = ".sock"
SHORT = f"/tmp/backstory-{os.geteuid()}-"  # noqa: S108  how our folders there begin; checked by is_private


# --- where a server listens ---------------------------------------------------------------------------------


def run_folder(data: str) -> str:
    return os.path.join(data, "run")


def socket_name(project: str, client: int, server: int) -> str:
    """By the client's process and the project a hook finds the server of its own session: the id of the
    session is another after /clear."""
    return f"{client}-{_key(project)}-{server}{SOCKET}"


def is_name(session_id: str) -> bool:
    """Can it be a part of a file's name? The same rule as in hook.sh."""
    return session_id.isascii() and session_id.replace("-", "").replace("_", "").isalnum()


def _key(project: str) -> str:
    return digest(os.fsencode(os.path.realpath(project)))[:12]


def short_folder(data: str) -> str:
    """Where sockets lie if their paths in the data folder would be too long; in run/ there are links then."""
    return SHORT + digest(os.fsencode(data))[:12]


def is_private(folder: str) -> bool:
    """Anybody may make a folder of any name in /tmp."""
    try:
        about = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077


def is_too_long(path: str) -> bool:
    return len(os.fsencode(path)) > LONGEST_PATH


def connected(path: str, seconds: float) -> _socket.socket | None:
    """A connection to the server there; None where none listens, or not in time."""
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        line.settimeout(max(seconds, 0.001))
        line.connect(path)
    except OSError:
        line.close()
        return None
    return line


# --- what a hook does ---------------------------------------------------------------------------------------


def main(moment: str, data: str, session: str, project: str, client: str, given: str) -> None:
    """`given` is the field of the payload on stdin that has the text; for a file, its path."""
    try:
        text = given if moment == "file" else _field(sys.stdin.buffer.read(LARGEST_PAYLOAD + 1), given)
        if not text:
            return
        request = {"moment": moment, "session": session, "folder": os.path.realpath(project), "text": text}
        parts = ", ".join(f'"{name}": {_quoted(value)}' for name, value in request.items())
        answer = ask(data, project, client, f"{{{parts}}}\n".encode("ascii"))
        told = _text(answer) if answer else ""
        note(data, session, moment, given, answer, told)
        if told:
            sys.stdout.write(_quoted(told))
            sys.stdout.flush()
    except Exception:  # noqa: BLE001  the edge of a hook: nothing may surface
        from backstory import log

        log.crash("ask")


def ask(data: str, project: str, client: str, request: bytes) -> str | None:
    """The line that is answered; None where there is none in time."""
    deadline = time.monotonic() + SECONDS
    for path in servers(data, project, client)[:MOST_SERVERS]:
        line = connected(path, deadline - time.monotonic())
        if line is None:
            continue
        try:
            answer = b""
            line.settimeout(max(deadline - time.monotonic(), 0.001))
            line.sendall(request)
            while not answer.endswith(b"\n"):
                line.settimeout(max(deadline - time.monotonic(), 0.001))
                part = line.recv(LARGEST_ANSWER)
                answer += part
                if not part or len(answer) > LARGEST_ANSWER or time.monotonic() > deadline:
                    return None
            return answer.decode("ascii", "replace")
        except OSError:
            return None
        finally:
            line.close()
    return None


def servers(data: str, project: str, client: str) -> list[str]:
    """Where servers of this project listen, that of our own client first. hook.sh is started by the client,
    or by a shell that it starts."""
    folder, middle = run_folder(data), f"-{_key(project)}-"
    try:
        names = [name for name in os.listdir(folder) if middle in name and name.endswith(SOCKET)]
    except OSError:
        return []
    if len(names) > 1:
        own = (client, _parent(client))
        names.sort(key=lambda name: name.partition("-")[0] not in own)
    sockets = []
    for name in names:
        path = os.path.join(folder, name)
        if not is_too_long(path):
            sockets.append(path)
        elif is_private(short := short_folder(data)):
            sockets.append(os.path.join(short, name))
    return sockets


def note(data: str, session: str, moment: str, path: str, answer: str | None, told: str) -> None:
    """Leave for hook.sh what need not be asked again."""
    base = os.path.join(run_folder(data), session)
    if moment == "prompt":
        state = "done" if answer and '"done": true' in answer else str(_tries(base) + (answer is None))
        put(base + ".prompts", "done" if state == str(MOST_TRIES) else state)
    elif moment == "file" and answer is not None:
        put(base + ".files", path + ("\ntold" if told else ""), os.O_APPEND)


def put(path: str, line: str, how: int = os.O_TRUNC) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | how
    try:
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, os.fsencode(line) + b"\n")
        finally:
            os.close(handle)
    except OSError:
        pass  # a full disk: it is asked once more


def _tries(base: str) -> int:
    try:
        with open(base + ".prompts", "rb") as file:
            return int(file.read(9))
    except (OSError, ValueError):
        return 0


def _parent(pid: str) -> str:
    """Of a process; "" where the system does not tell by a file."""
    try:
        with open(f"/proc/{int(pid)}/stat", "rb") as file:
            return file.read(1_000).rpartition(b") ")[2].split()[1].decode()
    except (OSError, ValueError, IndexError):
        return ""


def _field(payload: bytes, name: str) -> str:
    """A text in a payload. A quotation mark that is not escaped ends a string, so that only a name can have
    one before the colon."""
    if len(payload) > LARGEST_PAYLOAD:
        return ""
    text = payload.decode("utf-8", "replace")
    _, found, rest = text.partition(f'"{name}":')
    rest = rest.lstrip(" ")
    return str(scanstring(rest, 1)[0]) if found and rest.startswith('"') else ""


def _text(answer: str) -> str:
    told = _field(answer.encode(), "text")
    return told if len(told.encode("utf-16-le", "surrogatepass")) // 2 <= LONGEST_TEXT else ""


def _quoted(text: str) -> str:
    return str(encode_basestring_ascii(text))
