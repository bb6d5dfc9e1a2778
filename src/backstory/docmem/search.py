"""Finding nodes: ranked one by one as memories are, then folded along the tree.

Nodes are scored by recall/search.py, by words and by meaning. Of those that match, three rules make hits:

- A node below a summary that matches as well is folded into it; the nearest such summary has it.
- Where several siblings match, their parent is lifted: it becomes a hit, whether it matches or not, and they
  are folded into it. Several are two or more, each at least half as good as the best of them, and a fifth of
  all that is below the parent: a few sentences of a book do not make the whole book the answer.
- What is folded twice is folded into the upper one.

So every node that matches is in one hit, once. A hit's score is the best score in it, and a tenth of the
second best: what is said twice counts a little more than what is said once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from backstory.errors import NotFound
from backstory.model import Node, NodeAnswer, NodeHit, Project
from backstory.recall.corpus import Corpus
from backstory.recall.index import Index
from backstory.recall.nearness import Column
from backstory.recall.search import DEFAULT_LIMIT, PATIENCE, POOL, checked, living, ranked
from backstory.store import nodes
from backstory.store.file.connection import Connection

SUMMARY = "summary"  # the type in the context of a node that covers what is below it
AS_GOOD = 0.5  # of the best sibling's score
SEVERAL, SHARE = 2, 0.2  # siblings that lift their parent: so many, and of many below it, such a share
MANY = 12  # nodes below a parent; where there are more, it would answer for too much
SECOND = 0.1  # of the second best score


def search(
    index: Index,
    db: Connection,
    project: Project | None,
    query: str,
    *,
    root_id: str | None = None,
    limit: int = DEFAULT_LIMIT,
    mode: str = "hybrid",
    patience: float = PATIENCE,
) -> NodeAnswer:
    """What fits the query best of this project's trees, or of one of them."""
    query = checked(query, mode, limit)
    roots = nodes.roots(db, project.number) if project else []
    if root_id is not None and root_id not in [root.id for root in roots]:
        raise NotFound(f"there is no tree {root_id[:40]!r}; docmem_list lists trees")
    if project is None:
        return NodeAnswer(())
    number = project.number

    def within(corpus: Corpus) -> Column:
        if root_id is None:
            return living(corpus)
        inside = np.zeros(corpus.size, np.bool_)
        inside[corpus.among(0, nodes.rows_of_tree(db, number, root_id))] = True  # the first range is ours
        return inside & living(corpus)

    pool, notice, waiting, _ = ranked(index, db, nodes, project, query, mode, limit * POOL, patience, within)
    known = nodes.at(db, [one.row for one in pool])
    found = [(known[one.row], one.score) for one in pool if one.row in known]
    paths = {node.parent_id: nodes.path(db, number, node.parent_id) for node, _ in found if node.parent_id}
    # Who has a parent and no path was deleted between two looks.
    there = [(node, score) for node, score in found if node.parent_id is None or paths[node.parent_id]]
    return NodeAnswer(tuple(folded(there, paths)[:limit]), notice, waiting)


def folded(found: Sequence[tuple[Node, float]], paths: Mapping[str, Sequence[Node]]) -> list[NodeHit]:
    """Hits made of nodes that match, best first. `paths` are the ways to their parents: the root first, the
    parent last."""
    scores = {node.id: score for node, score in found}
    above = {node.id: tuple(paths[node.parent_id]) if node.parent_id else () for node, _ in found}
    into: dict[str, str] = {}
    siblings: dict[str, list[Node]] = {}
    for node, _ in found:
        covering = [one.id for one in above[node.id] if one.context_type == SUMMARY and one.id in scores]
        if covering:
            into[node.id] = covering[-1]
        elif node.parent_id:
            siblings.setdefault(node.parent_id, []).append(node)
    for parent_id, beside in siblings.items():
        below = above[beside[0].id][-1].size - 1
        good = sum(scores[node.id] >= AS_GOOD * scores[beside[0].id] for node in beside)
        if good >= SEVERAL and (below <= MANY or good >= SHARE * below):
            into |= {node.id: parent_id for node in beside}
    groups: dict[str, tuple[Node, list[Node]]] = {}
    for node, _ in found:
        top = node
        for one in reversed(above[node.id]):
            top = one if into.get(top.id) == one.id else top
        groups.setdefault(top.id, (top, []))[1].append(node)
    hits = []
    for top, members in groups.values():
        score = sum(share * scores[node.id] for share, node in zip((1.0, SECOND), members, strict=False))
        way = above[members[0].id]
        ids = [one.id for one in way]
        path = way[: ids.index(top.id)] if top.id in ids else way
        hits.append(NodeHit(top, score, tuple(path), tuple(node for node in members if node.id != top.id)))
    return sorted(hits, key=lambda hit: -hit.score)
