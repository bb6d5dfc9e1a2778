"""`backstory config unset`: one setting back to its default, and the file as it was besides."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.surfaces.cli.config import without_setting
from tests.conftest import Run


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ('synthesizer = "off"\n', "synthesizer", ""),
        ('# mine\nsynthesizer = "off" # why\nx = 1\n', "synthesizer", "# mine\nx = 1\n"),
        ("[spend]\ndaily_usd = 2\n", "spend.daily_usd", "[spend]\n"),
        ("spend.daily_usd = 2", "spend.daily_usd", ""),
        (
            "[a]\ndaily_usd = 1\r\n[spend]\r\ndaily_usd = 2\r\n",
            "spend.daily_usd",
            "[a]\ndaily_usd = 1\r\n[spend]\r\n",
        ),
        ("[spend]\n'daily_usd' = 2\nb = 1\n", "spend.daily_usd", "[spend]\nb = 1\n"),
        ("spend = { daily_usd = 2 }\n", "spend.daily_usd", None),
        ('embedder = """\nstatic"""\n', "embedder", None),
    ],
)
def test_one_line_goes_and_the_others_stay(text: str, name: str, expected: str | None) -> None:
    assert without_setting(text, name) == expected


def test_the_values_of_all_settings_begin_in_one_column(run: Run) -> None:
    names = [one["name"] for one in run("config", "--json").json]
    rows = run("config").out.splitlines()
    wide = max(map(len, names)) + 2
    assert [row[:wide] for row in rows] == [f"{name:<{wide}}" for name in names]
    assert all(row[wide - 2 : wide] == "  " for row in rows)


def test_a_setting_is_unset_and_its_default_told(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("config", "spend.daily_usd", "0.5")
    run("config", "embedding.key", "-", stdin="hunter2hunter2")
    ran = run("config", "unset", "spend.daily_usd")
    assert ran.out == "spend.daily_usd is no longer set in config.toml; it is 1\n"
    assert "daily_usd" not in (data / "config.toml").read_text()
    assert run("config", "unset", "spend.daily_usd").out.startswith(
        "spend.daily_usd is not set in config.toml"
    )
    assert run("config", "unset", "embedding.key", "--json").json["value"] == ""
    monkeypatch.setenv("BACKSTORY_SPEND_DAILY_USD", "3")
    assert (
        "BACKSTORY_SPEND_DAILY_USD is set in your environment"
        in run("config", "unset", "spend.daily_usd").err
    )


def test_a_change_that_lets_a_model_be_sent_something_says_what_and_at_what_cost(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BACKSTORY_SYNTHESIZER", raising=False)
    told = "is sent what you ask, what Claude answers and excerpts of tool uses"
    for on in (("synthesizer", "auto"), ("synthesizer", "claude"), ("unset", "synthesizer")):
        for off in ("off", "local"):
            assert told not in run("config", "synthesizer", off).err
            ran = run("config", *on)
            assert told in ran.err and "At most $1 a day" in ran.err and told not in ran.out
            assert told not in run("config", *on).err, "it was on already"
    run("config", "spend.daily_usd", "0")
    assert told not in run("config", "synthesizer", "auto").err, "nothing may be spent"
    assert "At most $2 a day" in run("config", "spend.daily_usd", "2").err
    run("config", "synthesizer", "off")
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "off")
    assert told not in run("config", "synthesizer", "auto").err, "the environment wins"


def test_what_cannot_be_unset_is_refused_with_what_to_do(run: Run, data: Path) -> None:
    nameless = run("config", "unset")
    assert nameless.code == 2 and "config unset NAME" in nameless.err
    strange = run("config", "unset", "spend.daily")
    assert strange.code == 2 and "did you mean spend.daily_usd?" in strange.err
    data.mkdir(parents=True, exist_ok=True)
    (data / "config.toml").write_text("spend = { daily_usd = 2 }\n")
    by_hand = run("config", "unset", "spend.daily_usd")
    assert by_hand.code == 2 and "change it there" in by_hand.err
