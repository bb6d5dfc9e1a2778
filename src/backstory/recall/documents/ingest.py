"""Taking documents in: read or fetch, extract, cut into chunks, store. What is unchanged is skipped.

Everything slow happens before the write lock is taken.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from backstory import paths
from backstory.config import setting
from backstory.errors import BadInput
from backstory.recall.documents import chunk, fetch, file
from backstory.safety.clean import clean
from backstory.store import documents, projects
from backstory.store.file.connection import Connection, transaction

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_clean = partial(clean, limit=file.LARGEST, may_quote=True)


@dataclass(frozen=True, slots=True)
class Ingested:
    id: str
    title: str | None
    source: str
    chunks: int
    state: str  # new, replaced or unchanged

    def __str__(self) -> str:
        chunks = f"{self.chunks:,} {'chunk' if self.chunks == 1 else 'chunks'}"
        was = "" if self.state == "new" else f"{self.state}, "
        return f"Document ingested: {self.title or self.id} ({was}{chunks})"


@dataclass(frozen=True, slots=True)
class _Came:
    """A document as it came."""

    body: bytes
    kind: str
    charset: str | None = None
    path: str | None = None
    url: str | None = None

    @property
    def name(self) -> str:
        return self.path or self.url or "inline"


def ingest(
    db: Connection,
    cwd: str,
    *,
    now: int,
    path: str | None = None,
    url: str | None = None,
    content: str | None = None,
    title: str | None = None,
) -> Ingested:
    """Keep one document for this folder's project: a file of it, a web page, or text that is handed over."""
    if sum(given is not None for given in (path, url, content)) != 1:
        raise BadInput("give exactly one of path, url and content")
    place = paths.place(cwd)
    came = _read(cwd, path, url, content)
    checksum = hashlib.sha256(came.body).hexdigest()
    named = _clean(title.strip())[: chunk.MAX_TITLE] if title and title.strip() else None
    find = partial(documents.same_source, db, path=came.path, url=came.url, checksum=checksum)
    project = projects.at(db, place)
    known = find(project_id=project.id, title=named) if project else None
    if known and known.checksum == checksum and named in (None, known.title):
        return Ingested(known.id, known.title, came.name, known.chunks, "unchanged")
    if came.kind == "html":
        from backstory.recall.documents import extract  # lxml is needed for nothing else

        found_title, text = extract.main_text(came.body, came.charset)
    else:
        found_title, text = None, file.decode(came.body, came.charset)
    file.check_lines(text)
    text = _clean(text)
    stated = named or _clean(found_title or chunk.title_of(text, came.kind) or "")[: chunk.MAX_TITLE] or None
    if stated is None and came.path:
        stated = os.path.basename(came.path)
    pieces = documents.prepared((piece.heading, piece.text) for piece in chunk.chunks(text, came.kind))
    if not pieces:
        raise BadInput("there is no text in it; give a document that says something")
    with transaction(db):
        project_id = projects.ensure(db, place, now)
        older = find(project_id=project_id, title=named if content is not None else stated)
        document_id = documents.put(
            db,
            project_id=project_id,
            title=stated,
            source_path=came.path,
            source_url=came.url,
            kind=came.kind,
            checksum=checksum,
            chunks=pieces,
            now=now,
            replaces=older.id if older else None,
        )
    return Ingested(document_id, stated, came.name, len(pieces), "replaced" if older else "new")


def files_in(given: str) -> Iterator[str]:
    """The documents that something typed at the terminal stands for: a folder is all those in it."""
    if is_url(given) or not os.path.isdir(given):
        yield given
        return
    for folder, inner, files in os.walk(given):
        inner[:] = sorted(name for name in inner if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in file.EXTENSIONS:
                yield os.path.join(folder, name)


def is_url(given: str) -> bool:
    return given.lower().startswith(("http://", "https://"))


def allowed(cwd: str) -> list[str]:
    """The folders from which a file may be taken in: the checkout, and what the user's settings name."""
    extra = setting("docs.folders", os.environ).split(os.pathsep)
    return [paths.checkout(cwd), *(os.path.expanduser(folder) for folder in extra if folder.strip())]


def _read(cwd: str, path: str | None, url: str | None, content: str | None) -> _Came:
    if path is not None:
        real, body = file.read_file(os.path.join(cwd, os.path.expanduser(path)), allowed(cwd))
        return _Came(body, file.kind_of(real), path=paths.text(real))
    if url is not None:
        answer = fetch.fetch(url.strip())
        kind = file.kind_of_page(answer.url, answer.content_type)
        # As it was asked for: where a redirect ends may differ from day to day.
        return _Came(answer.body, kind, charset=answer.charset, url=_clean(url.strip()))
    body = (content or "").encode("utf-8", "backslashreplace")
    if len(body) > file.LARGEST:
        raise BadInput(
            f"the content has {len(body):,} bytes, a document may have {file.LARGEST:,};"
            " take in the part that matters"
        )
    return _Came(body, "md")
