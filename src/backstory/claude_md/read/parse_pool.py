"""Source files read with tree-sitter in processes of their own.

A parser written in C meets whatever lies in a repository. A few kilobytes of the wrong text keep it busy for
minutes or crash it, and nothing in this process could stop it. So children parse; one that needs too long for
a file is ended by the kernel, and another goes on with the next file. Two of them take half the time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from backstory import log
from backstory.claude_md.read.files import ProjectFiles

if TYPE_CHECKING:
    from backstory.claude_md.read.grammars import Found

CHILDREN = 2
SECONDS = 1.0  # of computing, for one file; the largest that we read takes a tenth of it
SECONDS_IN_ALL = 10  # for what takes one
LARGEST = 250_000  # bytes of a file
FAILURES = 4  # after so many files that end it, a child is not started again
CODE = """
import sys
sys.path[:] = sys.argv[1:]
from backstory import log
try:
    from backstory.claude_md.read import parse_pool
    parse_pool.main()
except Exception:
    log.crash("patterns")
    sys.exit(1)
"""


class Job(NamedTuple):
    language: str
    path: str


def read(project: ProjectFiles, jobs: Sequence[Job]) -> list[tuple[Job, Found]]:
    """What the files show that could be parsed, in the order of the jobs."""
    found: dict[Job, Found] = {}

    def take(part: Sequence[Job]) -> None:
        for job, result in _results(project.root, part):
            if result is not None:
                found[job] = result

    parts = [part for part in (jobs[number::CHILDREN] for number in range(CHILDREN)) if part]
    with ThreadPoolExecutor(CHILDREN) as pool:
        list(pool.map(take, parts))
    return [(job, found[job]) for job in jobs if job in found]


def _results(root: str, jobs: Sequence[Job]) -> Iterator[tuple[Job, Found | None]]:
    places = [place for place in sys.path if os.path.isabs(place)]
    for _ in range(FAILURES):
        done = 0
        with tempfile.TemporaryFile() as given:
            given.write(json.dumps([root, *jobs]).encode())
            given.seek(0)
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", CODE, *places],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
            )
        with child:
            for line in child.stdout or ():
                if not line.endswith(b"\n"):
                    break  # it died in the middle of it
                yield jobs[done], json.loads(line)
                done += 1
        if child.returncode >= 0 or child.returncode == -signal.SIGXCPU or done == len(jobs):
            return  # done; or an exception, which is in the log; or too long in all
        log.write("warning", f"patterns: {os.path.join(root, jobs[done].path)} cannot be parsed")
        jobs = jobs[done + 1 :]
        if not jobs:
            return


def main() -> None:
    """The child: jobs on its input, a line of JSON for each on its output."""
    import resource

    from backstory.claude_md.read.grammars import found

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for ending in (signal.SIGPROF, signal.SIGXCPU):
        signal.signal(ending, signal.SIG_DFL)  # the kernel ends it, wherever it is
    _, most = resource.getrlimit(resource.RLIMIT_CPU)  # what the kernel does for it is counted as well
    seconds = SECONDS_IN_ALL if most == resource.RLIM_INFINITY else min(SECONDS_IN_ALL, most)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, most))
    root, *jobs = json.load(sys.stdin)
    project = ProjectFiles(root, ())
    for language, path in jobs:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        text = project.text(path, LARGEST)
        result = None if text is None else found(language, path, text)
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
