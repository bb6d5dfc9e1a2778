"""The note that asks a model to see to the prose it wrote: it waits in `notes/<session>` until the hook of
the session's next prompt takes it, prints its first line and removes it. Nothing of it is on the screen.

The second line says which project it is about. A session that begins there takes over a note that was not
told: its own session has ended, or nobody has typed there since. Either way one session is told.
"""

from __future__ import annotations

import os

from backstory import dirty, paths
from backstory.store import claude_files
from backstory.surfaces.asking import is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from backstory.claude_md.sync import Prose
    from backstory.store.file.connection import Connection

AGENT = "backstory:memory-updater"
MOST_SECTIONS = 12
MOST_WORDS = 3  # of the name of a folder
MOST_PLAIN = 5  # words in a command without any sign
MOST_FACTS = 6  # named of a section
LONGEST_FACT = 60
LONGEST_PLACE = 100


def put(data: str, session_id: str, root: str, behind: Sequence[Prose]) -> None:
    """In the place of what waited before: this is all that is behind."""
    import json
    from contextlib import suppress

    from backstory.whole_file import whole_file

    path = os.path.join(_folder(data), session_id)
    if not behind:
        with suppress(FileNotFoundError):
            os.unlink(path)
        return
    paths.make_folder(_folder(data))
    with whole_file(path, replaces=True, mode=0o600) as file:
        file.write(json.dumps(request(behind, root)).encode("ascii") + b"\n" + os.fsencode(root) + b"\n")


def request(behind: Sequence[Prose], root: str) -> str:
    """What the model is asked. A repository decides what its folders and commands are called, so no sign in
    one may end the prompt, or look like a bracket that opens a tag."""
    from backstory.clients import claude_code

    above = os.path.realpath(root).rstrip("/") + "/"
    named = []
    for one in behind[:MOST_SECTIONS]:
        facts = [_shown(_named(fact), LONGEST_FACT) for fact in one.because[:MOST_FACTS]]
        more = len(one.because) - MOST_FACTS
        why = ", ".join(facts) + (f" and {more} more" if more > 0 else "")
        named.append(f"{one.name} in {_place(one.path.removeprefix(above))} ({why})")
    spawned = claude_code.spawn(AGENT, f"Update these sections of CLAUDE.md: {'; '.join(named)}")
    return (
        "Sections of CLAUDE.md that a model wrote are behind: facts they rest on came (+) or went (-)."
        f" {spawned}. Once, in the background if you can, beside what the user asks for now; do not tell the"
        " user about it unless something went wrong."
    )


def _named(fact: str) -> str:
    """A fact without its quotes. What reads as a sentence is not told as what it says."""
    fact = fact.replace("`", "")
    if fact.endswith("/"):
        return f"{fact[:1]} a folder" if fact.count(" ") > MOST_WORDS else fact
    is_sentence = sum(word.isalpha() for word in fact[1:].split()) > MOST_PLAIN
    return f"{fact[:1]} a sentence" if is_sentence else fact


def _place(path: str) -> str:
    """A file, seen from the project; the agent looks for itself where a name could be read as a sentence."""
    signs = path.replace("/", "").replace(".", "").replace("-", "").replace("_", "")
    return path if signs.isalnum() and len(path) <= LONGEST_PLACE else "a file in a folder of it"


def _shown(text: str, most: int) -> str:
    from backstory.safety.fence import BRACKETS

    shown = "".join(sign if sign.isprintable() and sign not in f"'\"`>\\{BRACKETS}" else "?" for sign in text)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def take_over(db: Connection, data: str, session_id: str, cwd: str) -> None:
    """A session begins: what was not told to another one of the project is for this one, unless the prose was
    seen to since."""
    folder = _folder(data)
    try:
        names = [name for name in sorted(os.listdir(folder)) if not name.startswith(".")]
    except OSError:
        return  # mostly there is none
    root = dirty.root_of(cwd) if names else None
    for name in names:
        path = os.path.join(folder, name)
        try:
            with open(path, "rb") as file:
                about = os.fsdecode(b"".join(file.read().split(b"\n")[1:2]))
            if about == root and is_name(session_id) and claude_files.is_behind(db, root):
                os.rename(path, os.path.join(folder, session_id))
            elif about == root or not os.path.isdir(about):
                os.unlink(path)
        except OSError:
            pass  # another session was faster


def _folder(data: str) -> str:
    return os.path.join(data, "notes")
