"""What a CLAUDE.md by `backstory init` is worth to somebody who is new to a repository.

`newcomer/needs/` says for real repositories what somebody needs to know who begins to work there, written
down by readers of the repository who had seen nothing that backstory says of it. `newcomer/verdicts/` says
what two readers, who had built none of it, thought of the text: of each statement whether it is true and
whether it is useful, of each need whether it is met, and whether they would commit the file as it is. The
repositories are never committed; clone them into a folder, at the commit that `needs` names.

The sets of verdicts, with the folder of their needs:

    before, after-first-look, after-second-look, after    the first 16, which rules were made with
    with-model                     the same after `/backstory:memory-init`, where a model adds and corrects
    others, others-with-model, last-others (others/)      13 that were opened once
    fresh, third, fourth, fifth (of that name)            16 each at first sight, by the program alone
    third-with-model (third/)      the 16 of `third` at first sight, after `/backstory:memory-init`

    python bench/newcomer.py                      the figures of the verdicts, before and after
    python bench/newcomer.py --repositories DIR --write DIR [--source DIR]
                                                  the texts that readers judge, of this backstory or another
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import report
from report import Budget
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent / "newcomer"
TRUE, USEFUL, RECALL, COMMITTED = 0.97, 0.75, 0.70, 12
PARTLY = 0.5  # of a need that is met in part


@dataclass(frozen=True, slots=True)
class Figures:
    """What all readers together thought of one state of backstory."""

    label: str
    repositories: int
    statements: int
    true: float
    useful: float
    recall: float
    committed: float  # repositories, in the mean of the readers
    committed_by_all: int


def main() -> int:
    parser = report.options(__doc__)
    parser.add_argument("--repositories", metavar="DIR", help="clones of the repositories, by their names")
    parser.add_argument("--write", metavar="DIR", help="where the texts go that readers judge")
    parser.add_argument("--source", metavar="DIR", help="the src/ of another backstory")
    parser.add_argument("--verdicts", metavar="DIR", default=str(HERE / "verdicts"))
    given = parser.parse_args()
    if given.repositories and given.write:
        return _write(Path(given.repositories), Path(given.write), given.source)
    found = [_figures(folder) for folder in sorted(Path(given.verdicts).iterdir(), reverse=True)]
    figures = {one.label: one for one in found}
    return report.tell(
        "newcomer",
        given,
        {"figures": [asdict(one) for one in found]},
        _budgets(figures["third-with-model"]) if "third-with-model" in figures else [],
        lambda console: _show(console, found),
    )


# The texts.


def _write(repositories: Path, target: Path, source: str | None) -> int:
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(repositories.iterdir()):
        told = _init(path, source)
        (target / f"{path.name}.json").write_text(json.dumps(told, indent=1), "utf-8")
        (target / f"{path.name}.md").write_text(_text(told), "utf-8")
        print(f"{path.name}: {len(_text(told)) // 4} tokens")
    return 0


def _init(project: Path, source: str | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        env = {"HOME": home, "PATH": os.environ["PATH"], "BACKSTORY_HOME": os.path.join(home, "data")}
        if source:
            env["PYTHONPATH"] = source
        command = [sys.executable, "-P", "-m", "backstory", "init", "--dry-run", "--json", "--offline"]
        done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _text(told: dict[str, Any]) -> str:
    """Each file as it would be written; of one that is there only what is added."""
    parts = []
    for file in told["files"]:
        said = "\n\n".join(file["text"].values())
        parts.append(f"===== {file['path']} ({file['action']}) =====\n\n{said}\n")
    return "\n".join(parts)


# The verdicts.


def _figures(folder: Path) -> Figures:
    """A folder has one for each reader, with a file for each repository."""
    readers = [
        {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(reader.glob("*.json"))}
        for reader in sorted(folder.iterdir())
    ]
    verdicts = [verdict for reader in readers for verdict in reader.values()]
    statements = [one for verdict in verdicts for one in verdict["statements"]]
    needs = [met for verdict in verdicts for met in verdict["needs"].values()]
    names = sorted({name for reader in readers for name in reader})
    commits = {name: [reader[name]["commit"] for reader in readers if name in reader] for name in names}
    return Figures(
        label=folder.name,
        repositories=len(names),
        statements=len(statements),
        true=_share(one["true"] for one in statements),
        useful=_share(one["useful"] for one in statements),
        recall=_share({"met": 1.0, "partly": PARTLY, "missing": 0.0}[met] for met in needs),
        committed=round(sum(_share(said) for said in commits.values()), 1),
        committed_by_all=sum(all(said) for said in commits.values()),
    )


def _share(values: Any) -> float:
    found = [float(value) for value in values]
    return round(sum(found) / len(found), 3) if found else 0.0


def _budgets(found: Figures) -> list[Budget]:
    return [
        Budget("statements that are true", "at least", TRUE, found.true),
        Budget("statements that are useful", "at least", USEFUL, found.useful),
        Budget("needs that are met", "at least", RECALL, found.recall),
        Budget("would be committed as it is, by all readers", "at least", COMMITTED, found.committed_by_all),
    ]


def _show(console: Console, found: Sequence[Figures]) -> None:
    table = Table("", "repositories", "statements", "true", "useful", "needs met", "would commit", "by all")
    for one in found:
        table.add_row(
            one.label,
            str(one.repositories),
            str(one.statements),
            f"{one.true:.1%}",
            f"{one.useful:.1%}",
            f"{one.recall:.1%}",
            f"{one.committed:g}",
            str(one.committed_by_all),
        )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
