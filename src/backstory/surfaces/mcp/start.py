"""The start of an MCP server: `backstory mcp`, which has all tools, `backstory mcp memory` and `backstory mcp
docmem`. It is in a hurry, see `handshake`.

What a killed server left in CLAUDE.md goes before the first answer. Only where there is a sign of it the
modules are imported that know more.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import ModuleType

from backstory import paths
from backstory.surfaces.mcp import listing
from backstory.surfaces.mcp.ending import Ending
from backstory.surfaces.mcp.handshake import Handshake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SECTION = b"DOCMEM Dynamic"
LARGEST = 10_000_000  # bytes of a CLAUDE.md
# The mcp package imports these if it finds them, to serve HTTP and to log in colours: 7 MB.
NOT_NEEDED = ("uvicorn", "rich")
# And these, another 7 MB, to seal a state that clients carry from call to call: see `NoState` in server.py.
FOR_STATES = (
    "cryptography.exceptions",
    "cryptography.hazmat.primitives.ciphers.aead",
    "cryptography.hazmat.primitives.hashes",
    "cryptography.hazmat.primitives.kdf.hkdf",
)


def serve(server: str) -> None:
    if os.environ.get("BACKSTORY_WORKER") == "1":
        return  # our own worker must not remember itself, nor see what the user's sessions show
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until there is anything to clean up
    ending = Ending()
    try:
        _serve(server, ending)
    finally:
        ending.wait()


def _serve(server: str, ending: Ending) -> None:
    if server != listing.MEMORY and _is_anything_left():
        from backstory.surfaces.mcp import live

        ending.also(live.end)
        ending.watch()
        live.begin()
    handshake = Handshake(server)
    try:
        if not handshake.meet(sys.stdin.buffer, sys.stdout.buffer):
            return
    except BrokenPipeError:
        sys.stdout = None  # Python would flush it once more
        return
    from backstory import heap

    heap.one_for_all_threads()
    ending.watch()
    threading.Thread(target=_beside, args=(server, ending), daemon=True).start()
    if not handshake.rest:
        threading.Thread(target=_notice_the_end, args=(ending,), daemon=True).start()
    _imported_serve()(handshake, ending)


def _notice_the_end(ending: Ending) -> None:
    """On a busy machine the import takes many seconds. A client that hangs up meanwhile, and has sent nothing
    more, leaves a server with nothing to do."""
    import select

    stdin = select.poll()
    stdin.register(sys.stdin.fileno(), select.POLLHUP)
    stdin.poll()
    if not sys.stdin.buffer.peek(1):  # type: ignore[union-attr]  # it is a BufferedReader
        ending.is_near()


def _imported_serve() -> Callable[[Handshake, Ending], None]:
    """`serve` of server.py, with the mcp package imported without what would only take memory. Others that
    import `FOR_STATES` later get the real ones."""
    for name in NOT_NEEDED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
    absent = [name for name in FOR_STATES if name not in sys.modules]
    for name in absent:
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name])["__getattr__"] = lambda needed: type(needed, (Exception,), {})
    try:
        from backstory.surfaces.mcp.server import serve
    finally:
        for name in absent:
            del sys.modules[name]
    return serve


def _beside(server: str, ending: Ending) -> None:
    """What is done in a thread once the handshake is over, while the mcp package is imported.

    What else is to run beside the calls starts here, before the warm-up, which takes a while. Whatever must
    not outlive the server is told to the `ending` first: `if ending.also(stop): start()`.
    """
    if server != listing.DOCMEM:
        from backstory.surfaces.mcp import listener
        from backstory.surfaces.mcp.tool_context import index, project, undrained, warm_up

        def listen() -> None:
            if data := paths.data_folder(os.environ):
                listener.begin(data, project(), undrained, index)

        if ending.also(listener.end):
            warm_up(listen)  # before it is ready, a hook would wait in vain


def _is_anything_left() -> bool:
    """Did a server leave anything, dead or alive? `live.begin` finds out what of it may go."""
    data = paths.data_folder(os.environ)
    try:
        file = os.path.realpath(os.path.join(os.getcwd(), "CLAUDE.md"))
        folder, name = os.path.split(file)
        if any(entry.startswith(f".{name}.backstory-") for entry in os.listdir(folder)):
            return True
        if os.path.isfile(file) and os.path.getsize(file) <= LARGEST:
            with open(file, "rb") as text:
                if SECTION in text.read():
                    return True
    except OSError:
        pass  # a file that cannot be read has nothing of ours
    return data is not None and any(_has_files(os.path.join(data, name)) for name in ("servers", "outbox"))


def _has_files(folder: str) -> bool:
    return os.path.isdir(folder) and bool(os.listdir(folder))
