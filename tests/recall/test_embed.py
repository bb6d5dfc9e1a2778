"""Embedders: the real table, and patience with all of them."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from backstory.errors import BadInput, EmbedderAway
from backstory.recall.embedders import protocol as embed
from backstory.recall.embedders import static
from backstory.recall.embedders.protocol import Embedder, Patient

TEXTS = [
    "the cat sat",
    "def migrate(db: Connection) -> None: ...",
    "Grüße aus 東京 🎉, <s> and </s>",
    "one\ntwo\tthree  four",
    "A Word " * 300,
]

# static


@pytest.fixture(scope="module")
def words() -> static.Static:
    return static.Static()


def test_what_means_the_same_is_nearer(words: static.Static) -> None:
    cat, kitten, database = words.embed(["the cat sat", "a kitten", "database migration"])
    assert cat @ kitten > cat @ database + 0.2


@pytest.mark.slow
def test_the_static_vectors_are_those_of_wordllama(words: static.Static) -> None:
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer
    from wordllama.inference import WordLlamaInference  # type: ignore[import-untyped]

    root.level, root.handlers = before  # its import sets up logging for everybody
    spec = find_spec("wordllama")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0])
    theirs = WordLlamaInference(
        load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"],
        Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")),
    )
    np.testing.assert_allclose(words.embed(TEXTS), theirs.embed(TEXTS, norm=True), atol=1e-6)


def test_static_vectors_say_where_they_come_from(words: static.Static) -> None:
    assert (words.id, words.dimension, words.weight) == ("static:wordllama-l2_supercat_256", 256, 0.5)
    assert words.embed(TEXTS).dtype == np.float32
    assert words.embed([]).shape == (0, 256)


def test_rows_have_length_one_and_blank_texts_are_zeros(words: static.Static) -> None:
    lengths = np.linalg.norm(words.embed(["", "x", " \n", *TEXTS]), axis=1)
    np.testing.assert_allclose(lengths, [0, 1, 0, 1, 1, 1, 1, 1], atol=1e-6)


def test_a_batch_gives_what_its_texts_give_alone(words: static.Static) -> None:
    many = [f"{text} {number}" for number in range(400) for text in TEXTS]
    np.testing.assert_array_equal(words.embed(many)[::57], [words.embed([text])[0] for text in many[::57]])


@pytest.mark.parametrize(
    "text", ["word " * 20_000, "x" * 100_000, "\n" * 99_999 + "x", "é\x00\ud800" * 33_000]
)
def test_a_text_of_100_kb_is_embedded(text: str, words: static.Static) -> None:
    started = time.monotonic()
    assert np.linalg.norm(words.embed([text, "short"]), axis=1) == pytest.approx([1, 1], abs=1e-6)
    assert time.monotonic() - started < 5


def test_all_of_a_long_text_counts(words: static.Static, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = words.embed(TEXTS)
    monkeypatch.setattr(static, "BATCH_TOKENS", 7)
    np.testing.assert_allclose(words.embed(TEXTS), at_once, atol=1e-6)


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=()))))
def test_any_text_whatsoever_is_embedded(texts: list[str]) -> None:
    vectors = SHARED.embed(texts)
    assert vectors.shape == (len(texts), 256)
    assert np.isfinite(vectors).all()


SHARED = Patient(static.Static)


def test_importing_it_imports_nothing_heavy_and_using_it_not_wordllama() -> None:
    code = """if True:
        import sys
        from backstory.recall.embedders import choose as embedders
        from backstory.recall.embedders import protocol as embed
        heavy = {"tokenizers", "onnxruntime", "wordllama", "urllib", "huggingface_hub"}
        assert not heavy & set(sys.modules), heavy & set(sys.modules)
        make = embedders.chosen({})
        assert make().embed(["x"]).shape == (1, 256)
        assert heavy & set(sys.modules) <= {"tokenizers"}, heavy & set(sys.modules)
    """
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 64,
        b"\x02\0\0\0\0\0\0\0{}",
        b"\x02\0\0\0\0\0\0\0[]",
        (70).to_bytes(8, "little")
        + b'{"embedding.weight":{"dtype":"F16","shape":[4,4],"data_offsets":[0,32]}}'[:70],
        (72).to_bytes(8, "little")
        + b'{"embedding.weight":{"dtype":"F16","shape":[4,4],"data_offsets":[0,32]}}',
        (72).to_bytes(8, "little")
        + b'{"embedding.weight":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]}}'
        + bytes(64),
    ],
)
def test_a_broken_table_is_an_error_that_names_it(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(content)
    with pytest.raises(EmbedderAway, match=r"weights\.safetensors cannot be read .* install backstory again"):
        static.table(str(path))


@pytest.mark.parametrize("module", ["tokenizers", "wordllama"])
def test_without_its_packages_it_says_what_to_install(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if module == "tokenizers":
        monkeypatch.setitem(sys.modules, module, None)
    else:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EmbedderAway, match=f"{module} .*install backstory again.*or set embedder to off"):
        static.Static()


# quantise


def test_quantising_keeps_directions_and_zeros() -> None:
    exact = np.random.default_rng(1).normal(size=(50, 256)).astype(np.float32)
    small = embed.quantise(np.vstack([exact, np.zeros((1, 256), np.float32)]))
    assert small.dtype == np.int8
    assert set(np.abs(small[:-1].astype(int)).max(axis=1)) == {127}
    assert not small[-1].any()
    near = np.sum(embed.unit(exact) * embed.unit(small[:-1].astype(np.float32)), axis=1)
    assert near.min() > 0.999
    np.testing.assert_array_equal(embed.quantise(exact * 1e-20), small[:-1])
    assert embed.quantise(np.zeros((0, 256), np.float32)).shape == (0, 256)


# patience


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Moody:
    """An embedder at the outer boundary: away whenever `down` is set."""

    id, dimension, weight = "moody", 2, 0.5

    def __init__(self) -> None:
        self.down = False
        self.made = 0
        self.asked = 0

    def make(self) -> Embedder:
        self.made += 1
        if self.down:
            raise EmbedderAway("the server is down; start it")
        return self

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += 1
        if self.down:
            raise EmbedderAway("the server is down; start it")
        return np.ones((len(texts), self.dimension), np.float32)


def test_an_embedder_is_made_once_and_on_first_use() -> None:
    moody = Moody()
    patient: Embedder = Patient(moody.make)
    assert moody.made == 0
    assert (patient.id, patient.dimension, patient.weight) == ("moody", 2, 0.5)
    assert patient.embed(["x", "y"]).shape == (2, 2)
    assert moody.made == 1


def test_the_wait_doubles_up_to_five_minutes_and_starts_anew_after_success() -> None:
    clock, moody = Clock(), Moody()
    patient = Patient(moody.make, clock)
    moody.down = True
    for tries, wait in enumerate([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300], start=1):
        with pytest.raises(EmbedderAway, match=r"^the server is down; start it$"):
            patient.embed(["x"])
        for moment in (0, wait - 0.5):
            clock.now += moment
            with pytest.raises(
                EmbedderAway, match=rf"start it; tried again in {wait if not moment else 1} s$"
            ):
                patient.embed(["x"])
        assert moody.made == tries
        clock.now += 0.5
    moody.down = False
    patient.embed(["x"])
    moody.down = True
    for wait in (1, 2):
        with pytest.raises(EmbedderAway, match=r"start it$"):
            patient.embed(["x"])
        with pytest.raises(EmbedderAway, match=f"tried again in {wait} s"):
            assert patient.id
        clock.now += wait
    moody.down = False
    assert patient.embed(["x"]).shape == (1, 2)


def test_a_failure_that_many_threads_meet_counts_once() -> None:
    clock, moody = Clock(), Moody()
    patient = Patient(moody.make, clock)
    patient.embed(["x"])
    together = threading.Barrier(4)
    plain = moody.embed

    def at_once(texts: Sequence[str]) -> NDArray[np.float32]:
        together.wait(10)
        return plain(texts)

    def one_failure() -> None:
        with pytest.raises(EmbedderAway):
            patient.embed(["x"])

    moody.embed = at_once  # type: ignore[method-assign]
    moody.down = True
    in_threads(4, one_failure)
    with pytest.raises(EmbedderAway, match="tried again in 1 s"):
        patient.embed(["x"])


def test_threads_share_one_embedder() -> None:
    moody = Moody()

    def slowly() -> Embedder:
        time.sleep(0.1)
        return moody.make()

    patient = Patient(slowly)
    in_threads(8, lambda: patient.embed(["x"]))
    assert (moody.made, moody.asked) == (1, 8)


def test_a_search_does_not_wait_for_a_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "LOADING", 0.05)
    moody, begun, arrived = Moody(), threading.Event(), threading.Event()

    def download() -> Embedder:
        begun.set()
        assert arrived.wait(10)
        return moody.make()

    patient = Patient(download)
    background = threading.Thread(target=lambda: patient.embed(["x"]))
    background.start()
    assert begun.wait(10)
    with pytest.raises(EmbedderAway, match="still being loaded"):
        patient.embed(["x"])
    arrived.set()
    background.join()
    assert patient.embed(["x"]).shape == (1, 2)


def test_what_waiting_cannot_mend_is_not_waited_for() -> None:
    def impossible() -> Embedder:
        raise BadInput("no such thing")

    patient = Patient(impossible)
    for _ in range(2):
        with pytest.raises(BadInput):
            patient.embed(["x"])


def in_threads(count: int, work: Callable[[], object]) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  whatever it is, the test shall see it
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
