"""The documentation and the code describe the same things.

- docs/reference/command.md has every command, with its options and their help texts.
- Every command and option named in pages, sources and deployment files exists.
- Every problem message says what to do, and every message of docs/reference/errors.md exists.
- docs/reference/api.md lists the public names of the packages.
- Links have targets.
- Examples run: each ``python`` block and each command of a ``console`` block prints the lines
  below it. A line with "…" stands for any number of lines, seconds for any seconds. A loopback
  server stands for example.org. A block with a title is written to a file. `NOT_RUN` lists the
  other blocks, each with the reason.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from io import StringIO
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any, TypeAlias

import pytest
from typer.testing import CliRunner

from graphmatch.cli import app
from tests import reference_tables
from tests.reference_tables import commands

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TOLD = [
    ROOT / "README.md",
    *(ROOT / "docs" / name for name in ("architecture.md", "index.md", "which-way-in.md")),
    *sorted((ROOT / "docs/guides").glob("*.md")),
    *sorted((ROOT / "docs/algorithms").glob("*.md")),
    *(ROOT / "docs/reference" / name for name in ("api.md", "attributes.md", "feeds.md")),
    *(ROOT / "docs/reference" / name for name in ("errors.md", "owl.md")),
]
"""The pages whose examples run."""

API_PAGE = ROOT / "docs/reference/api.md"
ERRORS_PAGE = ROOT / "docs/reference/errors.md"
DECISIONS = sorted((ROOT / "docs/decisions").glob("*.md"))
REASONS = [page for page in DECISIONS if page.stem.startswith("dependencies")]
PACKAGES = ("semantic", "graphmatch")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def modules() -> dict[Path, ast.Module]:
    """Return the parsed Python sources."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


# --- Commands and options ------------------------------------------------------------------------


def test_the_options_are_those_of_the_commands() -> None:
    page = reference_tables.PAGE.read_text(encoding="utf-8")
    assert reference_tables.updated(page) == page, "run python -m tests.reference_tables"


def test_every_parameter_has_a_help_text() -> None:
    shown = "".join(reference_tables.parts().values())
    missing = [
        f"{name} {parameter.name}"
        for name, command in commands().items()
        for parameter in command.params
        if parameter.name != "help" and (not parameter.help or parameter.help not in shown)
    ]
    assert not missing


def test_every_command_has_a_section() -> None:
    text = reference_tables.PAGE.read_text(encoding="utf-8")
    described = re.findall(r"^## `graphmatch ([\w ]+)`", text, re.MULTILINE)
    assert sorted(described) == sorted(commands())


# --- Commands in the text ------------------------------------------------------------------------

NAMING = [
    *PAGES,
    *sorted((ROOT / "docs/deploy").iterdir()),
    *sorted((ROOT / "docs/notebooks").glob("*.ipynb")),
    ROOT / "Makefile",
    *modules(),
    *sorted((ROOT / "graphmatch").rglob("*.html")),
    *sorted((ROOT / "graphmatch/native/src").rglob("*.rs")),
]
"""Files that name commands, for users or in messages."""

OF_OTHERS = {
    *("--editable", "--py-files", "--deploy-mode", "--files"),  # pip, spark-submit
    *("--loader", "--ignore-imports", "--ignoreUnsupportedDatatypes"),  # reasoners
    *("--die-on-broken-pipe", "--enable-auth", "--add-modules"),  # py4j, Java
}
"""Options of other programs."""


def named_wrongly(text: str, known: dict[str, Any]) -> Iterator[str]:
    """Yield unknown commands in a text, and unknown options of known commands.

    In code, any word after "graphmatch" is a command; elsewhere only after the name of a group, as
    in "graphmatch broker match".
    """
    groups = {name.partition(" ")[0] for name in known if " " in name}
    text = re.sub(
        r"^```(?:sh|bash|console)\n.*?^```$",
        lambda block: re.sub(r"^graphmatch ", "$ graphmatch ", block[0], flags=re.MULTILINE),
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    for found in re.finditer(r"(?<![\w.@:-])graphmatch ", text):
        before, rest = text[max(0, found.start() - 2) : found.start()], text[found.end() :]
        if before.endswith("`"):
            rest = rest.partition("`")[0]
        else:
            rest = rest.replace("\\\n", " ").partition("\n")[0]
        first, *words = re.split(r"[|;&<>#`()…\"]", rest)[0].split() or [""]
        if first in groups and words and re.fullmatch("[a-z]+[.,:]?", words[0]):
            first = f"{first} {words[0].rstrip('.,:')}"
        elif first in groups or not re.fullmatch("[a-z]+", first):
            continue
        if first in known:
            there = {o for p in known[first].params for o in (*p.opts, *p.secondary_opts)}
            options = {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)}
            yield from (f"{first} {option}" for option in sorted(options - there - {"--help"}))
        elif " " in first or before.endswith(("`", "$ ", "| ", "/")):
            yield first


def test_every_named_command_exists() -> None:
    known = commands()
    wrong = [
        f"{name_of(path)}: graphmatch {what}"
        for path in NAMING
        if path.name != "changelog.md"  # The changelog also names removed commands.
        for what in named_wrongly(path.read_text(encoding="utf-8"), known)
    ]
    assert not wrong, f"there is no {wrong}"


def test_every_named_option_exists() -> None:
    there = {o for c in commands().values() for p in c.params for o in (*p.opts, *p.secondary_opts)}
    there |= {"--help", "--version", "--install-completion", "--show-completion", *OF_OTHERS}
    wrong = [
        f"{name_of(path)}: {option}"
        for path in NAMING
        for code in code_of(path)
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", code)
        if option not in there
    ]
    assert not wrong, f"there is no {wrong}"


def code_of(path: Path) -> Iterator[str]:
    """Yield the inline code of a page, or the string constants of a source."""
    if path.suffix == ".md" and path.name != "changelog.md":
        yield from re.findall(r"`([^`\n]+)`", path.read_text(encoding="utf-8"))
    elif path.suffix == ".py":
        for node in ast.walk(modules()[path]):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


# --- The library ---------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["graphmatch", "semantic", "graphmatch.spark"])
def test_the_page_of_the_library_lists_the_public_names(package: str) -> None:
    found = import_module(package)
    section = re.search(rf"^# {package}\n(.*?)(?=^# |\Z)", API_PAGE.read_text("utf-8"), re.M | re.S)
    assert section is not None
    paths = [path.rpartition(".") for path in re.findall(r"^::: (\S+)$", section[1], re.M)]
    assert sorted(name for *_, name in paths) == found.__all__
    for module, _, name in paths:
        assert getattr(found, name) is getattr(import_module(module), name)


def test_nothing_says_that_graphmatch_is_on_pypi() -> None:
    """Commands install it by path, from a clone or a wheel."""
    by_name = re.compile(r"pip install [^\n`]*(?<![\w/.-])graphmatch(?![\w.*-])[^\n`]*")
    assert by_name.search("pip install 'graphmatch[broker]'")
    assert by_name.search("pip install graphmatch pyarrow")
    assert not by_name.search('pip install "$(echo dist/graphmatch-*.whl)[spark]"')
    wrong = [
        f"{name_of(path)}: {found[0]}"
        for path in NAMING
        for found in by_name.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not wrong


# --- Messages ------------------------------------------------------------------------------------


Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def assignments(function: Function, name: str) -> Iterator[ast.expr]:
    """Yield the values that a function assigns to a name, alone or in a tuple."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for left, right in zip(target.elts, node.value.elts, strict=True):
                    if isinstance(left, ast.Name) and left.id == name:
                        yield right


def remedies() -> Iterator[tuple[Path, str]]:
    """Yield the constant remedies in the Python sources, with "…" for variable parts."""
    for path, module in modules().items():
        for node in ast.walk(module):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else ""
                found = [k.value for k in node.keywords if k.arg == "remedy"]
                found += node.args[2:3] if name == "Problem" else []
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found = [*assignments(node, "remedy")]
            else:
                continue
            for value in found:
                if isinstance(value, ast.Constant):
                    yield path, str(value.value)
                elif isinstance(value, ast.JoinedStr):
                    parts = (getattr(part, "value", None) for part in value.values)
                    yield path, "".join(p if isinstance(p, str) else "…" for p in parts)


def test_every_message_says_what_to_do() -> None:
    """Every remedy in the Python sources is a sentence, so the page need not list its message."""
    found = list(remedies())
    assert len(found) > 250
    sentence = re.compile(r"[A-Z`'“…].* .*[.?…]", re.DOTALL)
    wrong = [f"{name_of(path)}: {text}" for path, text in found if not sentence.fullmatch(text)]
    assert not wrong, f"these do not say what to do: {wrong}"


RUST = re.compile(
    r'''//[^\n]*|'(?:\\.|[^'\\])'|r(#*)"(?P<raw>.*?)"\1|"(?P<text>(?:\\.|[^"\\])*)"''', re.DOTALL
)
"""A comment, a character or a string literal of Rust."""


def literals() -> Iterator[str]:
    """Yield the string literals of Python and Rust, with "…" for each placeholder."""
    for module in modules().values():
        for node in ast.walk(module):
            if isinstance(node, ast.JoinedStr):
                fixed = (
                    part.value if isinstance(part, ast.Constant) else "…" for part in node.values
                )
                yield "".join(map(str, fixed))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    for path in sorted((ROOT / "graphmatch/native/src").rglob("*.rs")):
        if path.stem != "tests" and not path.stem.endswith("_tests"):
            for found in RUST.finditer(path.read_text(encoding="utf-8")):
                text = found["raw"] or re.sub(r"\\(\n\s*)?", "", found["text"] or "")
                yield re.sub(r"{[^{}]*}", "…", text.replace("{{", "{").replace("}}", "}"))


def letters(text: str) -> int:
    return sum(map(str.isalpha, text))


class Sources:
    """The strings of the sources, in which a message of the page is searched."""

    def __init__(self) -> None:
        texts = set(map(plain, literals()))
        # The sources append strings that begin in the middle of a sentence.
        texts |= {f"…{text}" for text in texts if text.startswith((":", "is "))}
        self.texts, self.all = texts, "\n".join(texts)
        self.patterns = [(gapped(text), letters(text)) for text in texts if letters(text) > 5]

    def say(self, message: str) -> bool:
        """Return whether a string of the sources covers at least half of the message.

        "…" in either stands for any text in the other. Text in the place of "…" counts if it is
        itself a string of the sources, as in ``f"{what} more than {limit} deep"``.
        """
        if message in self.texts or gapped(message, lines=True).search(self.all):
            return True
        for pattern, own in self.patterns:
            if (found := pattern.fullmatch(message)) is not None:
                put_in = (part.strip() for part in found.groups())
                said = own + sum(letters(part) for part in put_in if part in self.texts)
                if 2 * said >= letters(message):
                    return True
        return False


def plain(text: str) -> str:
    return " ".join(text.replace("`", "").split())


def gapped(text: str, *, lines: bool = False) -> re.Pattern[str]:
    """Return a pattern of a whole string, or of one line, with a group for each "…"."""
    pattern = "(.*)".join(re.escape(part.strip()) for part in text.split("…"))
    return re.compile(f"^{pattern}$" if lines else pattern, re.MULTILINE)


def described() -> Iterator[tuple[int, str]]:
    """Yield the messages in the first column of the page's tables, with their lines."""
    for number, line in enumerate(ERRORS_PAGE.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("| "):
            cell = re.split(r"(?<!\\) \| ", line[2:])[0]
            for found in re.finditer(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", cell):
                yield number, plain(found[2])


def test_every_described_message_is_in_the_sources() -> None:
    sources = Sources()
    assert not sources.say("LATERAL is not SPARQL at all"), "this test takes anything"
    assert not sources.say("not an RDF syntax")
    shown = list(described())
    assert len(shown) > 80
    stale = [
        f"{name_of(ERRORS_PAGE)}:{number}: {message}"
        for number, message in shown
        if not sources.say(message)
    ]
    assert not stale, f"no longer in the sources: {stale}"


# --- Links ---------------------------------------------------------------------------------------


def links(page: Path) -> list[str]:
    text = without_code(page.read_text(encoding="utf-8"))
    return re.findall(r"\]\(([^()\s]+)\)", text)


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def slugs(page: Path) -> frozenset[str]:
    text = page.read_text(encoding="utf-8")
    return frozenset(map(slug, re.findall(r"^#+ (.+)$", text, re.MULTILINE)))


def leads_somewhere(page: Path, target: str) -> bool:
    name, _, fragment = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    there = path.is_relative_to(ROOT) and path.exists()
    return there and (not fragment or fragment in slugs(path))


def test_every_link_leads_somewhere() -> None:
    checked = [
        (page, target)
        for page in PAGES
        for target in links(page)
        if not target.startswith(("http:", "https:", "mailto:"))
    ]
    assert len(checked) > 100
    dead = [f"{name_of(page)}: {to}" for page, to in checked if not leads_somewhere(page, to)]
    assert not dead, f"these lead nowhere: {dead}"


def test_every_page_is_linked_to() -> None:
    reached = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in PAGES
        for target in links(page)
        if "://" not in target
    }
    assert [name_of(p) for p in PAGES if p not in reached and p.name != "README.md"] == []


def test_the_diagram_is_drawn_from_its_source_and_names_existing_files() -> None:
    folder, source = ROOT / "docs/img", b""
    for name in ("architecture.dot", "architecture.css"):
        source += (folder / name).read_bytes()
    drawn = (folder / "architecture.svg").read_text(encoding="utf-8")
    assert sha256(source).hexdigest() in drawn, "run `make diagram`"
    files = re.findall(r"(?:\w+/)*\w+\.(?:rs|py)\b|(?:\w+/){2,}", source.decode())
    assert len(files) > 20
    tops = ROOT, ROOT / "graphmatch/native/src"
    assert [name for name in files if not any((top / name).exists() for top in tops)] == []


# --- Examples ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A code block, the line on which it begins, and the file that it is."""

    language: str
    text: str
    line: int
    file: str | None = None


FENCE = re.compile(r"^```(\w*)(?: title=\"([^\n]+?)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[3], text.count("\n", 0, found.start()) + 1, found[2])
        for found in FENCE.finditer(text)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder with the samples, in which examples may write."""
    for name in ("data", "ontologies"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    with chdir(tmp_path):
        yield tmp_path


class FeedHandler(BaseHTTPRequestHandler):
    """Answers every request with a sample feed."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write((ROOT / "data/feeds/daily.rss").read_bytes())

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Return the address of a loopback server that stands for https://example.org/."""
    with ThreadingHTTPServer(("127.0.0.1", 0), FeedHandler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def python_blocks() -> list[object]:
    found = []
    for page in TOLD:
        several = [*blocks(page), Block("", "", 0)]
        for block, after in pairwise(several):
            if block.language == "python":
                expected = after.text if after.language == "text" else None
                id = f"{name_of(page)}:{block.line}"
                marks = [pytest.mark.long] if "graphmatch.spark" in block.text else []
                found.append(pytest.param(block.text, expected, id=id, marks=marks))
    return found


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("code", "expected"), python_blocks())
def test_python_example_runs(code: str, expected: str | None) -> None:
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(code, "<example>", "exec"), {"__name__": "example"})
    if expected is not None:
        assert_prints(expected.splitlines(), out.getvalue())


NOT_RUN = {
    "docs/reference/attributes.md json": "only shows the format",
    "README.md sh": "starts a broker: tests/graphmatch/broker",
    "docs/index.md sh": "installs packages",
    "docs/which-way-in.md sh": "installs packages, starts a broker, or measures",
    "docs/guides/broker.md sh": "needs a running broker: tests/graphmatch/broker",
    "docs/guides/broker.md py": "needs a running broker: tests/graphmatch/broker/test_client.py",
    "docs/guides/operator.md sh": "needs root; backups: tests/graphmatch/broker/test_deploy.py",
    "docs/guides/operator.md yaml": "needs Prometheus",
    "docs/guides/feeds.md sh": "installs packages",
    "docs/guides/feeds.md crontab": "needs cron; the command itself runs above it",
    "docs/guides/operators.md sh": "installs packages",
    "docs/guides/operators.md py": "needs a remote service",
    "docs/guides/page.md sh": "needs a browser: tests/graphmatch/broker/test_page.py",
    "docs/guides/spark.md sh": "installs packages, or needs a cluster",
    "docs/guides/spark.md py": "needs Kafka, Delta, Iceberg, GraphFrames or a cluster",
}
"""The blocks that are neither run nor output: page and language, with the reason."""


def test_each_example_that_is_not_run_has_a_reason() -> None:
    """Python among them is compiled."""
    found = {
        f"{name_of(page)} {block.language}": block
        for page in TOLD
        for block in blocks(page)
        if block.file is None and block.language not in ("python", "console", "text")
    }
    assert found.keys() == NOT_RUN.keys()
    for page in TOLD:
        for block in blocks(page):
            if block.language == "py":
                compile(block.text, f"{name_of(page)}:{block.line}", "exec")


def consoles() -> list[object]:
    return [
        pytest.param(page, id=name_of(page), marks=[pytest.mark.long] * (page.stem == "spark"))
        for page in TOLD
        if any(block.language == "console" for block in blocks(page))
    ]


@pytest.mark.parametrize("page", consoles())
def test_commands_print_the_shown_output(page: Path, folder: Path, site: str) -> None:
    for block in blocks(page):
        if block.file is not None:
            (folder / block.file).parent.mkdir(exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command, expected in steps(block.text):
                printed = output(command.replace("https://example.org/feed", f"{site}feed"), folder)
                assert expected or not printed, f"{command} prints:\n{printed}"
                assert_prints(expected, printed)


def steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of a console block, each with its expected output."""
    command: list[str] = []
    expected: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield "\n".join(command), expected
            command, expected = [line[2:]], []
        elif line.startswith("> "):
            command.append(line[2:])
        else:
            expected.append(line)
    yield "\n".join(command), expected


STATUS = re.compile(r"; echo \"exit status \$\?\"$")


def output(command: str, folder: Path) -> str:
    """Run a command of the documentation, and return both of its streams."""
    command = command.replace("make demo", ".venv/bin/graphmatch demo")
    if command == "make test":
        return ""
    shows_status = STATUS.search(command) is not None
    bare, *piped = STATUS.sub("", command).split(" | ", 1)
    if bare.startswith(".venv/bin/graphmatch watch "):
        bare += " --allow 127.0.0.0/8"
    if not bare.startswith(".venv/bin/graphmatch "):
        return shell(command, folder)
    assert not re.search(r"[|<>$;&]", bare), f"{bare} is run without a shell"
    result = CliRunner().invoke(app, shlex.split(bare)[1:], prog_name="graphmatch")
    if shows_status:
        return f"{result.output}\nexit status {result.exit_code}\n"
    assert result.exit_code == 0, result.output
    return result.stderr + shell(piped[0], folder, result.stdout) if piped else result.output


def shell(command: str, folder: Path, input: str = "") -> str:
    for tool in ("curl", "jq"):
        if f"{tool} " in command and shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing: install Debian's package {tool}")
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        input=input,
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def assert_prints(expected: list[str], printed: str) -> None:
    """Assert that the printed text contains the lines, in order.

    "…" stands for any lines between two; standard error may appear anywhere.
    """
    lines = [normal(line) for line in printed.splitlines()]
    place, skipping = 0, True
    for line in map(normal, filter(str.strip, expected)):
        if line == "…":
            skipping = True
            continue
        while place < len(lines) and not lines[place]:
            place += 1
        found = lines.index(line, place) if line in lines[place:] else None
        assert found is not None, f"not printed (any more): {line}\n\n{printed}"
        assert skipping or found == place, f"not printed right after the line before: {line}"
        place, skipping = found + 1, False


def normal(line: str) -> str:
    return re.sub(r"\d+\.\d\d s\b", "… s", line.rstrip())


# --- Decisions and dependencies ------------------------------------------------------------------


MAX_WORDS = 600
"""Of a page of decisions."""


def test_pages_of_decisions_are_short() -> None:
    words = {name_of(page): len(page.read_text(encoding="utf-8").split()) for page in DECISIONS}
    assert len(words) > 20
    assert {name: n for name, n in words.items() if n > MAX_WORDS} == {}


def dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    return [*project["dependencies"], *(each for several in extras for each in several)]


def reasons() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in REASONS)


def test_every_dependency_has_its_reason() -> None:
    page = reasons().replace("` | `", "` `")
    names = [re.match(r"[\w-]+", dependency) for dependency in dependencies()]
    missing = [
        dependency
        for dependency, name in zip(dependencies(), names, strict=True)
        if name is None or f"`{name[0]}` `{dependency.removeprefix(name[0])}`" not in page
    ]
    assert not missing, f"not in docs/decisions/dependencies*.md: {missing}"


def test_every_crate_has_its_reason() -> None:
    manifest = (ROOT / "graphmatch/native/Cargo.toml").read_text(encoding="utf-8")
    page = reasons()
    missing = [
        name
        for name, crate in tomllib.loads(manifest)["dependencies"].items()
        for version in [crate if isinstance(crate, str) else crate["version"]]
        if f"| `{name}` | `{version}` |" not in page
    ]
    assert not missing, f"not in docs/decisions/dependencies*.md: {missing}"
