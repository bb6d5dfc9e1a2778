"""Finding out about a project, and what the sections of its CLAUDE.md say of it. Nothing is written."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from backstory import paths
from backstory.claude_md.read import git, patterns
from backstory.claude_md.read.files import Deadline, ProjectFiles, walk
from backstory.claude_md.read.hands_off import folders_of
from backstory.claude_md.read.patterns import Evidence
from backstory.claude_md.read.survey import by_hand, commands_in, survey
from backstory.claude_md.write import compose, sections
from backstory.claude_md.write.compose import Known
from backstory.claude_md.write.settings import Settings
from backstory.errors import NotFound
from backstory.model import Command, Pattern, Survey

OF_PATTERNS = frozenset(("conventions", "patterns"))
NEARLY_ALL = 0.8  # a folder with so much of the project's source has the project's conventions

NOTHING = "There is nothing in {root} yet that CLAUDE.md could say; run it again when there is code."

SECONDS = 60.0  # for reading files; the largest projects take ten. Only a hostile one can take longer
LATE = "was not read whole: it has too many files, is too deep or too slow"

UNCORRECTED = Settings()

Practices = Callable[[Survey], str | None]


@dataclass(frozen=True, slots=True)
class Learned(Known):
    evidence: Evidence | None = None  # what was read of the code: its folders are judged by it too
    is_cut: bool = False  # files were left out: there are too many, or reading took too long


def learn(
    root: str,
    *,
    wanted: Collection[str] = sections.NAMES,
    practices: Practices | None = None,
    project: ProjectFiles | None = None,
    seconds: float = SECONDS,
) -> Learned:
    """Find out about a project what these sections need. Nothing of it is executed. `project` is what lies in
    it, where that is known. After so many seconds no more files are read, and what they would have said is
    left out."""
    with ThreadPoolExecutor(1) as aside, ThreadPoolExecutor(1) as beside:
        history = aside.submit(git.insights, root) if "git-insights" in wanted else None
        project = project or walk(root)
        if not project.files:
            raise NotFound(NOTHING.format(root=paths.text(root)))
        deadline = Deadline(time.monotonic() + seconds)
        project = replace(project, deadline=deadline)
        written, languages = by_hand(project)
        # Other processes parse; meanwhile this one reads manifests.
        parsed = (
            beside.submit(patterns.read, written, _names(languages)) if OF_PATTERNS & set(wanted) else None
        )
        found = survey(project)
        project = project.without(folders_of(found.hands_off))
        evidence, seen = parsed.result() if parsed else None, tuple[Pattern, ...]()
        if evidence:
            if found.languages != languages:
                evidence = patterns.read(project, _names(found.languages))
            seen = patterns.judge(evidence, found.workspaces)
        said = practices(found) if practices and "best-practices" in wanted else None
        deadline.at = math.inf  # what is written of it is read later, and a person may think meanwhile
        insights = history.result() if history else None
        is_cut = deadline.is_missed or not project.whole
        return Learned(project, found, seen, insights, said, evidence, is_cut)


def _names(languages: Sequence[tuple[str, float]]) -> list[str]:
    return [name for name, _ in languages]


def texts_of(
    known: Learned, folder: str, settings: Settings = UNCORRECTED, *, elsewhere: Collection[str] = ()
) -> dict[str, str]:
    """What the sections say of the file in a folder of the project, with a person's commands where its
    settings have some; "" is its root, which leaves to others what these folders say `elsewhere`."""
    commands = commands_of(known, folder, settings)
    if not folder:
        return compose.texts(replace(known, survey=replace(known.survey, commands=commands)), elsewhere)
    part = known.project.below(folder)
    own = _own_patterns(known, folder, part)
    return compose.module_texts(known, folder, part, own, commands=commands)


def commands_of(known: Learned, folder: str, settings: Settings = UNCORRECTED) -> tuple[Command, ...]:
    found = commands_in(known.project, folder) if folder else known.survey.commands
    return settings.corrected(found)


def _own_patterns(known: Learned, folder: str, part: ProjectFiles) -> Sequence[Pattern]:
    whole = sum(file.size for file in known.project.files)
    if known.evidence is None or sum(file.size for file in part.files) > NEARLY_ALL * whole:
        return ()
    return patterns.judge(known.evidence, folder=folder)
