"""The documentation and the code describe the same things.

- Every command and option is in docs/reference/command.md.
- Every command and option named in pages, sources and deployment files exists.
- Every problem message is in docs/reference/errors.md, and every message there is in the sources.
- docs/reference/api.md lists the public names of the packages.
- Links have targets.
- Examples run: each ``python`` block and each command of a ``console`` block prints the lines
  below it. A line with "…" stands for any number of lines, seconds for any seconds. A ``py`` block
  needs missing software, such as Kafka, so it is only compiled.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from graphmatch.cli import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TOLD = [
    ROOT / "README.md",
    ROOT / "docs/architecture.md",
    *sorted((ROOT / "docs/guides").glob("*.md")),
]
"""The pages whose examples run."""

COMMAND_PAGE = ROOT / "docs/reference/command.md"
API_PAGE = ROOT / "docs/reference/api.md"
ERRORS_PAGE = ROOT / "docs/reference/errors.md"
REASONS = ROOT / "docs/decisions/dependencies.md"
PACKAGES = ("semantic", "graphmatch")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def modules() -> dict[Path, ast.Module]:
    """Return the parsed Python sources."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


# --- Commands and options ------------------------------------------------------------------------


def commands() -> dict[str, Any]:
    """Return the commands as typer builds them, with click or its own copy of click."""
    group: Any = typer.main.get_command(app)
    names = group.list_commands(None)
    return dict(_flat({name: group.get_command(None, name) for name in names}))


def _flat(found: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in found.items():
        if hasattr(command, "commands"):
            yield from _flat(command.commands, f"{above}{name} ")
        else:
            yield above + name, command


def choices(command: Any, parameter: str) -> tuple[str, ...]:
    hint = get_type_hints(command.callback)[parameter]
    return get_args(hint) if get_origin(hint) is Literal else ()


def section(name: str) -> str:
    """Return a command's section of docs/reference/command.md."""
    text = COMMAND_PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^## `graphmatch {name}`\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"{name_of(COMMAND_PAGE)} has no section “## `graphmatch {name}`”"
    return found[1]


def not_described(command: Any, parameter: Any, text: str) -> Iterator[str]:
    """Yield the parts of an argument or option that a section lacks."""
    if parameter.param_type_name == "argument":
        if f"| `{parameter.name.upper()}" not in text:
            yield parameter.name.upper()
        return
    for option in (*parameter.opts, *parameter.secondary_opts):
        if not re.search(rf"`{option}[` ]", text):
            yield option
    for choice in choices(command, parameter.name):
        if f"`{choice}`" not in text:
            yield f"{parameter.opts[0]} {choice}"
    default = parameter.default
    told = not isinstance(default, str | int) or isinstance(default, bool)
    if not told and f"`{default}`" not in text:
        yield f"{parameter.opts[0]}: its default {default}"


def test_every_parameter_is_described() -> None:
    missing = [
        f"{name}: {what}"
        for name, command in commands().items()
        for parameter in command.params
        if parameter.name != "help"
        for what in not_described(command, parameter, section(name))
    ]
    assert not missing, f"not in {name_of(COMMAND_PAGE)}: {missing}"


def test_no_command_is_described_that_is_not_there() -> None:
    text = COMMAND_PAGE.read_text(encoding="utf-8")
    described = re.findall(r"^## `graphmatch ([\w ]+)`", text, re.MULTILINE)
    assert sorted(described) == sorted(commands())


def test_no_option_is_described_that_is_not_there() -> None:
    for name, command in commands().items():
        there = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
        rows = re.findall(r"^\| (`-.*?) \|", section(name), re.MULTILINE)
        described = {option for row in rows for option in re.findall(r"`(--?[\w-]+)", row)}
        assert described <= there


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


@dataclass(frozen=True)
class Sink:
    """A function with a parameter that becomes the `what` of a problem."""

    name: str
    parameter: str
    position: int


Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Call: TypeAlias = tuple[ast.Call, Function, str | None]
"""A call, its enclosing function, and that function's class."""


class Messages:
    """The messages in the sources, with "…" for variable parts.

    A message is the first argument of ``Problem(…)``, or of a function that passes a parameter on
    to it. A name stands for all values that its function assigns to it.
    """

    def __init__(self) -> None:
        self.sinks = {
            Sink("Problem", "what", 0),
            Sink("UnitError", "what", 0),  # The same holds here.
            Sink("LexicalError", "message", 0),  # An attribute passes it to a Problem.
            Sink("TermError", "what", 0),  # The same holds here.
        }
        self.calls: dict[str, list[Call]] = {}
        for module in modules().values():
            for name, call in calls_of(module):
                self.calls.setdefault(name, []).append(call)
        while True:
            known = len(self.sinks)
            self.found = set(self._collect())
            if len(self.sinks) == known:
                break

    def _collect(self) -> Iterator[str]:
        for sink in list(self.sinks):
            for call, function, class_ in self.calls.get(sink.name, ()):
                named = [k.value for k in call.keywords if k.arg == sink.parameter]
                for value in named or call.args[sink.position : sink.position + 1]:
                    yield from self._texts(value, function, class_)

    def _texts(self, value: ast.expr, function: Function, class_: str | None) -> Iterator[str]:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.value
        elif isinstance(value, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in value.values
            )
            for part in value.values:  # A parameter inside is a message, too.
                if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
                    self._note_parameter(part.value.id, function, class_)
        elif isinstance(value, ast.IfExp):
            yield from self._texts(value.body, function, class_)
            yield from self._texts(value.orelse, function, class_)
        elif isinstance(value, ast.Name):
            self._note_parameter(value.id, function, class_)
            for assigned in assignments(function, value.id):
                yield from self._texts(assigned, function, class_)

    def _note_parameter(self, name: str, function: Function, class_: str | None) -> None:
        names = [a.arg for a in function.args.args if a.arg != "self"]
        if name == "what" and name in names:
            called = class_ if function.name == "__init__" and class_ else function.name
            self.sinks.add(Sink(called, name, names.index(name)))


@cache
def messages() -> frozenset[str]:
    return frozenset(Messages().found)


def calls_of(module: ast.Module) -> Iterator[tuple[str, Call]]:
    """Yield the calls in a module's functions, with the name of the called function."""
    nodes = list(ast.walk(module))
    methods = {
        child: node.name for node in nodes if isinstance(node, ast.ClassDef) for child in node.body
    }
    for function in nodes:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for call in ast.walk(function):
                if isinstance(call, ast.Call):
                    to = call.func
                    name = to.attr if isinstance(to, ast.Attribute) else getattr(to, "id", "")
                    yield name, (call, function, methods.get(function))


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


def test_every_message_is_described() -> None:
    """One line of the page contains all literal parts of a message, in order."""
    said = {plain(text) for text in messages()} - {"…"}
    samples = {
        "a subscription with this id already exists",  # A literal passed through a name
        "there is text after the document's end, at …",  # Passed through a method
        "the elements are nested",  # Passed through a function that adds to it
        "not supported by this algorithm: …",  # In a constructor
    }
    assert samples <= said, "this test finds no longer all messages"
    page = ERRORS_PAGE.read_text(encoding="utf-8").replace("`", "")
    missing = [message for message in sorted(said) if not re.search(pattern(message), page)]
    assert not missing, f"not in {name_of(ERRORS_PAGE)}: {missing}"


def pattern(message: str) -> str:
    parts = [re.escape(part.strip()) for part in message.split("…") if part.strip()]
    return "[^\n|]*?".join(parts)


OF_LIBRARIES = {"Missing argument …", "Missing option …", "Invalid value …"}
"""Messages of typer, on the page because users see them."""

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
        texts = {plain(text) for text in (*literals(), *messages())}
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
    assert len(shown) > 400
    stale = [
        f"{name_of(ERRORS_PAGE)}:{number}: {message}"
        for number, message in shown
        if message not in OF_LIBRARIES and not sources.say(message)
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


# --- Examples ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A code block, and the line on which it begins."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder with the samples, in which examples may write."""
    for name in ("data", "ontologies"):
        (tmp_path / name).symlink_to(ROOT / name)
    with chdir(tmp_path):
        yield tmp_path


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


def test_examples_that_are_not_run_compile() -> None:
    found = [(page, block) for page in TOLD for block in blocks(page) if block.language == "py"]
    assert found
    for page, block in found:
        compile(block.text, f"{name_of(page)}:{block.line}", "exec")


def consoles() -> list[object]:
    return [
        pytest.param(page, id=name_of(page))
        for page in TOLD
        if any(block.language == "console" for block in blocks(page))
    ]


@pytest.mark.parametrize("page", consoles())
def test_commands_print_the_shown_output(page: Path, folder: Path) -> None:
    for block in blocks(page):
        if block.language == "console":
            for command, expected in steps(block.text):
                assert_prints(expected, output(command, folder))


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
    if not bare.startswith(".venv/bin/graphmatch "):
        return shell(command, folder)
    assert not re.search(r"[|<>$;&]", bare), f"{bare} is run without a shell"
    result = CliRunner().invoke(app, shlex.split(bare)[1:], prog_name="graphmatch")
    if shows_status:
        return f"{result.output}\nexit status {result.exit_code}\n"
    assert result.exit_code == 0, result.output
    return result.stderr + shell(piped[0], folder, result.stdout) if piped else result.output


def shell(command: str, folder: Path, input: str = "") -> str:
    if "jq " in command and shutil.which("jq") is None:
        pytest.skip("jq is missing: install Debian's package jq")
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


# --- Dependencies --------------------------------------------------------------------------------


def dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    return [*project["dependencies"], *(each for several in extras for each in several)]


def test_every_dependency_has_its_reason() -> None:
    page = REASONS.read_text(encoding="utf-8").replace("` | `", "` `")
    names = [re.match(r"[\w-]+", dependency) for dependency in dependencies()]
    missing = [
        dependency
        for dependency, name in zip(dependencies(), names, strict=True)
        if name is None or f"`{name[0]}` `{dependency.removeprefix(name[0])}`" not in page
    ]
    assert not missing, f"not in {name_of(REASONS)}: {missing}"


def test_every_crate_has_its_reason() -> None:
    manifest = (ROOT / "graphmatch/native/Cargo.toml").read_text(encoding="utf-8")
    page = REASONS.read_text(encoding="utf-8")
    missing = [
        name
        for name, crate in tomllib.loads(manifest)["dependencies"].items()
        for version in [crate if isinstance(crate, str) else crate["version"]]
        if f"| `{name}` | `{version}` |" not in page
    ]
    assert not missing, f"not in {name_of(REASONS)}: {missing}"
