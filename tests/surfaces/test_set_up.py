"""What the plugin's own set-up has pip install, and what it keeps from pip: nobody was asked, so no code of
an index may run. The whole set-up is in test_install.py."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow

SET_UP = Path("src", "backstory", "plugin", "bin")
Walrus = tuple[Path, Path, dict[str, str]]

BACKEND = """\
import pathlib
pathlib.Path({ran!r}).touch()
raise SystemExit("built")
"""
CODE_WITHOUT_ASKING = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


@pytest.fixture
def walrus(tmp_path: Path) -> Iterator[Walrus]:
    """A plugin that needs one package, whose hashes it has; the folder of an index on loopback that has both
    its distributions; and an environment for the set-up. To build the one from source leaves a file `ran`."""
    folder = tmp_path / "index" / "simple" / "walrus-noises"
    folder.mkdir(parents=True)
    source, wheel = folder / "walrus_noises-1.0.tar.gz", folder / "walrus_noises-1.0-py3-none-any.whl"
    metadata = "Metadata-Version: 2.1\nName: walrus-noises\nVersion: 1.0\n"
    with tarfile.open(source, "w:gz") as archive:
        texts = {
            "PKG-INFO": metadata,
            "pyproject.toml": CODE_WITHOUT_ASKING,
            "backend.py": BACKEND.format(ran=str(tmp_path / "ran")),
        }
        for name, text in texts.items():
            entry = tarfile.TarInfo(f"walrus_noises-1.0/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("walrus_noises.py", "")
        archive.writestr("walrus_noises-1.0.dist-info/METADATA", metadata)
        kind = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr("walrus_noises-1.0.dist-info/WHEEL", kind)
        archive.writestr("walrus_noises-1.0.dist-info/RECORD", "walrus_noises.py,,\n")
    hashes = [f"--hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}" for path in (source, wheel)]
    plugin = tmp_path / "plugin"
    for part in (".claude-plugin", str(SET_UP)):
        shutil.copytree(REPOSITORY / part, plugin / part)
    shutil.copy(REPOSITORY / "pyproject.toml", plugin)
    (plugin / "requirements").mkdir()
    (plugin / "requirements" / "run.txt").write_text(f"walrus-noises==1.0 {' '.join(hashes)}\n")
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder.parent.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/simple/"
        env = {"HOME": str(tmp_path / "no home"), "PATH": os.environ["PATH"], "PIP_INDEX_URL": url}
        yield plugin, folder, {**env, "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0"}
        server.shutdown()


def set_up(plugin: Path, own: Path, env: dict[str, str], cwd: Path) -> None:
    python = os.path.realpath(sys.executable)
    command = [python, "-I", str(plugin / SET_UP / "setup.py"), str(plugin), str(own)]
    subprocess.run(command, env=env, cwd=cwd, check=True, timeout=300, capture_output=True)


def test_an_index_that_offers_only_source_code_has_nothing_run(walrus: Walrus, tmp_path: Path) -> None:
    plugin, index, env = walrus
    (index / "walrus_noises-1.0-py3-none-any.whl").unlink()
    own = tmp_path / "plugin data"
    own.mkdir()
    set_up(plugin, own, env, tmp_path)
    assert not (tmp_path / "ran").exists()
    said = (own / "setup.status").read_text()
    assert f"there is no wheel of walrus-noises==1.0 for Python {platform.python_version()} on" in said
    assert "see docs/install.md" in said and not set(said) & set('"\\')
    assert len(said) - len(str(own)) < 250, "the line at a session's start has 300 characters"


def test_nothing_in_the_environment_has_packages_built_or_put_elsewhere(
    walrus: Walrus, tmp_path: Path
) -> None:
    plugin, _, env = walrus
    own, elsewhere, project = (tmp_path / name for name in ("plugin data", "elsewhere", "project"))
    own.mkdir()
    project.mkdir()
    (project / "pip.conf").write_text(f"[install]\ntarget = {elsewhere}\nno-binary = :all:\n")
    variables = {f"PIP_{name}": str(elsewhere) for name in ("TARGET", "PREFIX", "ROOT", "SRC", "REQUIREMENT")}
    variables |= {"PIP_USER": "1", "PIP_NO_BINARY": ":all:", "PIP_CONFIG_FILE": "pip.conf", "PYTHONPATH": "."}
    set_up(plugin, own, env | variables, project)
    assert not (tmp_path / "ran").exists() and not elsewhere.exists()
    assert list(own.glob("venv-*/lib/python3*/site-packages/walrus_noises.py"))
    # Without what builds backstory this is how far it gets.
    assert "(pip could not install it)" in (own / "setup.status").read_text()
    assert "No module named 'hatchling'" in (own / "setup.log").read_text()
