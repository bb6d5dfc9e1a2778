"""What prose rests on: the facts that a program would state in its place.

Nobody can compute whether a model's sentences are still true. But what the program would say of the same
subject can be computed, when the text is written and later, and reduced to facts that do not move with the
wording: commands, folders, languages. The text is behind if these have changed. So an edited comment, a
sentence of a README, or a new file in a folder that is known put nothing behind.

    project-description, module-description   languages and frameworks; of a module also its commands
    build-commands                            the package managers, and what the section has in code spans
    architecture                              folders, and those of migrations
    conventions, patterns                     what the section has in code spans

What stands in parentheses is evidence; what a folder says about itself, and what a document says in its own
words, is wording. Git's insights and best practices change though the project does not, so nothing puts a
model's text about them behind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping

from backstory import paths
from backstory.claude_md.learn import Learned
from backstory.claude_md.read import outline
from backstory.claude_md.read.survey import survey
from backstory.claude_md.write import compose, sections

Facts = frozenset[str]

KNOWN = compose.ALWAYS_COMPUTABLE
WITHOUT_SPANS = frozenset(("project-description", "architecture"))  # there they are a matter of wording
MOST = 1_000  # facts of a section
LONGEST = 200  # characters of one


def facts(name: str, known: Learned, folder: str, texts: Mapping[str, str]) -> Facts:
    """What the section of the CLAUDE.md in a folder rests on now; `texts` is what the program would write
    there. Only for a name in KNOWN."""
    found = [] if name in WITHOUT_SPANS else list(_spans(name, sections.cleaned(texts.get(name, ""))))
    if name.endswith("-description"):
        part = survey(known.project.below(folder)) if folder else known.survey
        found += [*(language for language, _ in part.languages), *part.frameworks]
    elif name == "build-commands":
        found += known.survey.managers
    elif name == "architecture":
        project = known.project.below(folder) if folder else known.project
        folders = outline.parts(project, () if folder else known.survey.workspaces)
        others = outline.migrations(project) if not folder else []
        lines = (" ".join(paths.text(path).split()) for path in (*folders, *others))
        found += sections.redacted("\n".join(lines)).split("\n")
    return frozenset(sorted({fact[:LONGEST] for fact in found if fact})[:MOST])


def digest(facts: Collection[str]) -> str:
    return hashlib.sha256("\n".join(sorted(facts)).encode()).hexdigest()[:12]


def difference(before: Facts, now: Facts) -> tuple[str, ...]:
    """What came and what went: + `worker/`, - `make lint`."""
    came, went = sorted(now - before), sorted(before - now)
    return (*(f"+ `{fact}`" for fact in came), *(f"- `{fact}`" for fact in went))


def unnamed(text: str, now: Facts) -> tuple[str, ...]:
    """The same where only a digest of the facts before is known, as in a clone: what a text does not name."""
    came = [fact for fact in sorted(now) if fact.rstrip("/") not in text]
    return tuple(f"+ `{fact}`" for fact in came) or ("something that it named is gone",)


def _spans(name: str, text: str) -> Iterator[str]:
    """The code in the items of a section's lists, without what is quoted there: which sentences of a document
    are, depends on the room that the others leave."""
    for line in text.split("\n"):
        item = line.strip()
        if not item.startswith("- ") or item.startswith(compose.QUOTED) or item.endswith(compose.SAYS):
            continue
        pieces = list(_pieces(line.partition(compose.AS)[0] if name == "patterns" else line))
        depth = 0
        for plain, code in pieces:
            depth += plain.count("(") - plain.count(")")
            if code and depth <= 0:
                yield code


def _pieces(line: str) -> Iterator[tuple[str, str]]:
    """Plain text, and the code behind it."""
    at = 0
    while (start := line.find("`", at)) >= 0:
        inner = start
        while line[inner : inner + 1] == "`":
            inner += 1
        stop = line.find(line[start:inner], inner)
        if stop < 0:
            break
        yield line[at:start], line[inner:stop].strip()
        at = stop + inner - start
    yield line[at:], ""
