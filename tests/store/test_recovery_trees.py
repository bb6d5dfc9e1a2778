"""Trees in a damaged database: what hangs below a lost node is not lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backstory import paths
from backstory.docmem import tree
from backstory.model import Project
from backstory.store import nodes, projects
from backstory.store.file import backup, recovery
from backstory.store.file.connection import transaction
from backstory.surfaces.opened import open_drained
from tests.helpers.backups import PAGE, database, root_page, spoil
from tests.helpers.chaos import DAY, NOW, assert_sound, rows
from tests.helpers.trees import assert_trees_sound

pytestmark = pytest.mark.usefixtures("no_worker")


@pytest.fixture
def planted(data: Path) -> tuple[Path, Project]:
    """A store with a tree `main`, and a backup of it."""
    with open_drained(str(data), now=NOW) as db:
        with transaction(db):
            number = projects.ensure(db, paths.place("/"), NOW)
        project = projects.by_id(db, number)
        tree.create(db, project, root_id="main", now=NOW)
    backup.make(str(data), NOW - DAY)
    return data, project


def grow(data: Path, project: Project, *new: tuple[str, str]) -> list[str]:
    """Nodes as (target, text), each so long that it has a page to itself; their ids. A target may be the text
    of an earlier one."""
    made: dict[str, str] = {}
    with open_drained(str(data), now=NOW) as db:
        for target, text in new:
            whole = text + " " * (3_000 - len(text))
            one = tree.add(
                db, project, made.get(target, target), whole, ("note", text, ""), "append-child", now=NOW
            )
            made[text] = one.id
    return list(made.values())


def lose(data: Path, text: str) -> None:
    """Spoil the page that this node is on."""
    spoil(data, database(data).read_bytes().index(f"{text} ".encode() + b" " * 100) // PAGE + 1)


def recovered(data: Path, project: Project, *root_ids: str) -> list[list[tuple[str, int]]]:
    """Recover; the trees, each node as (name, depth), depth-first."""
    assert recovery.verify(str(data), NOW) is not None
    assert_sound(data)
    with open_drained(str(data), now=NOW) as db:
        assert_trees_sound(db)
        assert {one.id for one in nodes.roots(db, project.number)} >= set(root_ids)
        return [
            [
                (one.context_name, len(nodes.path(db, project.number, one.id)) - 1)
                for one in nodes.subtree(db, project.number, root.id)
            ]
            for root in nodes.roots(db, project.number)
        ]


def test_nodes_whose_parent_is_lost_go_to_the_end_of_their_tree(planted: tuple[Path, Project]) -> None:
    data, project = planted
    grow(
        data,
        project,
        ("main", "lost"),
        ("lost", "first"),
        ("first", "below"),
        ("lost", "second"),
        ("main", "last"),
    )
    lose(data, "lost")
    assert recovered(data, project, "main") == [
        [("main", 0), ("last", 1), ("first", 1), ("below", 2), ("second", 1)]
    ]


def test_nodes_whose_root_is_lost_become_roots_with_all_below_them(planted: tuple[Path, Project]) -> None:
    data, project = planted
    with open_drained(str(data), now=NOW) as db:
        tree.create(db, project, root_id="other", text="other" + " " * 3_000, now=NOW)
    ids = grow(data, project, ("other", "one"), ("other", "two"), ("two", "below"), ("below", "deeper"))
    lose(data, "other")
    found = recovered(data, project, "main", ids[0], ids[1])
    assert sorted(found) == [[("main", 0)], [("one", 0)], [("two", 0), ("below", 1), ("deeper", 2)]]


def test_rows_of_two_files_that_lead_in_a_circle_are_put_back_into_their_tree(
    planted: tuple[Path, Project],
) -> None:
    data, project = planted
    upper, lower, _, other = grow(
        data, project, ("main", "upper"), ("upper", "lower"), ("lower", "leaf"), ("main", "other")
    )
    backup.make(str(data), NOW - DAY + 1_000)
    with open_drained(str(data), now=NOW) as db:
        tree.move(db, project, lower, other, "before", now=NOW)
        tree.move(db, project, upper, lower, "append-child", now=NOW)
    lose(data, "lower")  # the backup has it below upper, and the file has upper below it
    (found,) = recovered(data, project, "main")
    assert sorted(name for name, _ in found) == ["leaf", "lower", "main", "other", "upper"]


def test_nodes_of_two_files_never_share_a_place(planted: tuple[Path, Project]) -> None:
    data, project = planted
    _, gone, _ = grow(data, project, ("main", "one"), ("main", "gone"), ("one", "lost"))
    backup.make(str(data), NOW - DAY + 1_000)
    with open_drained(str(data), now=NOW) as db:
        tree.delete(db, project, gone)
    grow(data, project, ("main", "new"), ("main", "more"))  # where the other was
    lose(data, "lost")
    assert recovered(data, project, "main") == [
        [("main", 0), ("one", 1), ("lost", 2), ("gone", 1), ("new", 1), ("more", 1)]
    ]


def test_who_lost_something_is_told_how_many_nodes_are_saved(planted: tuple[Path, Project]) -> None:
    data, project = planted
    grow(data, project, ("main", "one"), ("main", "lost"), ("main", "two"))
    lose(data, "lost")
    done = recovery.verify(str(data), NOW)
    assert done is not None
    assert re.search(r"\d nodes newer than it could be read", done.sentence()), done.sentence()


def test_a_row_number_of_a_node_is_never_used_again(planted: tuple[Path, Project]) -> None:
    data, project = planted
    (node,) = grow(data, project, ("main", "one"))
    spoil(data, root_page(data, "projects"))
    recovered(data, project, "main")
    (below,) = grow(data, project, (node, "two"))
    rows_of = {row["id"]: row["row"] for row in rows(data, "SELECT id, row FROM docmem_nodes")}
    assert rows_of[below] > rows_of[node]


def test_views_of_running_servers_are_nothing_to_rescue(planted: tuple[Path, Project]) -> None:
    data, project = planted
    grow(data, project, ("main", "one"))
    spoil(data, root_page(data, "docmem_views"))
    done = recovery.verify(str(data), NOW)
    assert done is not None
    assert "nothing is lost" in done.sentence()
