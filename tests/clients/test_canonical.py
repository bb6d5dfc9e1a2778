"""Canonical events hold what other agents tell as well."""

from __future__ import annotations

from backstory.capture.changes import changed
from backstory.clients import canonical
from backstory.intake.trace import files_of


def test_an_edit_of_several_files_is_about_all_of_them() -> None:
    use = canonical.Use("apply_patch", canonical.EDIT, {"path": "src/a.py"})
    use.more_paths = ["/p/src/b.py", "../c.py"]
    event = canonical.Event(canonical.TOOL_USE, "after_tool", "s", "/p")
    event.use = use

    assert changed(event) == ["/p/src/a.py", "/p/src/b.py", "/c.py"]
    assert files_of(use) == ["src/a.py", "/p/src/b.py", "../c.py"]
    assert use.more_paths == ["/p/src/b.py", "../c.py"]


def test_what_was_printed_is_one_text_however_the_client_tells_it() -> None:
    use = canonical.Use("shell", canonical.SHELL, {"command": "make"})
    for result, output in (
        ("done\n", "done\n"),
        ({"output": "done\n", "errors": "\nwarning\n"}, "done\nwarning"),
        ({"output": " \n", "errors": "warning"}, "warning"),
        ({"output": 3}, ""),
        (None, ""),
        (["done"], ""),
    ):
        use.result = result
        assert use.output == output
