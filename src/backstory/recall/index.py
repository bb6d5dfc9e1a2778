"""What a process keeps between searches: the corpora of its projects, and the embedder.

Vectors are made here, by whoever searches, because a hook must not wait for numpy. A search makes the few
that are missing before it looks; many are left to a thread, and are found by their words meanwhile.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from time import monotonic

from backstory import log
from backstory.errors import BackstoryError, EmbedderAway
from backstory.model import Project
from backstory.recall.corpus import Corpus, Source
from backstory.recall.embedders.choose import chosen
from backstory.recall.embedders.protocol import Embedder, Patient, quantise
from backstory.store import projects, vectors
from backstory.store.file.connection import Connection, transaction

Store = Callable[[], AbstractContextManager[Connection]]

FILL_BATCH = 256
REMOVED = 64  # lines, or a tenth of all: with more that are gone, a corpus is built anew
KEPT = 4  # corpora in RAM; a server needs two
UNRELATED = (  # to learn how near two texts are, for this model, that have nothing to do with each other
    "The cat sleeps on the warm windowsill",
    "Retry the payment when the gateway times out",
    "Bake the bread for forty minutes",
    "The orchestra tuned before the concert",
    "Interest rates rose again last quarter",
    "Rename the column before the migration runs",
    "Her train to Lisbon leaves at noon",
    "Photosynthesis turns light into sugar",
    "The goalkeeper saved the penalty",
    "Cache invalidation is configured in nginx",
    "An old oak fell across the road",
    "Whales sing to each other for hours",
)


class Index:
    """Threads may share one; whoever uses a corpus holds `lock`."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.lock = threading.RLock()
        self._embedder = embedder
        self._model: tuple[str, int] | None = None  # whose vectors we hold, also while it is away
        self._chance: tuple[float, float] | None = None
        self._corpora: dict[tuple[str, tuple[tuple[int, int], ...]], Corpus] = {}
        self._filling = False

    @classmethod
    def configured(cls) -> Index:
        make = chosen(os.environ)
        return cls(Patient(make) if make else None)

    @property
    def is_off(self) -> bool:
        """Switched off on purpose: nobody needs to be told."""
        return self._embedder is None

    @property
    def embedder(self) -> Embedder:
        if self._embedder is None:
            raise EmbedderAway("the embedder is switched off; set `embedder` to static to search by meaning")
        return self._embedder

    def corpus(
        self, db: Connection, source: Source, project: Project | None, *, everywhere: bool = False
    ) -> Corpus:
        """The lines that a search in this project, or in all of them, looks at, as they are now."""
        ranges = projects.all_ranges(db) if everywhere else projects.ranges(db, project)
        key = (source.TABLE, tuple(ranges))
        corpus = self._corpora.pop(key, None)
        if corpus is None or corpus.removed > max(REMOVED, corpus.size // 10):
            corpus = Corpus(source, ranges)
        self._corpora[key] = corpus  # the latest used is last
        while len(self._corpora) > KEPT:
            del self._corpora[next(iter(self._corpora))]
        self._refresh(db, corpus)
        return corpus

    def floor(self, deviations: float = 5) -> float:
        """The cosine up to which nearness may be chance: so many deviations above that of unrelated texts;
        five are what among thousands of lines hardly one exceeds."""
        if self._chance is None:
            found = self.embedder.embed(UNRELATED)
            pairs = [float(found[a] @ found[b]) for a in range(len(found)) for b in range(a)]
            mean = sum(pairs) / len(pairs)
            deviation = (sum((pair - mean) ** 2 for pair in pairs) / len(pairs)) ** 0.5
            self._chance = mean, deviation
        mean, deviation = self._chance
        return mean + deviations * deviation

    def fill(
        self,
        db: Connection,
        corpus: Corpus,
        seconds: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Make the vectors that are missing, newest lines first; how many still are when the time is up. The
        lock is free while the embedder works: it may be far away. Raises EmbedderAway."""
        self.load()
        with self.lock:
            self._refresh(db, corpus)
            missing = corpus.without_vector()[::-1].tolist()
        deadline = None if seconds is None else monotonic() + seconds
        done = 0
        while done < len(missing):
            self._make(db, corpus.source, missing[done : done + FILL_BATCH])
            done += FILL_BATCH
            if progress:
                progress(min(done, len(missing)), len(missing))
            if deadline is not None and monotonic() >= deadline:
                break
        if missing:
            with self.lock:
                self._refresh(db, corpus)
        return max(0, len(missing) - done)

    def load(self) -> None:
        """Make sure that the embedder is there, before anything is locked. Raises EmbedderAway."""
        _ = self.embedder.dimension

    def fill_in_background(self, store: Store, sources: Sequence[Source], project: Project | None) -> None:
        """Make the missing vectors in a thread, unless one is at it. Searches go on meanwhile."""
        if not self._filling:
            self._filling = True
            threading.Thread(
                target=self._fill_all, args=(store, sources, project), name="vectors", daemon=True
            ).start()

    def _fill_all(self, store: Store, sources: Sequence[Source], project: Project | None) -> None:
        try:
            with store() as db:
                for source in sources:
                    while missing := self._missing(db, source, project):
                        self._make(db, source, missing[: 8 * FILL_BATCH])
                        log.write(
                            "debug", f"vectors for {source.TABLE}: {len(missing):,} were still to be made"
                        )
        except BackstoryError as error:
            log.write("warning", f"vectors could not be made in the background: {error}")
        except Exception:  # noqa: BLE001  a thread has nobody else to tell
            log.crash("background")
        finally:
            self._filling = False

    def _missing(self, db: Connection, source: Source, project: Project | None) -> list[int]:
        self.load()
        with self.lock:
            missing: list[int] = self.corpus(db, source, project).without_vector()[::-1].tolist()
            return missing

    def _make(self, db: Connection, source: Source, rows: Sequence[int]) -> None:
        for at in range(0, len(rows), FILL_BATCH):
            texts = source.texts(db, rows[at : at + FILL_BATCH])
            found = quantise(self.embedder.embed([text for _, text in texts]))
            with transaction(db):
                same = set(source.texts(db, [row for row, _ in texts])).intersection(texts)
                # What was rewritten meanwhile is left for the next time: this would be of the old text.
                made = [
                    (text[0], vector.tobytes())
                    for text, vector in zip(texts, found, strict=True)
                    if text in same
                ]
                number = vectors.ensure_model(db, self.embedder.id, self.embedder.dimension)
                vectors.put(db, number, source.LINES, made)

    def _refresh(self, db: Connection, corpus: Corpus) -> None:
        # One that is not loaded, or away, is not waited for here: what we hold of it stays good.
        if self._embedder is not None and getattr(self._embedder, "is_loaded", True):
            try:
                self._model = (self._embedder.id, self._embedder.dimension)
            except EmbedderAway:
                pass
        number = vectors.model(db, *self._model) if self._model else None
        corpus.refresh(db, number, self._model[1] if self._model else 0)
