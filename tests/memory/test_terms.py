"""Words as the keyword index sees them: what a text and a query become, and that both meet."""

from __future__ import annotations

import sqlite3
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.errors import BadInput
from backstory.intake.note import keep
from backstory.memory import terms
from backstory.recall.answer import answer as search
from backstory.recall.index import Index

NOW = 1_794_700_800_000  # 2026-11-15, at midnight UTC
LONG = 200_000


def finds(db: sqlite3.Connection, project: str, text: str, query: str) -> bool:
    """Whether a note with this text is found by this query; another note is there as well."""
    keep(db, project, "an unrelated remark about lunch", now=NOW - 10**10)
    keep(db, project, text, now=NOW)
    hits = search(Index(None), db, project, query, now=NOW).hits
    return text in [hit.memory.content for hit in hits]


# --- identifiers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("getUserById", "user"),
        ("getUserById", "get user by id"),
        ("getUserById", "get_user_by_id"),
        ("getUserById", "getuserbyid"),
        ("get_user_by_id", "getUserById"),
        ("max_retry_count", "maxRetryCount"),
        ("maxRetryCount", "max_retry_count"),
        ("maxRetryCount", "max-retry-count"),
        ("max-retry-count", "maxRetryCount"),
        ("MAX_RETRY_COUNT", "maxRetryCount"),
        ("MaxRetryCount", "retries"),
        ("max_retry_count", "retry"),
        ("src/auth/jwt.py", "jwt"),
        ("src/auth/jwt.py", "jwt.py"),
        ("src/auth/jwt.py", "src/auth/jwt.py"),
        ("src/auth/jwt.py", "auth/jwt"),
        ("HTTPServer", "server"),
        ("HTTPServer", "http"),
        ("HTTPServer", "http_server"),
        ("parseHTTPResponse", "response"),
        ("utf8", "utf8"),
        ("utf8", "UTF-8"),
        ("UTF-8", "utf8"),
        ("sha256sum", "sha256sum"),
        ("OAuth2Client", "client"),
        ("std::vector<int>", "vector"),
        ("user.email@example.org", "email"),
        ("v1.2.3", "v1.2.3"),
        ("v1.2.3", "1.2.3"),
    ],
)
def test_an_identifier_is_found_by_its_parts_and_in_other_spellings(
    db: sqlite3.Connection, project: str, written: str, asked: str
) -> None:
    assert finds(db, project, f"the trouble was {written} again", asked)


def test_a_word_with_a_number_is_not_cut_in_halves() -> None:
    assert terms.index_terms("utf8 sha256 x86") == ""
    assert terms.query_terms("utf8") == ['"utf8"']


def test_plain_words_need_no_terms_beside_them() -> None:
    assert terms.index_terms("The door is open, and Anna said so.") == ""


def test_the_parts_of_a_name_of_capitals_and_words() -> None:
    assert terms.index_terms("parseHTTPResponse2xx").split() == ["parse", "http", "response", "xx"]
    assert terms.index_terms("max_retryCount").split() == ["maxretrycount", "retry", "count"]


def test_what_is_too_long_to_be_a_name_is_left_whole() -> None:
    assert terms.index_terms("aB" * 60) == ""


# --- Chinese, Japanese, Korean ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("修复了数据库连接的问题", "数据库"),
        ("修复了数据库连接的问题", "连接问题"),
        ("修复了数据库连接的问题", "修"),
        ("修复了数据库连接的问题", "库"),
        ("认证失败时重试三次", "重试"),
        ("ログイン画面のエラーを直した", "エラー"),
        ("ログイン画面のエラーを直した", "ログイン画面"),
        ("ログイン画面のエラーを直した", "画"),
        ("로그인 오류를 고쳤다", "로그인"),
        ("로그인 오류를 고쳤다", "오류"),
        ("로그인 오류를 고쳤다", "로"),
    ],
)
def test_scripts_without_spaces_are_found_by_a_part_of_a_sentence(
    db: sqlite3.Connection, project: str, written: str, asked: str
) -> None:
    assert finds(db, project, written, asked)


def test_a_single_sign_is_found_at_the_end_of_a_sentence_too(db: sqlite3.Connection, project: str) -> None:
    assert finds(db, project, "所有请求都集中", "中")


@pytest.mark.parametrize("asked", ["React", "组件", "React组件", "React 组件"])
def test_a_latin_word_amid_chinese_is_found(db: sqlite3.Connection, project: str, asked: str) -> None:
    assert finds(db, project, "使用React组件渲染列表", asked)


def test_a_query_of_two_scripts_keeps_the_words_of_both(db: sqlite3.Connection, project: str) -> None:
    assert finds(db, project, "the React components render twice", "React组件")


def test_other_signs_do_not_match(db: sqlite3.Connection, project: str) -> None:
    assert not finds(db, project, "修复了数据库连接的问题", "认证")


def test_bigrams_overlap_and_a_single_sign_is_itself() -> None:
    assert terms.bigrams("数据库") == ["数据", "据库"]
    assert terms.bigrams("数") == ["数"]
    assert terms.query_terms("数") == ['"数"*']
    assert terms.query_terms("数据库") == ['"数据"', '"据库"']


def test_a_text_without_spaces_has_a_length_nevertheless() -> None:
    assert terms.count_words("the door is open") == 4
    assert terms.count_words("修复了数据库连接的问题") >= 5
    assert terms.count_words("?!") == 0


# --- dates --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["2026-11-15", "20261115", "November 2026", "november"])
def test_a_note_is_found_by_the_day_it_was_made(db: sqlite3.Connection, project: str, asked: str) -> None:
    assert finds(db, project, "the door was painted", asked)


def test_another_day_is_another_day(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, "the door was painted", now=NOW)
    keep(db, project, "the roof was mended", now=NOW + 86_400_000)
    first = search(Index(None), db, project, "2026-11-16", now=NOW).hits[0]
    assert first.memory.content == "the roof was mended"


def test_the_date_of_a_byline_counts_and_not_the_day_it_was_stored(
    db: sqlite3.Connection, project: str
) -> None:
    keep(db, project, "[2023-05-08] Anna: the door was painted", now=NOW)
    index = Index(None)
    assert search(index, db, project, "2023-05-08", now=NOW).hits
    assert not search(index, db, project, "November", now=NOW).hits


# --- stopwords, pairs ---------------------------------------------------------------------------------------


def test_words_that_every_text_has_are_left_out_unless_there_are_no_others() -> None:
    assert terms.query_terms("How do I fix the OR NEAR bug?") == ['"fix"', '"near"', '"bug"']
    assert terms.query_terms("to be or not to be") == ['"to be or not to be"']
    assert terms.query_terms("the") == ['"the"']


def test_a_word_is_asked_for_once() -> None:
    assert terms.query_terms("Fix fix FIX") == ['"fix"']


def test_words_side_by_side_are_asked_for_together_unless_both_say_nothing() -> None:
    assert terms.query_pairs("what is the retry limit") == [("the", "retry"), ("retry", "limit")]
    assert terms.query_pairs("one") == []


# --- who, and whether it asks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "who", "rest"),
    [
        ("[2026-11-15] Anna: the port is 8080", "Anna", "the port is 8080"),
        ("[1:56 pm on 8 May, 2023] Caroline: hello", "Caroline", "hello"),
        ("[2026-11-15] Anna Maria O'Neil: hello", "Anna Maria O'Neil", "hello"),
        ("[2026-11-15] Jürgen: hallo", "Jürgen", "hallo"),
        ("[2026-11-15] user: hello", "user", "hello"),
        ("[todo] Anna: no date", None, "[todo] Anna: no date"),
        ("[2026-11-15] the port: is 8080: yes", "the port", "is 8080: yes"),
        ("[2026-11-15] see http://x", None, "[2026-11-15] see http://x"),
        ("Anna: without a date", None, "Anna: without a date"),
        ("late [2026-11-15] Anna: x", None, "late [2026-11-15] Anna: x"),
        ("[2026-11-15] one two three four: x", None, "[2026-11-15] one two three four: x"),
        ("", None, ""),
    ],
)
def test_a_leading_date_and_name_say_who_said_it(text: str, who: str | None, rest: str) -> None:
    assert (terms.author_of(text), terms.bare(text)) == (who, rest)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("which port?", True),
        ("which port?  \n", True),
        ("哪个端口？", True),
        ("look at this? [image: a door]", True),
        ("really?!", False),
        ("why? because.", False),
        ("a?b:c", False),
        ("", False),
        ("x" * 1_000 + "?", True),
    ],
)
def test_a_text_that_ends_in_a_question_mark_asks(text: str, asks: bool) -> None:
    assert terms.is_question(text) is asks


# --- hostile input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sign",
    [
        "a",
        "A",
        "aB",
        "Aa",
        "_",
        "-",
        "a_",
        "a-",
        "a_-",
        "中",
        "中a",
        "?",
        "? ",
        "[1",
        "[1] a ",
        " ",
        "1",
        "?[",
        "é",
    ],
)
def test_hostile_input_takes_linear_time(sign: str) -> None:
    text = (sign * LONG)[:LONG]
    started = time.process_time()
    terms.index_terms(text)
    terms.count_words(text)
    terms.is_question(text)
    terms.bare(text)
    terms.bare("[1] " + text)
    terms.query_terms(text[:2_000])
    terms.query_pairs(text[:2_000])
    assert time.process_time() - started < 10


def test_a_text_of_nothing_but_names_has_a_bounded_number_of_terms() -> None:
    text = " ".join(f"nameNumber{number}x" for number in range(50_000)) + "数据库连接" * 10_000
    assert len(terms.index_terms(text).split()) < 5_000
    signs = "".join(chr(0x4E00 + number) for number in range(20_000))
    assert len(terms.index_terms(signs).split()) < 25_000


def test_a_query_as_long_as_may_be_is_answered_in_time(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, "a walrus", now=NOW)
    for query in ("a " * 1_000, "aB" * 1_000, "a_" * 1_000, "中" * 2_000, "walrus " * 285):
        started = time.monotonic()
        search(Index(None), db, project, query[:2_000], now=NOW)
        assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "query",
    [
        '"',
        '""',
        'a"b',
        "'",
        "NEAR",
        "NEAR(a b, 2)",
        "a AND",
        "AND",
        "NOT a",
        "OR OR",
        "a*",
        "*",
        "^a",
        "content: a",
        "{content tags}: a",
        "-a",
        "a + b",
        "(a",
        "a)",
        "memories_fts",
        "a\0b",
        "\\",
        "a;--",
        "%",
        "_",
        "__",
        "a_",
        "é",
        "e\u0301",
        "ß",
        "İ",
        "ſ",
        "ﬁ",
        "²",
        "①",
        "𠮷野家",
        "a\ud800",
        "a\u200db",
        "\u202ea",
    ],
)
def test_signs_that_mean_something_to_the_index_mean_nothing_here(
    db: sqlite3.Connection, project: str, query: str
) -> None:
    keep(db, project, 'a "quoted" NEAR(x) AND col:umn* text', now=NOW)
    try:
        search(Index(None), db, project, query, now=NOW)
    except BadInput as refused:
        assert "no words" in str(refused)


@pytest.mark.slow
@settings(max_examples=150)
@given(
    st.one_of(
        st.text(min_size=1, max_size=60),
        st.text(st.characters(exclude_categories=()), min_size=1, max_size=20),  # half a pair as well
        st.text("aB_-1\"'*:()^{}+,.;?中あ가 \n\0", min_size=1, max_size=60),
        st.lists(st.sampled_from(["AND", "OR", "NOT", "NEAR", '"', "*", "a", "(", ")"]), min_size=1).map(
            " ".join
        ),
    )
)
def test_no_query_raises_anything_but_bad_input(db: sqlite3.Connection, project: str, query: str) -> None:
    keep(db, project, 'a "quoted" NEAR(x) AND col:umn* text 中文 あ 가', now=NOW)
    try:
        search(Index(None), db, project, query, now=NOW)
    except BadInput:
        pass


@pytest.mark.slow
@settings(max_examples=60)
@given(st.from_regex(r"[a-z]{2,8}([A-Z][a-z]{1,8}){1,3}", fullmatch=True))
def test_whatever_a_name_is_it_is_found_in_both_spellings(
    db: sqlite3.Connection, project: str, camel: str
) -> None:
    snake = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in camel)
    keep(db, project, f"first {camel} failed", now=NOW)
    keep(db, project, f"then {snake} failed as well", now=NOW)
    for query in (camel, snake):
        found = {
            hit.memory.content for hit in search(Index(None), db, project, query, now=NOW, limit=100).hits
        }
        assert {f"first {camel} failed", f"then {snake} failed as well"} <= found
