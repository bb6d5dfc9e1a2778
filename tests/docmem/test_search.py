"""Finding nodes by words and by meaning, and what stands for what, on real trees."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from backstory.docmem import tree
from backstory.docmem.search import folded, search
from backstory.errors import BadInput, EmbedderAway, NotFound
from backstory.model import Node, NodeAnswer, NodeHit, Project
from backstory.paths import place
from backstory.recall.embedders.protocol import Patient
from backstory.recall.embedders.static import Static
from backstory.recall.index import Index
from backstory.recall.nearness import Floats
from backstory.store import nodes, projects, vectors
from backstory.store.file.connection import connect, transaction
from tests.conftest import Run

NOW = 1_800_000_000_000
MEMORY = ("memory", "", "")


@pytest.fixture(scope="module")
def static() -> Static:
    return Static()


@pytest.fixture
def here(db: sqlite3.Connection, project: str) -> Project:
    return project_at(db, project)


def project_at(db: sqlite3.Connection, folder: str) -> Project:
    with transaction(db):
        return projects.by_id(db, projects.ensure(db, place(folder), NOW))


class Trees:
    """Trees of one project, grown and searched."""

    def __init__(self, db: sqlite3.Connection, project: Project, index: Index) -> None:
        self.db, self.project, self.index = db, project, index

    def root(self, root_id: str, text: str = "") -> str:
        return tree.create(self.db, self.project, root_id=root_id, text=text, now=NOW).id

    def add(
        self, parent: str, text: str, context: tuple[str, str, str] = MEMORY, readonly: bool = False
    ) -> str:
        made = tree.add(
            self.db, self.project, parent, text, context, "append-child", readonly=readonly, now=NOW
        )
        return made.id

    def filler(self, parent: str, count: int) -> None:
        """Other nodes, so that a few hits are not most of what is there."""
        for number in range(count):
            self.add(parent, f"Invoice {number} was paid in time")

    def answer(self, query: str, **how: object) -> NodeAnswer:
        return search(self.index, self.db, self.project, query, **how)  # type: ignore[arg-type]

    def hits(self, query: str, **how: object) -> list[str]:
        """The ids of the hits."""
        return [hit.node.id for hit in self.answer(query, **how).hits]


@pytest.fixture
def words(db: sqlite3.Connection, here: Project) -> Trees:
    """Searched by words alone."""
    return Trees(db, here, Index(None))


@pytest.fixture
def trees(db: sqlite3.Connection, here: Project, static: Static) -> Trees:
    return Trees(db, here, Index(static))


def every_node(hits: tuple[NodeHit, ...]) -> list[str]:
    return [node.id for hit in hits for node in (hit.node, *hit.folded)]


# --- what is found ------------------------------------------------------------------------------------------


def test_a_node_is_found_by_its_words_with_the_way_to_it(words: Trees) -> None:
    section = words.add(words.root("zoo"), "", ("section", "seals", ""))
    walrus = words.add(section, "The walrus eats clams in the morning")
    words.add(section, "Harbour seals are shy")
    (hit,) = words.answer("walrus").hits
    assert (hit.node, hit.folded) == (tree.node(words.db, words.project, walrus), ())
    assert [node.id for node in hit.path] == ["zoo", section]
    assert hit.score > 0


def test_a_node_is_found_by_what_it_means(trees: Trees) -> None:
    root = trees.root("guide")
    trees.add(root, "Knead the dough, then heat the oven")
    login = trees.add(root, "When the login fails, the user resets the password on the account page")
    assert trees.hits("credentials forgotten") == [login]


def test_a_query_about_nothing_finds_nothing(trees: Trees) -> None:
    trees.filler(trees.root("books"), 5)
    assert trees.answer("xyzzy qwertzuiop") == NodeAnswer(())


def test_the_words_of_a_context_find_its_node(trees: Trees, words: Trees) -> None:
    root = trees.root("zoo")
    named = trees.add(root, "Shy", ("animal", "porcupine", "quills"))
    trees.add(root, "Also shy")
    for query in ("porcupine", "quills", "porcupine quills"):
        assert trees.hits(query)[0] == words.hits(query)[0] == named
    assert words.hits("animal") == [named]


def test_a_root_is_found_by_its_name_and_has_no_path(words: Trees) -> None:
    words.filler(words.root("walrus-diary"), 3)
    (hit,) = words.answer("diary").hits
    assert (hit.node.id, hit.path) == ("walrus-diary", ())


def test_nodes_without_text_are_no_trouble_and_found_by_nothing(trees: Trees) -> None:
    root = trees.root("empty")
    for _ in range(5):
        trees.add(root, "", ("", "", ""))
    full = trees.add(root, "The walrus sleeps")
    assert trees.hits("walrus") == [full]
    assert trees.hits("sleeping sea animals", mode="semantic")[0] == full
    assert trees.answer("walrus").waiting == 0


def test_readonly_nodes_are_found_too(words: Trees) -> None:
    fixed = words.add(words.root("law"), "The walrus act of 1972", readonly=True)
    assert words.hits("walrus act") == [fixed]


def test_identifiers_and_unfinished_words_are_found_as_in_memories(words: Trees) -> None:
    root = words.root("code")
    one = words.add(root, "Call getUserById with a number")
    words.add(root, "The migration runs at night")
    words.filler(root, 10)
    assert words.hits("user by id") == [one]
    assert words.answer("migrat").hits[0].node.text == "The migration runs at night"


def test_the_better_of_two_comes_first(words: Trees) -> None:
    root = words.root("zoo")
    words.filler(root, 20)
    loose = words.add(
        root, "A walrus was seen by somebody who went to the harbour to look for something else"
    )
    close = words.add(root, "The walrus eats clams")
    assert words.hits("walrus clams") == [close, loose]


def test_the_limit_is_kept_and_the_best_stay(words: Trees) -> None:
    for number in range(8):
        root = words.root(f"tree{number}")
        words.add(root, "walrus " * (number % 3 == 0) + "clam")
        words.filler(root, 10)
    every = words.answer("walrus clam", limit=100).hits
    assert len(every) == 8
    assert words.answer("walrus clam", limit=3).hits == every[:3]


@pytest.mark.parametrize(("limit", "said"), [(0, "between 1 and 100"), (101, "between 1 and 100")])
def test_a_limit_that_makes_no_sense_is_refused(words: Trees, limit: int, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        words.answer("walrus", limit=limit)


def test_a_query_without_words_or_of_an_unknown_mode_is_refused(words: Trees) -> None:
    for query, mode, said in ((" ?! ", "hybrid", "no words"), ("walrus", "psychic", "no mode 'psychic'")):
        with pytest.raises(BadInput, match=said):
            words.answer(query, mode=mode)


def test_without_an_embedder_the_answer_says_so(db: sqlite3.Connection, here: Project) -> None:
    def away() -> Static:
        raise EmbedderAway("there is no model")

    trees = Trees(db, here, Index(Patient(away)))
    found = trees.add(trees.root("zoo"), "The walrus sleeps")
    answer = trees.answer("walrus")
    assert [hit.node.id for hit in answer.hits] == [found]
    assert answer.notice == "Searched by words only: there is no model."


def test_nodes_that_have_no_vector_yet_are_counted_and_found_by_words(trees: Trees) -> None:
    root = trees.root("books")
    trees.filler(root, 300)
    trees.add(root, "The walrus sleeps")
    answer = trees.answer("invoice 7 paid", patience=0.0)
    assert 0 < answer.waiting < 302
    assert answer.notice and "no vector yet" in answer.notice
    assert answer.hits
    assert trees.answer("walrus", patience=60.0).waiting == 0


# --- where it is looked for ---------------------------------------------------------------------------------


def test_a_search_may_stay_in_one_tree(trees: Trees) -> None:
    here, there = trees.add(trees.root("zoo"), "A walrus"), trees.add(trees.root("sea"), "A walrus")
    trees.filler("zoo", 5)
    trees.filler("sea", 5)
    assert set(trees.hits("walrus")) == {here, there}
    assert trees.hits("walrus", root_id="zoo") == [here]
    assert trees.hits("walrus", root_id="sea", mode="semantic")[0] == there
    trees.root("desert")
    assert trees.hits("walrus", root_id="desert") == []


def test_the_best_of_a_small_tree_is_found_beside_a_large_one(words: Trees) -> None:
    """More nodes fit better than are looked at; the tree is chosen before."""
    big, small = words.root("big"), words.root("small")
    for _ in range(60):
        words.add(big, "walrus")
    weak = words.add(small, "somebody mentioned something about a walrus once upon a time in a long story")
    assert words.hits("walrus", root_id="small", limit=1) == [weak]


@pytest.mark.parametrize("name", ["nosuch", "", "zoo ", "ZOO", "\ud800", "x" * 500])
def test_an_unknown_tree_is_told_with_how_to_list_them(words: Trees, name: str) -> None:
    words.root("zoo")
    with pytest.raises(NotFound, match=r"there is no tree '.*'; docmem_list lists trees") as said:
        words.answer("walrus", root_id=name)
    assert len(str(said.value)) < 100


def test_a_node_that_is_no_root_is_no_tree(words: Trees) -> None:
    below = words.add(words.root("zoo"), "A walrus")
    with pytest.raises(NotFound, match="docmem_list lists trees"):
        words.answer("walrus", root_id=below)


def test_a_folder_that_is_no_project_yet_has_no_trees(db: sqlite3.Connection) -> None:
    assert search(Index(None), db, None, "walrus") == NodeAnswer(())
    with pytest.raises(NotFound, match="docmem_list lists trees"):
        search(Index(None), db, None, "walrus", root_id="zoo")
    with pytest.raises(BadInput, match="no words"):
        search(Index(None), db, None, "?")


def test_nodes_of_other_projects_are_never_found(trees: Trees, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Trees(trees.db, project_at(trees.db, str(tmp_path / "other")), trees.index)
    theirs = other.add(other.root("zoo"), "A walrus of theirs")
    ours = {trees.root("zoo", "Of ours"), trees.add("zoo", "An otter")}
    assert trees.hits("walrus") == []
    for within in (None, "zoo"):
        hits = trees.answer("walrus", root_id=within, mode="semantic").hits
        assert hits and set(every_node(hits)) <= ours
        assert {one.text for hit in hits for one in (hit.node, *hit.path)} <= {"Of ours", "An otter"}
    assert other.hits("walrus", root_id="zoo") == [theirs]
    with pytest.raises(NotFound):
        trees.answer("walrus", root_id=other.root("sea"))


def test_nodes_memories_and_documents_are_searched_apart(trees: Trees, project: str) -> None:
    from backstory.recall.answer import answer as search_memories
    from backstory.recall.search import search_documents

    trees.add(trees.root("zoo"), "The walrus sleeps")
    assert search_memories(trees.index, trees.db, project, "walrus", now=NOW).hits == ()
    assert search_documents(trees.index, trees.db, project, "walrus").hits == ()


# --- keeping up ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["words", "trees"])
def test_edited_text_is_found_and_the_old_text_no_more(kind: str, request: pytest.FixtureRequest) -> None:
    trees: Trees = request.getfixturevalue(kind)
    root = trees.root("zoo")
    trees.filler(root, 5)
    node = trees.add(root, "The walrus sleeps in the harbour")
    assert trees.hits("walrus") == [node]
    tree.update_content(trees.db, trees.project, node, "Bake the bread for forty minutes", now=NOW)
    assert trees.hits("walrus") == []
    assert trees.hits("bread") == [node]
    if kind == "trees":
        assert trees.hits("oven dough loaf", mode="semantic")[0] == node
        assert vectors.counts(trees.db)[0][1] == nodes.count(trees.db)


def test_an_edited_context_is_found_and_the_old_one_no_more(words: Trees) -> None:
    node = words.add(words.root("zoo"), "Shy", ("animal", "walrus", ""))
    assert words.hits("walrus") == [node]
    tree.update_context(words.db, words.project, node, ("animal", "otter", "river"), now=NOW)
    assert (words.hits("walrus"), words.hits("otter"), words.hits("river")) == ([], [node], [node])


def test_what_was_deleted_is_found_no_more_nor_what_was_below_it(trees: Trees) -> None:
    root = trees.root("zoo")
    section = trees.add(root, "About the walrus", ("section", "walrus", ""))
    trees.add(section, "The walrus sleeps")
    stays = trees.add(root, "An otter met the walrus")
    trees.filler(root, 20)
    assert set(every_node(trees.answer("walrus").hits)) > {section, stays}
    tree.delete(trees.db, trees.project, section)
    assert every_node(trees.answer("walrus").hits) == [stays]
    tree.delete(trees.db, trees.project, root)
    assert trees.answer("walrus", mode="semantic") == NodeAnswer(())


def test_what_was_moved_is_found_on_its_new_way(words: Trees) -> None:
    root = words.root("zoo")
    old, new = (words.add(root, "", ("section", name, "")) for name in ("old", "new"))
    node = words.add(old, "The walrus sleeps")
    assert [one.id for one in words.answer("walrus").hits[0].path] == [root, old]
    tree.move(words.db, words.project, node, new, "append-child", now=NOW)
    assert [one.id for one in words.answer("walrus").hits[0].path] == [root, new]


def test_a_copy_is_found_beside_what_it_was_copied_from(words: Trees) -> None:
    node = words.add(words.root("zoo"), "The walrus sleeps")
    words.filler("zoo", 5)
    words.root("sea")
    words.filler("sea", 5)
    copy = tree.copy(words.db, words.project, node, "sea", "append-child", now=NOW)
    assert set(words.hits("walrus")) == {node, copy.id}


def test_an_index_keeps_up_with_what_other_connections_do(trees: Trees, tmp_path: Path) -> None:
    root = trees.root("zoo")
    trees.filler(root, 10)
    node = trees.add(root, "The walrus sleeps")
    assert trees.hits("walrus") == [node]
    with closing(connect(str(tmp_path / "backstory.db"))) as db:
        other = Trees(db, trees.project, Index(Static()))
        tree.update_content(db, trees.project, node, "The porcupine sleeps", now=NOW)
        more = other.add(root, "A walrus in the north")
        assert other.hits("porcupine") == [node]  # and its vector was made there
    assert trees.hits("walrus") == [more]
    assert trees.hits("porcupine") == [node]
    assert trees.hits("porcupine", mode="semantic")[0] == node  # by its new vector


EDITING = """
import sys
from backstory.docmem import tree
from backstory.paths import place
from backstory.store import projects
from backstory.store.file.connection import connect
db = connect(sys.argv[1])
project = projects.at(db, place(sys.argv[2]))
for line in sys.stdin:
    what, node, text = line.rstrip().split("|")
    if what == "update":
        tree.update_content(db, project, node, text, now=1)
    else:
        tree.delete(db, project, node)
    print("done", flush=True)
"""


def test_an_index_keeps_up_with_another_process(trees: Trees, project: str, tmp_path: Path) -> None:
    root = trees.root("zoo")
    trees.filler(root, 10)
    node = trees.add(root, "The walrus sleeps")
    with subprocess.Popen(
        [sys.executable, "-c", EDITING, str(tmp_path / "backstory.db"), project],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as editor:
        assert editor.stdin and editor.stdout
        for animal in ("porcupine", "nightingale", "crocodile"):
            trees.hits("walrus")
            editor.stdin.write(f"update|{node}|The {animal} sleeps\n")
            editor.stdin.flush()
            assert editor.stdout.readline() == "done\n"
            assert trees.hits(animal) == [node]
        editor.stdin.write(f"delete|{node}|\n")
        editor.stdin.flush()
        assert editor.stdout.readline() == "done\n"
        assert trees.hits("crocodile") == []
        editor.stdin.close()


def test_many_deletions_leave_an_index_that_still_finds(trees: Trees) -> None:
    """Beyond some share of lines that are gone, the corpus is built anew."""
    root = trees.root("zoo")
    section = trees.add(root, "", ("section", "bills", ""))
    trees.filler(section, 150)
    node = trees.add(root, "The walrus sleeps")
    assert trees.hits("walrus") == [node]
    tree.delete(trees.db, trees.project, section)
    for _ in range(2):
        assert trees.hits("walrus") == [node]
        assert trees.hits("invoice") == []


@pytest.mark.slow
def test_edits_and_searches_go_on_side_by_side(trees: Trees, tmp_path: Path) -> None:
    """A hit is a node that was there, whole, whatever is deleted and moved meanwhile."""
    root = trees.root("zoo")
    sections = [trees.add(root, "", ("section", name, "")) for name in ("a", "b")]
    for number in range(20):
        trees.add(sections[number % 2], f"walrus number {number}")
    failed: list[BaseException] = []
    ended = threading.Event()

    def edit() -> None:
        with closing(connect(str(tmp_path / "backstory.db"))) as db:
            mine = Trees(db, trees.project, trees.index)
            turn = 0
            try:
                while not ended.is_set():
                    new = mine.add(sections[turn % 2], f"another walrus {turn}")
                    tree.move(db, trees.project, new, sections[(turn + 1) % 2], "append-child", now=NOW)
                    tree.update_content(db, trees.project, new, f"an edited walrus {turn}", now=NOW)
                    tree.delete(db, trees.project, new)
                    turn += 1
            except BaseException as error:  # noqa: BLE001  told by the test below
                failed.append(error)

    editing = threading.Thread(target=edit)
    editing.start()
    until = time.monotonic() + 2
    while time.monotonic() < until and not failed:
        for hit in trees.answer("walrus", limit=20).hits:
            assert hit.path[0].id == "zoo" if hit.path else hit.node.id == "zoo"
    ended.set()
    editing.join()
    assert not failed


def test_vectors_of_nodes_are_made_by_reindex(run: Run, project: str, data: Path) -> None:
    with closing(connect(str(data / "backstory.db"))) as db:
        here = project_at(db, project)
        tree.create(db, here, root_id="zoo", now=NOW)
        tree.add(db, here, "zoo", "The walrus sleeps", MEMORY, "append-child", now=NOW)
    assert run("reindex", "--json").json["made"] == 2
    assert run("reindex").out.startswith("0 vectors made by static:")


def test_vectors_of_nodes_are_made_beside_the_calls_of_a_server(
    project: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from backstory.surfaces.mcp import tool_context

    monkeypatch.setattr(tool_context, "_indexes", [])  # another test's knows another store
    monkeypatch.chdir(project)
    with closing(connect(str(data / "backstory.db"))) as db:
        here = project_at(db, project)
        tree.create(db, here, root_id="zoo", text="The walrus sleeps", now=NOW)
        tool_context.fill_in_background(db)
        until = time.monotonic() + 30
        while not vectors.counts(db) or not vectors.counts(db)[0][1]:
            assert time.monotonic() < until
            time.sleep(0.02)


# --- folding along the tree ---------------------------------------------------------------------------------


def node(name: str, parent: Node | None = None, kind: str = "memory", size: int = 1) -> Node:
    return Node(
        id=name,
        row=hash(name),
        parent_id=parent.id if parent else None,
        root_id="root",
        text=f"text of {name}",
        order_value=1.0,
        token_count=1,
        context_type=kind,
        context_name="",
        context_value="",
        readonly=False,
        hash="",
        size=size,
        created_at=NOW,
        updated_at=NOW,
    )


def fold(*found: tuple[Node, float], above: tuple[Node, ...] = ()) -> list[tuple[str, float, str, str]]:
    """(id, score, path, folded) of each hit; `above` are nodes that do not match themselves."""
    known = {one.id: one for one in (*above, *(one for one, _ in found))}

    def way(name: str | None) -> list[Node]:
        return [*way(known[name].parent_id), known[name]] if name else []

    paths = {one.parent_id: way(one.parent_id) for one, _ in found if one.parent_id}
    return [
        (
            hit.node.id,
            round(hit.score, 3),
            ">".join(one.id for one in hit.path),
            ",".join(one.id for one in hit.folded),
        )
        for hit in folded(found, paths)
    ]


ROOT = node("root", kind="root", size=40)
PART = node("part", ROOT, "section", size=5)
SUMMARY = node("summary", ROOT, "summary", size=20)
INNER = node("inner", SUMMARY, "summary", size=4)
LEAF, TWIN, THIRD = (node(name, INNER) for name in ("leaf", "twin", "third"))


def test_nothing_makes_nothing() -> None:
    assert fold() == []


def test_one_hit_is_itself_with_its_way() -> None:
    assert fold((LEAF, 0.8), above=(ROOT, SUMMARY, INNER)) == [("leaf", 0.8, "root>summary>inner", "")]
    assert fold((ROOT, 0.8)) == [("root", 0.8, "", "")]


def test_a_child_of_a_summary_that_matches_as_well_is_folded_into_it() -> None:
    expected = [("inner", 0.85, "root>summary", "leaf")]
    assert fold((LEAF, 0.8), (INNER, 0.5), above=(ROOT, SUMMARY)) == expected
    assert fold((INNER, 0.8), (LEAF, 0.5), above=(ROOT, SUMMARY)) == expected


def test_a_summary_further_up_has_it_too() -> None:
    assert fold((LEAF, 0.8), (SUMMARY, 0.5), above=(ROOT, INNER)) == [("summary", 0.85, "root", "leaf")]


def test_summaries_of_summaries_end_in_the_uppermost_that_matches() -> None:
    found = fold((LEAF, 0.8), (INNER, 0.5), (SUMMARY, 0.4), above=(ROOT,))
    assert found == [("summary", 0.85, "root", "leaf,inner")]


def test_a_summary_that_does_not_match_covers_nothing() -> None:
    found = fold((LEAF, 0.8), above=(ROOT, SUMMARY, INNER))
    assert [hit[0] for hit in found] == ["leaf"]


def test_a_parent_that_is_no_summary_has_not_its_only_child_that_matches() -> None:
    child = node("child", PART)
    assert [hit[0] for hit in fold((child, 0.8), (PART, 0.5), above=(ROOT,))] == ["child", "part"]


def test_several_hits_under_one_parent_lift_it() -> None:
    one, two = node("one", PART), node("two", PART)
    assert fold((one, 0.8), (two, 0.6), above=(ROOT, PART)) == [("part", 0.86, "root", "one,two")]


def test_a_parent_that_matches_itself_has_several_children_folded_into_it() -> None:
    one, two = node("one", PART), node("two", PART)
    assert fold((one, 0.8), (PART, 0.7), (two, 0.6), above=(ROOT,)) == [("part", 0.87, "root", "one,two")]


def test_a_sibling_that_hardly_fits_does_not_hide_the_one_that_does() -> None:
    one, two = node("one", PART), node("two", PART)
    assert [hit[0] for hit in fold((one, 0.8), (two, 0.39), above=(ROOT, PART))] == ["one", "two"]
    three = node("three", PART)
    lifted = fold((one, 0.8), (two, 0.41), (three, 0.1), above=(ROOT, PART))
    assert lifted == [("part", 0.841, "root", "one,two,three")]


def test_a_few_of_many_children_do_not_make_their_parent_the_answer() -> None:
    many = [node(f"n{number}", ROOT) for number in range(8)]  # of 39 below the root
    assert len(fold(*((one, 0.8) for one in many[:7]), above=(ROOT,))) == 7
    assert [hit[0] for hit in fold(*((one, 0.8) for one in many), above=(ROOT,))] == ["root"]


@pytest.mark.parametrize(("below", "is_lifted"), [(2, True), (12, True), (13, False)])
def test_of_many_nodes_two_do_not_lift_their_parent(below: int, is_lifted: bool) -> None:
    parent = replace(PART, size=below + 1)
    hits = fold((node("one", parent), 0.8), (node("two", parent), 0.7), above=(ROOT, parent))
    assert [hit[0] for hit in hits] == (["part"] if is_lifted else ["one", "two"])


def test_what_was_lifted_lifts_nothing_further() -> None:
    tiny = node("root", kind="root", size=7)
    left, right = node("left", tiny, size=3), node("right", tiny, size=3)
    leaves = [node(f"{side.id}{number}", side) for side in (left, right) for number in (1, 2)]
    found = fold(*((leaf, 0.8) for leaf in leaves), above=(tiny, left, right))
    assert [hit[0] for hit in found] == ["left", "right"]


def test_hits_that_match_lift_their_parent_with_all_that_is_folded_into_them() -> None:
    tiny = node("root", kind="root", size=7)
    left, right = node("left", tiny, "summary", size=3), node("right", tiny, "summary", size=3)
    leaf = node("leaf", left)
    assert fold((leaf, 0.8), (left, 0.7), (right, 0.6), above=(tiny,)) == [
        ("root", 0.87, "", "leaf,left,right")
    ]


def test_siblings_below_a_matching_summary_lift_nobody() -> None:
    found = fold((LEAF, 0.8), (TWIN, 0.8), (SUMMARY, 0.3), above=(ROOT, INNER))
    assert found == [("summary", 0.88, "root", "leaf,twin")]


def test_hits_are_ordered_by_what_they_came_to() -> None:
    one, two, alone = node("one", PART), node("two", PART), node("alone", ROOT)
    found = fold((alone, 0.82), (one, 0.8), (two, 0.8), above=(ROOT, PART))
    assert [(hit[0], hit[1]) for hit in found] == [("part", 0.88), ("alone", 0.82)]


def test_equal_hits_stay_in_the_order_of_the_ranking() -> None:
    first, second = node("first", ROOT), node("second", ROOT)
    assert [hit[0] for hit in fold((second, 0.5), (first, 0.5), above=(ROOT,))] == ["second", "first"]


def test_every_node_that_matches_is_in_one_hit_once() -> None:
    shapes: list[Callable[[int], float]] = [lambda n: 0.5, lambda n: 1 / (n + 1), lambda n: (n * 7 % 5) / 5]
    every = [
        ROOT,
        SUMMARY,
        PART,
        INNER,
        LEAF,
        TWIN,
        THIRD,
        *(node(f"p{number}", PART) for number in range(4)),
    ]
    for size in range(3, 40, 9):
        for shape in shapes:
            for left_out in range(len(every)):
                matching = [one for number, one in enumerate(every) if number != left_out]
                scored = [
                    (replace(one, size=size) if one is ROOT else one, shape(n))
                    for n, one in enumerate(matching)
                ]
                scored.sort(key=lambda pair: -pair[1])
                paths = {
                    "root": [ROOT], "part": [ROOT, PART], "summary": [ROOT, SUMMARY],
                    "inner": [ROOT, SUMMARY, INNER],
                }  # fmt: skip
                hits = tuple(folded(scored, paths))
                names = every_node(hits)
                assert len(names) == len(set(names))
                assert {one.id for one in matching} <= set(names)
                assert all(hit.node.id not in [one.id for one in hit.path] for hit in hits)
                assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_summary_stands_for_the_nodes_it_covers_in_a_real_tree(trees: Trees) -> None:
    root = trees.root("zoo")
    trees.filler(root, 20)
    first, _, last = (
        trees.add(root, text)
        for text in ("The walrus eats clams", "A walrus sleeps in the water", "Walrus tusks grow for years")
    )
    (lone,) = (trees.add(root, "Otters and the walrus are friends"),)
    covering = tree.summarise(
        trees.db, trees.project, first, last, "The life of a walrus", ("summary", "walrus", ""), now=NOW
    )
    hits = {hit.node.id: hit for hit in trees.answer("walrus").hits}
    assert set(hits) == {covering.id, lone}
    assert len(hits[covering.id].folded) == 3
    assert [one.id for one in hits[covering.id].path] == ["zoo"]


def test_a_section_is_lifted_by_its_nodes_in_a_real_tree(trees: Trees) -> None:
    root = trees.root("zoo")
    trees.filler(root, 20)
    section = trees.add(root, "", ("section", "seals", ""))
    inside = [
        trees.add(section, text) for text in ("A walrus eats clams", "The walrus sleeps", "Seals are shy")
    ]
    (hit,) = trees.answer("walrus").hits
    assert (hit.node.id, {one.id for one in hit.folded}) == (section, set(inside[:2]))
    assert hit.node.text == ""
    assert [one.id for one in hit.path] == ["zoo"]


def test_a_node_that_was_empty_once_weighs_as_much_as_one_that_never_was(trees: Trees) -> None:
    root = trees.root("zoo")
    trees.filler(root, 20)
    grown = trees.add(root, "", ("", "", ""))
    trees.hits("walrus")  # the index has met it empty
    tree.update_content(trees.db, trees.project, grown, "The walrus sleeps in the harbour all day", now=NOW)
    (kept,) = trees.answer("walrus asleep in the harbour").hits
    (fresh,) = search(
        Index(trees.index.embedder), trees.db, trees.project, "walrus asleep in the harbour"
    ).hits
    assert kept.node.id == fresh.node.id == grown
    assert kept.score == pytest.approx(fresh.score)


def test_a_vector_of_a_text_that_was_rewritten_meanwhile_is_not_kept(
    db: sqlite3.Connection, here: Project, static: Static, tmp_path: Path
) -> None:
    """Somebody edits the node while the embedder is at work on the old text."""

    class Slow(Static):
        def embed(self, texts: Sequence[str]) -> Floats:
            if any("walrus" in text for text in texts):
                with closing(connect(str(tmp_path / "backstory.db"))) as other:
                    tree.update_content(other, here, edited, "Bake the bread in the oven", now=NOW)
            return super().embed(texts)

    trees = Trees(db, here, Index(Slow()))
    trees.filler(trees.root("zoo"), 5)
    edited = trees.add("zoo", "The walrus sleeps")
    trees.index.fill(db, trees.index.corpus(db, nodes, here))
    assert trees.hits("bread oven", mode="semantic")[0] == edited
