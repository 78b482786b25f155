"""The choice of Spark's Java."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from graphmatch.spark.java import SparkError, java_home, version
from semantic.errors import pip_install

LACKED = "--add-modules=jdk.incubator.vector"


def java(folder: Path, said: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    return program


def test_java_of_the_environment_comes_first(tmp_path: Path) -> None:
    mine, other = (java(tmp_path / name, 'openjdk version "21.0.1"') for name in "ab")
    environment = {"JAVA_HOME": str(mine.parents[1]), "PATH": str(other.parent)}
    assert java_home(environment) == mine.parents[1]
    assert java_home({"PATH": str(other.parent)}) == other.parents[1]


def test_links_are_followed(tmp_path: Path) -> None:
    program = java(tmp_path / "jdk", 'openjdk version "17"')
    linked = tmp_path / "links" / "java"
    linked.parent.mkdir()
    linked.symlink_to(program)
    assert java_home({"PATH": str(linked.parent)}) == tmp_path / "jdk"


def test_old_versions_of_java_are_named(tmp_path: Path) -> None:
    old = java(tmp_path / "old", 'java version "1.8.0_412"')
    none = java(tmp_path / "none", "Unable to locate a Java Runtime")
    environment = {"JAVA_HOME": str(none.parents[1]), "PATH": str(old.parent)}
    with pytest.raises(SparkError) as caught:
        java_home(environment, packaged=False)
    assert str(caught.value) == (
        f"java: Spark needs Java 17 or later; {none} is none; {old} is version 1. "
        f"Install one, or: {pip_install('spark')}"
    )
    with pytest.raises(SparkError, match="there is none"):
        java_home({"PATH": ""}, packaged=False)


def test_the_packaged_java_is_launched_without_missing_modules(tmp_path: Path) -> None:
    home = java_home({"PATH": ""}, tmp_path)
    launcher = home / "bin" / "java"
    assert (version(launcher) or 0) >= 21
    said = subprocess.run(
        [launcher, LACKED, "-Da=b c", "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "a = b c" in said.stderr
    assert java_home({"PATH": ""}, tmp_path) == home  # It is created once.
