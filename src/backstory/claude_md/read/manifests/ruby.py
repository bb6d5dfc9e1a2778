"""Gemfile and gemspec."""

from __future__ import annotations

import re

from backstory.claude_md.read.manifests.folder import Folder
from backstory.claude_md.read.manifests.manifest import Manifest
from backstory.model import Command

GEM = re.compile(r"""^[ \t]*+gem[ \t(][ \t]*+["']([\w-]+)["']""", re.MULTILINE)
NEEDED = re.compile(r"""^[ \t]*+\w++\.add_(?:\w+_)?dependency[ \t(][ \t]*+["']([\w-]+)["']""", re.MULTILINE)
SAID = r"""^[ \t]*+\w++\.{}[ \t]*+=[ \t]*+(?:"([^"\n]*)"|'([^'\n]*)')"""


def read(folder: Folder) -> Manifest | None:
    specs = [name for name in sorted(folder.names) if name.endswith(".gemspec")]
    if "Gemfile" not in folder.names and not specs:
        return None
    spec = "\n".join(folder.text(name) for name in specs)
    found = []
    if "Gemfile" in folder.names:
        rakefile = folder.first("Rakefile", "rakefile", "Rakefile.rb")
        setup = folder.has("bin/setup")
        found.append(
            Command("install", "bin/setup", "bin/setup")
            if setup
            else Command("install", "bundle install", "Gemfile")
        )
        if folder.any_below("spec", "_spec.rb"):
            found.append(
                Command("test", "bundle exec rspec", ".rspec" if folder.has(".rspec") else "Gemfile")
            )
        elif folder.has("bin/rails") and folder.any_below("test", "_test.rb"):
            found.append(Command("test", "bin/rails test", "bin/rails"))
        elif rakefile:
            found.append(Command("test", "bundle exec rake", rakefile))
        if folder.has("bin/dev"):
            found.append(Command("run", "bin/dev", "bin/dev"))
        elif folder.has("bin/rails"):
            found.append(Command("run", "bin/rails server", "bin/rails"))
        if folder.has("db/schema.rb") or folder.has("db/structure.sql"):
            found.append(Command("migrate", "bin/rails db:prepare", "bin/rails"))
        if ".rubocop.yml" in folder.names:
            found.append(Command("lint", "bundle exec rubocop", ".rubocop.yml"))
        elif ".standard.yml" in folder.names:
            found.append(Command("lint", "bundle exec standardrb", ".standard.yml"))
    name = _said(spec, "name")
    return Manifest(
        ecosystem="gem",
        language="Ruby",
        name=name,
        description=_said(spec, "summary") or _said(spec, "description"),
        own=frozenset([name]),
        dependencies=frozenset(GEM.findall(folder.text("Gemfile")) + NEEDED.findall(spec)),
        managers=("bundler",) if "Gemfile" in folder.names else (),
        commands=tuple(found),
    )


def _said(spec: str, key: str) -> str:
    found = re.search(SAID.format(key), spec, re.MULTILINE)
    return found[1] or found[2] or "" if found else ""
