"""Kinds of secrets on the whole way from a payload to a backup; bench/secret_leaks.py runs all of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import secret_leaks

from tests.safety import secret_kinds

SEED = int(os.environ.get("BACKSTORY_SECRETS_SEED", "0"))  # decides which placement is whose

pytestmark = pytest.mark.slow


def test_kinds_of_secrets_in_a_placement_each_do_not_reach_the_data_folder(tmp_path: Path) -> None:
    cases = list(secret_leaks.cases_of(secret_kinds, SEED, rotating=True))
    assert len(cases) == 150
    leaked = secret_leaks.leaked(cases, str(tmp_path))
    assert len(leaked) <= 0.02 * len(cases), leaked


def test_the_search_finds_what_does_leak(tmp_path: Path) -> None:
    case = next(secret_leaks.cases_of(secret_kinds, SEED, rotating=True))
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "SESSION", "cwd": "CWD"}
    word = "nothing-about-this-says-secret"
    plain = secret_leaks.Case(case.kind, "prompt", word, (word,), [{**prompt, "prompt": word}])
    assert secret_leaks.leaked([plain], str(tmp_path)) == {case.kind: {"prompt"}}


def test_what_only_looks_like_a_secret_stays_as_it_is_in_every_placement() -> None:
    assert secret_leaks.false_positives(secret_kinds) == []
