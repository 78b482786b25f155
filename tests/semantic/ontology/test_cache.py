"""Cached ontologies give what the files give, and never what they do not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from platformdirs import user_cache_path
from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode
from pyoxigraph import Triple as Statement

import semantic.ontology.imports  # noqa: F401 - binds `read_file` before it is replaced
from semantic.errors import Place, Problem, Severity
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology import cache, documents
from semantic.ontology.cache import Cached, cache_folder
from semantic.ontology.loading import Loading, Sources, read_sources
from semantic.terms import Term

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TERMS: st.SearchStrategy[Term] = st.one_of(
    st.sampled_from(["urn:a", "urn:é", "http://e.org/x#y", ""]).map(
        lambda s: NamedNode("urn:" + s)
    ),
    st.sampled_from(["a", "b1", "c-d"]).map(BlankNode),
    TEXTS.map(Literal),
    st.builds(lambda t, g: Literal(t, language=g), TEXTS, st.sampled_from(["en", "fr-ca"])),
    st.builds(
        lambda t, d: Literal(t, datatype=NamedNode(d)), TEXTS, st.sampled_from(["urn:t", "x:y"])
    ),
)


COUNTS = st.none() | st.integers(1)
PROBLEMS = st.builds(
    Problem,
    TEXTS,
    st.builds(Place, TEXTS, COUNTS, COUNTS, st.none() | TEXTS),
    TEXTS,
    st.sampled_from(Severity),
)
CACHED = st.builds(
    Cached,
    st.lists(st.tuples(TERMS, TERMS, TERMS)),
    st.just(0),
    st.dictionaries(TEXTS, TEXTS, max_size=3),
    st.lists(PROBLEMS, max_size=2).map(tuple),
)


@given(CACHED)
def test_what_is_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, ontology: Cached
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    cache.save(folder, "x", ontology)
    assert cache.load(folder, "x") == ontology


def test_terms_of_rdf_1_2(tmp_path: Path) -> None:
    a = NamedNode("urn:a")
    cache.save(tmp_path, "x", Cached([(a, a, Statement(a, a, a))], 0, {}, ()))
    assert list(tmp_path.iterdir()) == []
    right_to_left = Literal("x", language="ar", direction=BaseDirection.RTL)
    ontology = Cached([(a, a, right_to_left)], 0, {}, ())
    cache.save(tmp_path, "x", ontology)
    assert cache.load(tmp_path, "x") == ontology


# --- Loading through it --------------------------------------------------------------------------

TEXT = (
    """@prefix ex: <urn:ex:> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
<urn:ex:o> a owl:Ontology ; owl:imports <urn:ex:gone> .
ex:A ex:p "é", "x"@en, 1.50, [] .
"""
    + "# filling\n" * 8000
)


class Loads:
    """Counts how often files are really read."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cache = folder / "cache"
        self.path = folder / "o.ttl"
        self.path.write_text(TEXT, encoding="utf-8")
        self.problems: list[Problem] = []
        self.reads = 0
        real = documents.read_file

        def counting(*args: object) -> object:
            self.reads += 1
            return real(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(documents, "read_file", counting)

    def __call__(
        self, *more: Path, imports: Path | None = None, limits: Limits = DEFAULT_LIMITS
    ) -> Sources:
        self.problems.clear()
        options = Loading(imports, cache=self.cache)
        return read_sources([self.path, *more], self.problems.append, limits, options)


@pytest.fixture
def loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loads:
    return Loads(tmp_path, monkeypatch)


def test_the_second_time_nothing_is_read(loads: Loads) -> None:
    first, told = loads(), list(loads.problems)
    assert loads.reads == 1
    assert len(told) == 1
    second = loads()
    assert loads.reads == 1
    assert second == first
    assert loads.problems == told
    assert second.prefixes == {"ex": "urn:ex:", "owl": "http://www.w3.org/2002/07/owl#"}


def change_text(loads: Loads) -> Sources:
    loads.path.write_text(TEXT + "<urn:ex:B> <urn:ex:p> 2 .", encoding="utf-8")
    return loads()


def change_files(loads: Loads) -> Sources:
    other = loads.path.with_name("other.ttl")
    other.write_text("<urn:ex:B> <urn:ex:p> 2 .", encoding="utf-8")
    return loads(other)


def change_imports(loads: Loads) -> Sources:
    folder = loads.path.with_name("library")
    folder.mkdir()
    return loads(imports=folder)


def change_limits(loads: Loads) -> Sources:
    return loads(limits=Limits(nesting=100))


@pytest.mark.parametrize("change", [change_text, change_files, change_imports, change_limits])
def test_what_changes_the_result_is_read_again(
    loads: Loads, change: Callable[[Loads], Sources]
) -> None:
    loads()
    change(loads)
    assert loads.reads > 1


def test_what_comes_into_the_folder_of_imports_is_seen(loads: Loads) -> None:
    folder = loads.path.with_name("library")
    folder.mkdir()
    stated = len(loads(imports=folder).triples)
    declared = "<urn:ex:gone> a <http://www.w3.org/2002/07/owl#Ontology> ; a <urn:ex:%s> ."
    for word in ("new", "changed"):
        (folder / "gone.ttl").write_text(declared % word, encoding="utf-8")
        triples = loads(imports=folder).triples
        assert len(triples) == stated + 2
        assert NamedNode(f"urn:ex:{word}") in {o for _, _, o in triples}
        assert loads.problems == []


@pytest.mark.parametrize("size", [0, 10, 500, -1, -30])
def test_a_file_that_was_cut_is_made_again(loads: Loads, size: int) -> None:
    first = loads()
    (file,) = loads.cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:size])
    # Blank nodes are new each time that a document is read.
    assert len(loads().triples) == len(first.triples)
    assert loads.reads == 2
    assert len(loads().triples) == len(first.triples)
    assert loads.reads == 2


@given(CACHED.filter(lambda ontology: bool(ontology.triples)), st.data())
def test_a_damaged_file_is_none(
    tmp_path_factory: pytest.TempPathFactory, ontology: Cached, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    cache.save(folder, "x", ontology)
    (path,) = folder.iterdir()
    content = bytearray(path.read_bytes())
    places = st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=5, unique=True)
    for place in data.draw(places):
        content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    assert cache.load(folder, "x") is None


def test_not_a_bit_may_differ(tmp_path: Path) -> None:
    a = NamedNode("urn:a")
    cache.save(tmp_path, "x", Cached([(a, a, Literal("é"))], 0, {}, ()))
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        assert cache.load(tmp_path, "x") is None
    path.write_bytes(whole + b"x")
    assert cache.load(tmp_path, "x") is None


def test_the_file_of_another_ontology_is_none(tmp_path: Path) -> None:
    cache.save(tmp_path, "x", Cached([], 0, {}, ()))
    (path,) = tmp_path.iterdir()
    path.rename(path.with_stem("y"))
    assert cache.load(tmp_path, "y") is None


def test_a_damaged_file_is_made_again(loads: Loads) -> None:
    first = loads()
    (file,) = loads.cache.iterdir()
    data = file.read_bytes()
    assert b"urn:ex:A" in data
    file.write_bytes(data.replace(b"urn:ex:A", b"urn:ex:Z", 1))
    assert len(loads().triples) == len(first.triples)
    assert loads.reads == 2


def test_a_file_that_changes_while_it_is_read_is_not_kept(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = documents.read_file

    def leaving(path: Path, *args: object) -> object:
        found = counting(path, *args)  # type: ignore[arg-type]
        path.write_text(TEXT + "<urn:ex:B> <urn:ex:p> 3 .", encoding="utf-8")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(documents, "read_file", leaving)
        loads()
    assert not loads.cache.exists()
    assert len(loads().triples) == 7


def test_a_folder_that_cannot_be_written_harms_nobody(loads: Loads) -> None:
    loads.cache.write_text("a file, not a folder", encoding="utf-8")
    assert len(loads().triples) == 6
    assert len(loads.problems) == 1  # the import


def test_nothing_half_written_is_left(loads: Loads, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    loads()
    assert list(loads.cache.iterdir()) == []


def test_small_files_are_not_kept(loads: Loads) -> None:
    loads.path.write_text(TEXT[:200].rpartition("\n")[0], encoding="utf-8")
    loads()
    assert not loads.cache.exists()


def test_old_files_go(tmp_path: Path) -> None:
    for number in range(40):
        cache.save(tmp_path, f"{number}", Cached([], 0, {}, ()))
        os.utime(tmp_path / f"{number}.ontology", (number, number))
    kept = sorted(int(file.stem) for file in tmp_path.iterdir())
    assert kept == list(range(8, 40))


def test_the_folder_is_the_users_own_where_none_is_named(tmp_path: Path) -> None:
    own = user_cache_path("graphmatch", appauthor=False) / "ontologies"
    assert cache_folder(None) == cache_folder(True) == own
    assert cache_folder(False) is None
    assert cache_folder(str(tmp_path)) == tmp_path


def test_that_large_files_go_first_to_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_BYTES", 300)
    for number in range(4):
        cache.save(tmp_path, f"{number}", Cached([], 0, {"p": "x" * 40}, ()))
        os.utime(tmp_path / f"{number}.ontology", (number, number))
    cache.save(tmp_path, "last", Cached([], 0, {"p": "x" * 400}, ()))
    assert [file.stem for file in tmp_path.iterdir()] == ["last"]
