"""The built packages: the wheel needs no compiler, and messages say how to get one."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from contextlib import chdir
from pathlib import Path
from zipfile import ZipFile

import pytest

from semantic import errors
from semantic.errors import pip_install

ROOT = Path(__file__).parents[1]
CRATE = ROOT / "graphmatch/native"
WITH_RUST = CRATE / "with-rust.sh"
MATURIN = Path(sys.executable).with_name("maturin")
PACKAGES = ("semantic", "graphmatch")


def built(folder: Path, *arguments: str) -> Path:
    """Run maturin; return the one file that it writes."""
    command = (WITH_RUST, MATURIN, *arguments, "--out", folder)
    subprocess.run(command, cwd=ROOT, check=True)
    (file,) = folder.iterdir()
    return file


def sources(pattern: str) -> set[str]:
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob(pattern))
    return {path.relative_to(ROOT).as_posix() for path in paths if "target" not in path.parts}


# --- Built files ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"), "build", "--release")


def test_type_checkers_read_the_packages() -> None:
    assert sources("py.typed") == {"graphmatch/py.typed", "semantic/py.typed"}


@pytest.mark.long
def test_wheel_holds_the_packages_and_the_core(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    names = set(ZipFile(wheel).namelist())
    assert sources("*.py") | sources("*.pyi") | sources("stop_words.txt") <= names
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert sources("bench/*.toml") | sources("bench/*.json") <= names
    assert {name for name in names if name.startswith("graphmatch/_native.")} > {
        "graphmatch/_native.pyi"
    }
    assert not {name for name in names if name.startswith(("graphmatch/native/", "tests/"))}


@pytest.mark.long
def test_wheel_runs_where_no_compiler_is(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environment = tmp_path / "environment"
    subprocess.run((sys.executable, "-m", "venv", environment), check=True)
    bin = environment / "bin"
    subprocess.run((bin / "python", "-m", "pip", "install", "--quiet", wheel), check=True)
    bare = {"PATH": str(bin), "HOME": str(home), "LANG": "C.UTF-8"}
    assert not [tool for tool in ("cargo", "rustc", "cc") if shutil.which(tool, path=str(bin))]

    show = "import graphmatch._native as core; print(core.__file__)"
    command = (bin / "python", "-P", "-c", show)
    core = subprocess.run(command, cwd=ROOT, env=bare, check=True, capture_output=True, text=True)
    assert Path(core.stdout.strip()).is_relative_to(environment)

    command = (bin / "graphmatch", "demo")
    demo = subprocess.run(command, cwd=ROOT, env=bare, check=True, capture_output=True, text=True)
    assert "149 matches: 53 publications, 72 subscriptions." in demo.stdout


@pytest.mark.long
def test_source_distribution_has_the_sources_of_the_core(tmp_path: Path) -> None:
    with tarfile.open(built(tmp_path, "sdist")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    crate = {f"graphmatch/native/{name}" for name in ("Cargo.toml", "Cargo.lock", "with-rust.sh")}
    assert sources("*.py") | sources("*.rs") | crate <= names
    assert {"README.md", "Makefile", "data/events.jsonl", "tests/test_packaging.py"} <= names
    assert not {name for name in names if name.endswith(".so") or "/target/" in name}


# --- Missing extras -----------------------------------------------------------------------------


def test_command_for_an_extra_names_the_clone(tmp_path: Path) -> None:
    """graphmatch is not on PyPI, and the command must work in any folder, with this Python."""
    with chdir(tmp_path):
        assert pip_install("broker") == f'{sys.executable} -m pip install -e "{ROOT}[broker]"'
        assert (ROOT / "pyproject.toml").is_file()


def test_command_for_an_extra_names_the_wheel_without_a_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "site-packages/semantic/errors.py"))
    command = f'{sys.executable} -m pip install "FOLDER/graphmatch-….whl[broker]"'
    assert pip_install("broker") == command


def test_extras_named_in_messages_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in sources("*.py"))
    named = re.findall(r"""(?:pip_install\(|require\("[a-z ]+", )["'](\w+)["']\)""", text)
    assert {"broker", "java", "spark"} <= set(named) <= set(project["optional-dependencies"])


# --- Getting a compiler --------------------------------------------------------------------------


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder with the tools of with-rust.sh, but without a package manager."""
    for name in ("sh", "sed", "dirname", "cut", "id"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    return tmp_path


def add(tools: Path, name: str, prints: str = "") -> None:
    (tools / name).write_text(f"#!/bin/sh\necho '{prints}'\n", encoding="utf-8")
    (tools / name).chmod(0o755)


def with_rust(tools: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(tools), "HOME": str(tools / "nobody")}
    return subprocess.run(
        ("sh", WITH_RUST, *command), env=environment, capture_output=True, text=True, check=False
    )


REMEDY = "install Rust 1.87 or later (cargo, rustc) and a C compiler (cc), then run this again."


def test_command_runs_if_all_tools_exist(tools: Path) -> None:
    add(tools, "cc")
    add(tools, "cargo", "cargo 1.95.0 (f2d3ce0bd 2026-03-21)")
    add(tools, "rustc")
    result = with_rust(tools, "sh", "-c", "echo compiled; exit 3")
    assert (result.stdout, result.stderr, result.returncode) == ("compiled\n", "", 3)


def test_cargo_of_the_home_folder_is_found(tools: Path) -> None:
    add(tools, "cc")
    rustup = tools / "nobody/.cargo/bin"
    rustup.mkdir(parents=True)
    add(rustup, "cargo", "cargo 1.95.0 (f2d3ce0bd 2026-03-21)")
    add(rustup, "rustc")
    result = with_rust(tools, "sh", "-c", "command -v cargo")
    assert (result.stdout, result.stderr) == (f"{rustup}/cargo\n", "")


@pytest.mark.parametrize("missing", ["linker", "recent cargo"])
def test_one_line_names_the_missing_tool(tools: Path, missing: str) -> None:
    add(tools, "rustc")
    if missing == "linker":
        add(tools, "cargo", "cargo 1.95.0 (f2d3ce0bd 2026-03-21)")
    else:
        add(tools, "cargo", "cargo 0.66.0")
        add(tools, "cc")
    result = with_rust(tools, "sh", "-c", "echo compiled")
    assert (result.stdout, result.returncode) == ("", 1)
    assert result.stderr == f"graphmatch: {REMEDY}\n"


def test_without_cargo_maturin_may_fetch_it(tools: Path) -> None:
    add(tools, "cc")
    assert with_rust(tools, "sh", "-c", "echo compiled").stdout == "compiled\n"
    failed = with_rust(tools, "sh", "-c", "exit 1")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1] == f"graphmatch: {REMEDY}"
