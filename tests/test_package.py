"""The built wheel, alone in a fresh environment, from another folder."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from conftest import ROOT


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=540, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("surrecall-*.whl")
    return built


def test_the_wheel_carries_every_surql_and_seed_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("surql", "seed"):
        for path in (ROOT / folder).rglob("*.*"):
            assert f"surrecall/{path.relative_to(ROOT).as_posix()}" in names
    assert "surrecall/py.typed" in names


def test_the_wheel_alone_runs_the_demo_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "venv", tmp_path / "elsewhere"
    elsewhere.mkdir()
    venv.create(home, with_pip=True)
    run(home / "bin/python", "-m", "pip", "install", "--quiet", wheel, cwd=elsewhere)
    shown = run(home / "bin/surrecall", "demo", cwd=elsewhere)
    assert "10. The history" in shown
    assert run(home / "bin/surrecall", "bundle", cwd=elsewhere).startswith("OPTION IMPORT;")
    where = run(home / "bin/python", "-c", "import surrecall; print(surrecall.__file__)", cwd=elsewhere)
    assert str(home) in where
