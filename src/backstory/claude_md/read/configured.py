"""What the settings of tools ask of those who write code: line lengths, strictness, change logs, aliases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from backstory.claude_md.read.manifests.folder import Folder, dig, table, word, words
from backstory.model import Fact

PRETTIER = (".prettierrc", ".prettierrc.json", ".prettierrc.yaml", ".prettierrc.yml", ".prettierrc.toml")
WIDTHS = (  # a file, and the line that says it
    (".clang-format", r"^ColumnLimit:\s*(\d+)"),
    ("rustfmt.toml", r"^max_width\s*=\s*(\d+)"),
    (".rustfmt.toml", r"^max_width\s*=\s*(\d+)"),
    *((name, r"[\"']?printWidth[\"']?\s*[:=]\s*(\d+)") for name in PRETTIER),
    ("biome.json", r"\"lineWidth\"\s*:\s*(\d+)"),
    (".flake8", r"^max-line-length\s*=\s*(\d+)"),
)
UNRELEASED = re.compile(
    r"^(?:#{1,3}\s*\[?(?:unreleased|next|upcoming|develop)\b.*|unreleased\n[-=~]+)",
    re.IGNORECASE | re.MULTILINE,
)
CHANGELOG = re.compile(r"(?:CHANGE(?:LOG|S)|HISTORY|NEWS)(?:\.(?:md|rst|txt))?", re.IGNORECASE)
COMMIT_HOOKS = (".husky/commit-msg", "lefthook.yml", ".lefthook.yml", ".pre-commit-config.yaml")
HOOK = re.compile(r"^[ \t]*-[ \t]+id:[ \t]*[\"']?([\w.-]{1,60})", re.MULTILINE)
TRIVIAL_HOOK = re.compile(
    r"check-|end-of-file|trailing-|mixed-line|detect-|debug-|fix-|no-commit|file-contents|destroyed"
)
# What is never closed goes on to the end: it would be looked for again from each of its signs.
COMMENT = re.compile(r"(\"(?:[^\"\\]|\\.)*+\"?)|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
WARNINGS = (
    *(
        (path, r"<TreatWarningsAsErrors>\s*true")
        for path in ("Directory.Build.props", "src/Directory.Build.props")
    ),
    ("meson.build", r"werror=true"),
    ("mix.exs", r"warnings_as_errors: *true"),
)
# Where a formatter is named that people do run.
SAYING = tuple(
    "CONTRIBUTING.md README.md Makefile CMakeLists.txt meson.build .pre-commit-config.yaml".split()
)
LONGEST_SCRIPT = 100
LONGEST_ALIAS = 50  # and what it stands for; three of them make a line
WIDEST, NARROWEST = 400, 40  # a line of another length is nobody's


def configured(folder: Folder) -> tuple[Fact, ...]:
    return tuple(
        fact
        for find in (
            _width,
            _formatters,
            _strict,
            _warnings,
            _installing,
            _aliases,
            _changes,
            _commits,
        )
        for fact in find(folder)
        if fact.text.isprintable()
    )


def _width(folder: Folder) -> Iterator[Fact]:
    project = folder.toml("pyproject.toml")
    for tool in ("ruff", "black"):
        number = dig(project, "tool", tool, "line-length")
        if isinstance(number, int) and NARROWEST <= number <= WIDEST:
            yield Fact(f"Lines have at most {number} characters", "pyproject.toml")
            return
    for name, pattern in WIDTHS:
        found = re.search(pattern, folder.text(name), re.MULTILINE) if name in folder.names else None
        if found and NARROWEST <= int(found[1][:4]) <= WIDEST:
            what = "Lines of files that Prettier formats" if name in PRETTIER else "Lines"
            yield Fact(f"{what} have at most {int(found[1][:4])} characters", name)
            return


def _formatters(folder: Folder) -> Iterator[Fact]:
    """What runs by itself at a commit, and what formats C."""
    hooks = HOOK.findall(folder.text(".pre-commit-config.yaml"))
    telling = [name for name in dict.fromkeys(hooks) if not TRIVIAL_HOOK.match(name)]
    if telling:
        shown = ", ".join(f"`{name}`" for name in telling[:6])
        yield Fact(f"Hooks of pre-commit check each commit: {shown}", ".pre-commit-config.yaml")
    said = (folder.text(path) for path in (*SAYING, *folder.inside(".github/workflows")))
    if ".clang-format" in folder.names and any("clang-format" in text for text in said):
        style = re.search(r"^BasedOnStyle:\s*(\w+)", folder.text(".clang-format"), re.MULTILINE)
        yield Fact(
            f"C and C++ are formatted by clang-format{f' ({style[1]} style)' if style else ''}",
            ".clang-format",
        )


def _strict(folder: Folder) -> Iterator[Fact]:
    mypy = table(dig(folder.toml("pyproject.toml"), "tool", "mypy"))
    if mypy.get("strict") is True and "overrides" not in mypy:
        yield Fact("mypy is strict: every function has types", "pyproject.toml")
    cargo = folder.toml("Cargo.toml")
    lints = {**table(dig(cargo, "lints", "rust")), **table(dig(cargo, "workspace", "lints", "rust"))}
    for name in ("unsafe_code", "missing_docs"):
        level = lints.get(name)
        level = word(dig(level, "level")) or word(level)
        if level in ("forbid", "deny"):
            what = {
                "unsafe_code": "`unsafe` code is not allowed",
                "missing_docs": "Every public item needs a doc comment",
            }
            yield Fact(what[name], "Cargo.toml")


def _warnings(folder: Folder) -> Iterator[Fact]:
    """The first file that makes a warning break the build."""
    for file, pattern in WARNINGS:
        if re.search(pattern, folder.text(file), re.IGNORECASE):
            yield Fact("Compiler warnings are errors", file)
            return
    for path in folder.inside(".github/workflows"):
        if re.search(r"RUSTFLAGS: *[\"']?[^\n]{0,80}-D *warnings", folder.text(path)):
            yield Fact("Compiler warnings are errors in CI", path)
            return


def _installing(folder: Folder) -> Iterator[Fact]:
    """What an install runs besides: it may need a database."""
    script = word(dig(folder.json("package.json"), "scripts", "postinstall"))
    if script and len(script) <= LONGEST_SCRIPT and "`" not in script:
        yield Fact(f"Installing packages also runs `{script}`", "package.json")


def _aliases(folder: Folder) -> Iterator[Fact]:
    """Names that imports use for folders."""
    for name in ("tsconfig.json", "tsconfig.base.json", "jsconfig.json"):
        if name not in folder.names:
            continue
        paths = table(dig(_loose_json(folder.text(name)), "compilerOptions", "paths"))
        shown = [
            f'`"{alias}"` is `{target[0]}`'
            for alias, target in paths.items()
            if isinstance(alias, str)
            and words(target)
            and alias.endswith("*")
            and len(alias + target[0]) <= LONGEST_ALIAS
            and "`" not in alias + target[0]
        ]
        if shown:
            yield Fact(f"In imports {', '.join(shown[:3])}", name)
            return


def _changes(folder: Folder) -> Iterator[Fact]:
    if folder.has(".changeset/config.json"):
        yield Fact(
            "A change that users notice needs a changeset (a file in `.changeset/`)", ".changeset/config.json"
        )
        return
    fragments = word(dig(folder.toml("pyproject.toml"), "tool", "towncrier", "directory"))
    if fragments and folder.any_below(fragments, "") and "`" not in fragments:
        yield Fact(f"A change that users notice needs a news fragment in `{fragments}/`", "pyproject.toml")
        return
    if (noted := unreleased(folder)) and folder.first("cliff.toml", ".cliff.toml") is None:
        yield noted  # git-cliff writes it from the commits


def unreleased(folder: Folder) -> Fact | None:
    """The change log in which people note what is not released yet."""
    for name in sorted(folder.names):
        if CHANGELOG.fullmatch(name) and (found := _unreleased(folder.text(name, 5_000_000))):
            title = re.split(r"[\](\n]", found[0].lstrip("# ["), maxsplit=1)[0].strip("` ")
            return Fact(f"Changes that users notice are noted in `{name}` under `{title[:40]}`", name)
    return None


def _unreleased(text: str) -> re.Match[str] | None:
    """The heading of what is not released yet, where something is noted below it."""
    found = UNRELEASED.search(text[:4_000])
    below = (
        re.split(r"^#{1,2} |^[-=~]{4,}$", text[found.end() : found.end() + 4_000], maxsplit=1, flags=re.M)[0]
        if found
        else ""
    )
    return found if re.search(r"^[ \t]*[-*+] \S", below, re.MULTILINE) else None


def _commits(folder: Folder) -> Iterator[Fact]:
    hook = next((path for path in COMMIT_HOOKS if "commitlint" in folder.text(path)), None)
    if hook:
        yield Fact("commitlint checks commit messages: Conventional Commits", hook, "commits")
    if folder.has(".github/dco.yml"):
        yield Fact("Commits are signed off (`git commit -s`)", ".github/dco.yml", "commits")


def _loose_json(text: str) -> dict[str, Any]:
    """JSON as TypeScript's settings have it: with comments, and commas behind the last."""
    bare = COMMENT.sub(lambda found: found[1] or "", text[:100_000])
    try:
        return table(json.loads(re.sub(r",(\s*[}\]])", r"\1", bare)))
    except (ValueError, RecursionError):
        return {}
