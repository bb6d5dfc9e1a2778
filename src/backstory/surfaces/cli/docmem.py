"""`backstory docmem`: trees of text that a model writes, for people to look at, bring in and take out."""

from __future__ import annotations

import os

import click

from backstory import errors, paths
from backstory.model import MODES, Node, Project
from backstory.store import nodes, projects
from backstory.store.file.connection import Connection, savepoint, transaction
from backstory.surfaces.cli.common import (
    FILL_SECONDS,
    busy,
    new_path,
    nothing,
    only,
    prints,
    project_option,
    refresh_views,
    standard_input,
    store,
    sure,
    typed,
)
from backstory.surfaces.shapes import Column, Raw, Reply, done, listing, number_of, path_of, plain, when

SHOWN_NODES = 300
MOST_SHOWN = 100_000
MARKDOWN = (".md", ".markdown", ".mdx")
FORMATS = {".toml": "toml", ".txt": "txt", "": "txt", **dict.fromkeys(MARKDOWN, "md")}
NO_TREES = (
    "No trees here yet. A model makes them with docmem_create,"
    " and `backstory docmem import FILE` makes one of a document."
)

TREES = (
    Column("tree", lambda one: one["id"]),
    Column("nodes", right=True, gives_way=3),
    Column("tokens", right=True, gives_way=1),
    Column("updated", lambda one: when(one["updated_at"]), gives_way=2),
    Column("context", least=20),
)

node_argument = click.argument("node", metavar="ID")


@click.group()
def docmem() -> None:
    """Trees of text that a model writes, edits and looks at.

    The beginning of a node's id is enough. When a tree changes here, the views of it in CLAUDE.md follow.
    """


@docmem.command("list")
@project_option
@prints
def list_trees(project: str) -> Reply:
    """List this project's trees. Each with its nodes and tokens, and when it last changed."""
    with store() as (db, _):
        here = projects.at(db, paths.place(project))
        roots = nodes.roots(db, here.number) if here else []
        totals = nodes.totals(db, here.number) if here else {}
        trees = [
            {
                "id": root.id,
                "context": root.context,
                "nodes": root.size,
                "tokens": totals[root.id][0],
                "created_at": root.created_at,
                "updated_at": totals[root.id][1],
            }
            for root in roots
        ]
        none = "" if trees else nothing(db, NO_TREES)
    return listing(trees, TREES, none=none)


@docmem.command()
@click.argument("node", metavar="[ID]", required=False)
@click.option("--depth", type=click.IntRange(0), metavar="N", help="Only so many levels below it.")
@click.option(
    "--limit",
    default=SHOWN_NODES,
    show_default=True,
    type=click.IntRange(1, MOST_SHOWN),
    help="How many nodes; upper levels come first.",
)
@project_option
@prints
def tree(node: str | None, depth: int | None, limit: int, project: str) -> Reply:
    """Show how a tree is built, one line a node.

    A line has the node's id, its context and the first line of its text. Without an ID it is the
    project's only tree. `+12 below` stands for twelve nodes that are left out.
    """
    from backstory.surfaces.cli import trees_output

    with store() as (db, _):
        here, start = _only_tree(db, project) if node is None else _find(db, project, node)
        with savepoint(db):  # one state of the tree, whoever edits it meanwhile
            rows = trees_output.outline(
                start, lambda above: nodes.children(db, here.number, above.id), depth, limit
            )
    listed = [{**plain(row.node), "depth": row.depth} for row in rows if row.node]
    value = {"id": start.id, "nodes": start.size, "shown": len(listed), "tree": listed}
    how = "--limit and --depth show more, the id of a node what is below it"
    return Reply(value, trees_output.tree(rows), _left_out(len(listed), start, how))


@docmem.command()
@node_argument
@project_option
@prints
def show(node: str, project: str) -> Reply:
    """Show one node whole. Every field, the nodes above it, and its text."""
    from backstory.surfaces.cli import trees_output

    with store() as (db, _):
        here, found = _find(db, project, node)
        above = nodes.path(db, here.number, found.id)[:-1]
    return Reply({**plain(found), "path": path_of(above)}, trees_output.node(found, above))


@docmem.command()
@node_argument
@click.option(
    "--tokens", default=10_000, show_default=True, type=click.IntRange(1), help="How long it may get."
)
@project_option
@prints
def expand(node: str, tokens: int, project: str) -> Reply:
    """Print a node and what is below it, as a view shows it.

    It ends where the tokens do. Upper levels come first, in each the last nodes first. What was
    taken is printed in the order of the document, each node with a line that says which it is.
    """
    from backstory.docmem import expand as trees
    from backstory.surfaces.cli import trees_output

    with store() as (db, _):
        here, start = _find(db, project, node)
        shown = trees.shown(db, here.number, start, tokens)
    blocks = [{"id": one.id, "block": block} for one, block in shown]
    value = {"id": start.id, "nodes": start.size, "shown": len(shown), "blocks": blocks}
    how = f"--tokens shows more, `backstory docmem tree {start.id}` lists them"
    return Reply(value, trees_output.blocks(block for _, block in shown), _left_out(len(shown), start, how))


def _left_out(shown: int, start: Node, how: str) -> list[str]:
    return [f"{shown:,} of {_nodes(start.size)}; {how}"] if shown < start.size else []


def _nodes(number: int) -> str:
    return number_of(number, "node", "nodes")


@docmem.command("import")
@click.argument("file", metavar="FILE|-")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["toml", "md", "txt"]),
    help="What it is written in.  [default: by the file's extension]",
)
@click.option("--root-id", metavar="ID", help="What to call the tree.  [default: as it says, or as the file]")
@project_option
@prints
def import_(file: str, kind: str | None, root_id: str | None, project: str) -> Reply:
    """Make a tree of a document. `-` reads standard input.

    TOML is what `backstory docmem export` writes; its nodes can be edited. Of Markdown the headings become
    the upper nodes, of plain text each paragraph is a node; those are readonly.
    """
    from backstory.docmem.exchange import import_document

    kind = kind or _format_of(file)
    name, text = _read(file, kind)
    wanted = None if root_id is None else typed([root_id])
    with store() as (db, now):
        with transaction(db):
            here = projects.by_id(db, projects.ensure(db, paths.place(project), now))
        with busy("importing"):
            root, is_whole = import_document(db, here, text, kind, wanted, name, now)
        refresh_views(db, here, [root.root_id], now)
    sentence = f"Tree imported: {root.id} ({_nodes(root.size)}); `backstory docmem tree {root.id}` shows it"
    notes = [] if is_whole else ["Something private or secret in it was left out."]
    return Reply(root, [sentence], notes)


@docmem.command()
@node_argument
@click.option(
    "--format",
    "kind",
    type=click.Choice(["md", "toml"]),
    help="What to write.  [default: by the extension of --output, else toml]",
)
@click.option("--output", "target", metavar="FILE", help="Where to write it.  [default: standard output]")
@click.option("--force", is_flag=True, help="With --output: also over a file that is there.")
@project_option
@prints
def export(node: str, kind: str | None, target: str | None, force: bool, project: str) -> Reply:
    """Write a tree, or what is below a node, as a document.

    TOML has ids, contexts and texts, and `backstory docmem import` makes the same tree of it; Markdown is for
    reading. A file or a pipe gets every text as it is.
    """
    from backstory.docmem import exchange

    target = None if target == "-" else target
    if kind is None:
        kind = "md" if _extension(target or "") in MARKDOWN else "toml"
    with store() as (db, _):
        here, start = _find(db, project, node)
        whole = nodes.subtree(db, here.number, start.id)
    text = exchange.export_markdown(whole) if kind == "md" else exchange.export_toml(whole)
    if target is not None:
        exchange.save(new_path(target, force), text, replaces=force)
    value = {"id": start.id, "format": kind, "nodes": len(whole), "output": target and typed([target])}
    if target is None:
        return Reply({**value, "text": text}, [Raw(text)])
    return Reply(value, [f"Exported: {start.id} ({_nodes(len(whole))}) to {typed([target])}"])


@docmem.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--tree", "within", metavar="ID", help="Only in this tree.")
@click.option("--mode", type=click.Choice(MODES), default="hybrid", show_default=True, help="How to look.")
@click.option("--limit", default=10, show_default=True, help="How many, 1 to 100.")
@project_option
@prints
def search(query: tuple[str, ...], within: str | None, mode: str, limit: int, project: str) -> Reply:
    """Find nodes by what they say and mean. Nodes that a hit above them stands for are counted there."""
    from backstory.docmem.search import search as find
    from backstory.recall.index import Index
    from backstory.surfaces.cli import trees_output

    with store() as (db, _):
        here = projects.at(db, paths.place(project))
        answer = find(
            Index.configured(),
            db,
            here,
            typed(query),
            root_id=None if within is None else _find(db, project, within)[1].root_id,
            limit=limit,
            mode=mode,
            patience=FILL_SECONDS,
        )
    none = "No nodes found. Other words may do; `backstory docmem list` shows the trees."
    notes = [answer.notice] if answer.notice else []
    return Reply(answer.hits, trees_output.hits(answer.hits), notes, "" if answer.hits else none)


@docmem.command()
@node_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@project_option
@prints
def delete(node: str, yes: bool, project: str) -> Reply:
    """Delete a node and all nodes below it, for good. Of a root that is the tree; `export` keeps a copy."""
    from backstory.docmem import tree as trees

    with store() as (db, now):
        here, found = _find(db, project, node)
        what = f"the tree {found.id}" if found.parent_id is None else f"the node {found.id}"
        if not yes and not sure(f"Delete {what} ({_nodes(found.size)}) for good?"):
            raise errors.NotFound("Nothing was deleted; --yes deletes it without asking.")
        with busy("deleting"):
            gone = trees.delete(db, here, found.id)
        refresh_views(db, here, [found.root_id], now)
    return done(f"Deleted: {found.id} ({_nodes(gone)})", deleted=found.id, nodes=gone)


def _find(db: Connection, project: str, prefix: str) -> tuple[Project, Node]:
    """The one node of this project whose id begins like this."""
    prefix = typed([prefix])
    here = projects.at(db, paths.place(project))
    found = {one.id: one for one in nodes.starting_with(db, here.number, prefix)} if here else {}
    if prefix and not found:
        for other in projects.every(db):
            if elsewhere := nodes.starting_with(db, other.number, prefix):
                raise errors.NotFound(f"{elsewhere[0].id} is of another project; add --project {other.root}")
    known = only("node", prefix, list(found), "backstory docmem tree")
    assert here is not None  # noqa: S101  it has this node
    return here, found[known]


def _only_tree(db: Connection, project: str) -> tuple[Project, Node]:
    here = projects.at(db, paths.place(project))
    roots = nodes.roots(db, here.number) if here else []
    if here is None or not roots:
        raise errors.NotFound(nothing(db, NO_TREES))
    if len(roots) > 1:
        named = ", ".join(root.id for root in roots[:10])
        raise errors.BadInput(
            f"there are {len(roots):,} trees here (`backstory docmem list` lists them); name one: {named}"
        )
    return here, roots[0]


def _format_of(file: str) -> str:
    """What a document is written in, by its name."""
    if file == "-" or _extension(file) not in FORMATS:
        what = "standard input" if file == "-" else f"a file called {typed([file])[:300]}"
        raise errors.BadInput(f"nothing says what {what} is written in; add --format toml, md or txt")
    return FORMATS[_extension(file)]


def _extension(file: str) -> str:
    return os.path.splitext(file)[1].lower()


def _read(file: str, kind: str) -> tuple[str, str]:
    """The name and the text of a document, from wherever the user may read."""
    from backstory.docmem import exchange
    from backstory.recall.documents.file import read_file

    most = exchange.most_bytes(kind)
    if file == "-":
        body = standard_input().read(most + 1)
        if len(body) > most:
            raise errors.BadInput(f"standard input has more than {most:,} bytes; import it in parts")
        return "", exchange.text_of(body, kind, "standard input")
    named = typed([file])[:300]
    if os.path.exists(file) and not os.path.isfile(file):
        raise errors.BadInput(f"{named} is not a file; name one, or pipe it to `import -`")
    body = read_file(file, [os.sep], most)[1]
    return os.path.splitext(os.path.basename(named))[0], exchange.text_of(body, kind, named)
