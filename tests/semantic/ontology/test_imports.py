"""``owl:imports`` among the loaded files and from folders."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest

from semantic.errors import OntologyError, Problem, Severity
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.loading import LoadOptions, read_sources

EX = "http://example.org/"


def write(path: Path, name: str, *imports: str, version: str = "") -> Path:
    """Write an ontology that states only its IRI, version, file and imports."""
    lines = [f"<{name}> a owl:Ontology ; <urn:in> <urn:file:{quote(path.name)}> ."]
    lines += [f"<{name}> owl:imports <{each}> ." for each in imports]
    if version:
        lines.append(f"<{name}> owl:versionIRI <{version}> .")
    path.parent.mkdir(parents=True, exist_ok=True)
    prefix = "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
    path.write_text(prefix + "\n".join(lines), encoding="utf-8")
    return path


def load(
    *paths: Path, imports: Path | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[list[str], list[str]]:
    """Return the names of the files read, and the warnings."""
    problems: list[Problem] = []
    read = read_sources(paths, problems.append, limits, LoadOptions(imports))
    files = [o.value[9:] for _, p, o in read.triples if p.value == "urn:in"]  # type: ignore[union-attr]
    assert all(problem.severity is Severity.WARNING for problem in problems)
    return files, list(map(str, problems))


def test_a_folder_is_searched_by_names_versions_and_file_names(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    write(folder / "x1.ttl", EX + "declared")
    write(folder / "deep" / "x2.ttl", EX + "old", version=EX + "old/2.0")
    write(folder / "byname.ttl", EX + "something-else")
    write(folder / "unused.ttl", EX + "unused")
    imports = [EX + "declared#", EX + "old/2.0", EX + "v/byname", "http://other/byname.ttl"]
    root = write(tmp_path / "root.ttl", EX + "root", *imports)
    assert load(root, imports=folder) == (["root.ttl", "x1.ttl", "x2.ttl", "byname.ttl"], [])


def test_imports_are_followed_and_each_is_read_once(tmp_path: Path) -> None:
    a = write(tmp_path / "a.ttl", EX + "a", EX + "b", EX + "c")
    write(tmp_path / "b.ttl", EX + "b", EX + "d")
    write(tmp_path / "c.ttl", EX + "c", EX + "d")
    write(tmp_path / "d.ttl", EX + "d")
    assert load(a, imports=tmp_path) == (["a.ttl", "b.ttl", "c.ttl", "d.ttl"], [])


def test_loaded_imports_need_no_folder(tmp_path: Path) -> None:
    a = write(tmp_path / "a.ttl", EX + "a", EX + "b/")
    b = write(tmp_path / "b.ttl", EX + "b")
    assert load(a, b) == (["a.ttl", "b.ttl"], [])


def test_a_loaded_file_may_be_imported_by_its_address(tmp_path: Path) -> None:
    a = write(tmp_path / "a.ttl", EX + "a", "b.ttl")  # The import is relative to a.ttl.
    b = write(tmp_path / "b.ttl", EX + "b")
    assert load(a, b) == (["a.ttl", "b.ttl"], [])


def test_a_missing_import_is_named_with_who_imports_it(tmp_path: Path) -> None:
    a = write(tmp_path / "a.ttl", EX + "a", EX + "gone")
    files, (problem,) = load(a)
    assert files == ["a.ttl"]
    assert problem == (
        f"{a}: it imports <{EX}gone>, which is missing: no folder of imports was given. "
        "Its statements are left out. Load its file, too, or name a folder that has it."
    )
    _, (problem,) = load(a, imports=tmp_path)
    assert f"it imports <{EX}gone>, which is missing: no file in the folder of" in problem


def test_documents_that_import_each_other_are_read_once(tmp_path: Path) -> None:
    for name, others in {"a": "abd", "b": "c", "c": "a", "d": ""}.items():
        write(tmp_path / f"{name}.ttl", EX + name, *(EX + other for other in others))
    files, problems = load(tmp_path / "a.ttl", imports=tmp_path)
    assert files == ["a.ttl", "b.ttl", "d.ttl", "c.ttl"]
    assert problems == []


def test_two_files_with_one_name_are_reported(tmp_path: Path) -> None:
    root = write(tmp_path / "root.ttl", EX + "root", EX + "twice")
    one = write(tmp_path / "library" / "one.ttl", EX + "twice")
    write(tmp_path / "library" / "two.ttl", EX + "twice")
    files, (problem,) = load(root, imports=tmp_path / "library")
    assert files == ["root.ttl", "one.ttl"]
    assert f"{one}: several files declare <{EX}twice>: {one}, " in problem


def test_a_broken_file_of_the_folder_stops_nothing_until_it_is_imported(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    write(folder / "good.ttl", EX + "good")
    (folder / "broken.ttl").write_text("<urn:a> <urn:b>", encoding="utf-8")
    (folder / "catalog-v001.xml").write_text("<catalog/>", encoding="utf-8")
    (folder / "readme.md").write_text("no RDF", encoding="utf-8")
    root = write(tmp_path / "root.ttl", EX + "root", EX + "good")
    files, (problem,) = load(root, imports=folder)
    assert files == ["root.ttl", "good.ttl"]
    assert "broken.ttl:1:16: not searched for imports: not valid Turtle" in problem
    root = write(tmp_path / "root.ttl", EX + "root", EX + "broken")
    with pytest.raises(OntologyError, match=r"broken\.ttl:1:16: not valid Turtle"):
        load(root, imports=folder)


def test_only_files_of_the_folder_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    write(folder / "good.ttl", EX + "good")
    (folder / "dangling.ttl").symlink_to(folder / "gone.ttl")
    (folder / "itself.ttl").symlink_to(folder / "itself.ttl")
    os.mkfifo(folder / "pipe.ttl")
    (folder / "piped.ttl").symlink_to(folder / "pipe.ttl")
    (folder / "device.ttl").symlink_to("/dev/zero")
    imports = [EX + name for name in ("good", "dangling", "itself", "pipe")]
    root = write(tmp_path / "root.ttl", EX + "root", *imports)
    problems: list[Problem] = []
    read = read_sources([root], problems.append, DEFAULT_LIMITS, LoadOptions(folder))
    files = {o.value[9:] for _, p, o in read.triples if p.value == "urn:in"}  # type: ignore[union-attr]
    assert files == {"root.ttl", "good.ttl"}
    assert {problem.severity for problem in problems} == {Severity.WARNING}
    passed = {
        Path(problem.where.source).name: problem.what.rpartition(": ")[2]
        for problem in problems
        if problem.what.startswith("not searched for imports: cannot be read: ")
    }
    assert passed == {
        "dangling.ttl": "No such file or directory",
        "itself.ttl": "Too many levels of symbolic links",
        "pipe.ttl": "not a regular file",
        "piped.ttl": "not a regular file",
        "device.ttl": "not a regular file",
    }
    assert len(problems) == len(passed) + 3  # The other three are the missing imports.


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    root = write(tmp_path / "root.ttl", EX + "root")
    with pytest.raises(OntologyError, match="library: cannot be read: No such file"):
        load(root, imports=tmp_path / "library")


def test_too_many_imports(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path / f"{number}.ttl", f"{EX}{number}", f"{EX}{number + 1}")
    write(tmp_path / "5.ttl", EX + "5")
    limited = Limits(imported_documents=5)
    assert len(load(tmp_path / "0.ttl", imports=tmp_path, limits=limited)[0]) == 6
    with pytest.raises(OntologyError, match=r"3\.ttl: more than 3 imported documents"):
        load(tmp_path / "0.ttl", imports=tmp_path, limits=Limits(imported_documents=3))


def test_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    root = write(tmp_path / "root.ttl", EX + "root")
    with pytest.raises(OntologyError, match=r"root\.ttl: a file, not a folder"):
        load(root, imports=root)
