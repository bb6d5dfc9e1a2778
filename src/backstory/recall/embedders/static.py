"""The default embedder: a table with one vector a token, and a text is the mean of its tokens.

No network, no model to run, a millisecond a query. The table and its tokenizer come with the package
`wordllama`, whose files are read where they lie: importing it would bring its HTTP client and set up logging
for the whole process. The table is mapped, not loaded, so that processes share one copy in the page cache.
"""

from __future__ import annotations

import importlib.util
import json
import mmap
import os
import struct
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from backstory import heap
from backstory.errors import EmbedderAway
from backstory.recall.embedders import protocol

MODEL = "l2_supercat_256"
TENSOR = "embedding.weight"
BATCH_CHARACTERS = 100_000  # what the tokenizer has in hand at once: about 100 bytes a token
BATCH_TOKENS = 8_192  # of one text, summed at once: 4 MB of halves and 8 MB of floats
AGAIN = "install backstory again, with what it depends on, or set embedder to off"


class Static:
    id = f"static:wordllama-{MODEL}"
    weight = protocol.STATIC_WEIGHT

    def __init__(self) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # else it warns whenever a process is forked
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise EmbedderAway(f"tokenizers cannot be imported ({error}); {AGAIN}") from error
        folder = _package()
        self._table, self._mapped = table(os.path.join(folder, "weights", f"{MODEL}.safetensors"))
        self.dimension = self._table.shape[1]
        path = os.path.join(folder, "tokenizers", "l2_supercat_tokenizer_config.json")
        try:
            self._tokenizer = Tokenizer.from_file(path)
        except Exception as error:  # tokenizers raises nothing more precise
            raise EmbedderAway(f"{path} cannot be read ({error}); {AGAIN}") from error
        if self._tokenizer.get_vocab_size() > len(self._table):
            raise EmbedderAway(f"{path} has more tokens than there are vectors; {AGAIN}")
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        heap.give_back()  # several MB, of reading the tokenizer

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found = protocol.rows(texts, self.dimension, self._sums)
        self._mapped.madvise(mmap.MADV_DONTNEED)  # what was read stays in the page cache all the same
        return found

    def _sums(self, texts: list[str]) -> NDArray[np.float32]:
        """The sum of each text's token vectors: at unit length it is their mean.

        One text at a time, because its rows then stay in the processor's cache: measured at four times the
        speed of one `np.add.reduceat` over a batch.
        """
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        row = 0
        for batch in _batches(texts):
            for encoding in self._tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                ids = np.array(encoding.ids, dtype=np.intp)
                for start in range(0, len(ids), BATCH_TOKENS):
                    vectors = self._table[ids[start : start + BATCH_TOKENS]]
                    sums[row] += vectors.astype(np.float32).sum(axis=0)
                row += 1
        return sums


def table(path: str) -> tuple[NDArray[np.float16], mmap.mmap]:
    """The vectors of a safetensors file, mapped: the length of a JSON header, the header, the numbers."""
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > 100_000:
                raise ValueError("its header is too long")
            tensor = json.loads(file.read(length))[TENSOR]
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (count, dimension), (start, end) = tensor["shape"], tensor["data_offsets"]
        if tensor["dtype"] != "F16" or end - start != count * dimension * 2:
            raise ValueError("it does not hold half-precision vectors")
        vectors = np.frombuffer(mapped, "<f2", count * dimension, 8 + length + start)
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise EmbedderAway(f"{path} cannot be read ({error}); {AGAIN}") from error
    return vectors.reshape(count, dimension), mapped


def _package() -> str:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise EmbedderAway(f"wordllama is not installed; {AGAIN}")
    return spec.submodule_search_locations[0]


def _batches(texts: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    yield batch
