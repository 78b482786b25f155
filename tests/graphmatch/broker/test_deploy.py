"""The command lines of docs/deploy start outside Docker, and the health checks work.

The tests replace only names of hosts, ports and folders.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen

import yaml

from tests.waiting import wait

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "docs/deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def of_image(instruction: str) -> list[list[str]]:
    """Return the JSON arguments of each such instruction in the Dockerfile."""
    found = re.findall(rf"^ *{instruction} (\[.*\])$", DOCKERFILE, re.MULTILINE)
    return [json.loads(arguments) for arguments in found]


def services() -> dict[str, Any]:
    """Return the services of the compose file, with the defaults of its variables."""
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
    return dict(yaml.safe_load(text)["services"])


def ontologies(service: str) -> list[str]:
    """Return the ontology of a service, as local files."""
    mounts = dict(volume.split(":")[1::-1] for volume in services()[service]["volumes"])
    arguments = (argument.partition("=") for argument in services()[service]["command"])
    inside = [value for name, _, value in arguments if name in ("--ontology", "-o")]
    return [str(DEPLOY / mounts[str(Path(path).parent)] / Path(path).name) for path in inside]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def placed(arguments: Sequence[str], **places: str) -> list[str]:
    """Return arguments with local hosts, ports and folders."""
    places = {"/ontologies/": f"{ROOT}/ontologies/", "kafka:9092": "127.0.0.1:9"} | places
    made = []
    for argument in arguments:
        for name, place in places.items():
            argument = argument.replace(name, place)
        made.append(argument)
    return made


@contextmanager
def running(arguments: Sequence[str]) -> Iterator[Callable[[Callable[[str], bool]], None]]:
    """Run the command; yield a function that waits for a condition on its output."""
    command = [sys.executable, "-c", "from graphmatch.cli import main; main()", *arguments]
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        reading = Thread(target=lines.extend, args=(process.stdout,), daemon=True)
        reading.start()

        def wait_for(holds: Callable[[str], bool]) -> None:
            wait(lambda: holds("".join(lines)) or process.poll() is not None)
            assert process.poll() is None, f"{arguments} has ended: {''.join(lines)}"

        try:
            yield wait_for
        finally:
            process.kill()
            reading.join()


def is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:  # The server is not there yet, or busy.
        return False


def test_the_command_of_the_image_starts_and_passes_its_health_check(tmp_path: Path) -> None:
    (entry,), (health, arguments) = of_image("ENTRYPOINT"), of_image("CMD")
    assert entry == ["graphmatch"]
    assert health[0] == "python"
    places = {"/data/": f"{tmp_path}/", "8321": str(free_port())}
    check = [sys.executable, *placed(health[1:], **places)]
    assert subprocess.run(check, check=False, capture_output=True).returncode == 1
    with running(placed(arguments, **places)) as wait:
        wait(lambda _: is_ready(int(places["8321"])))
        subprocess.run(check, check=True)
    assert (tmp_path / "broker.db").is_file()


def test_the_commands_of_the_compose_file_start(database: str) -> None:
    """Both start at the same time on one empty database."""
    store = next(one for one in services()["broker"]["command"] if one.startswith("--store="))
    places = {store: f"--store={database}", "8321": str(free_port())}
    service, matcher = (
        placed(services()[name]["command"], **places) for name in ("broker", "matcher")
    )
    assert service != services()["broker"]["command"]
    with running(service) as wait, running(matcher) as wait_matcher:
        wait_matcher(lambda said: re.search("^matching$", said, re.MULTILINE) is not None)
        wait(lambda _: is_ready(int(places["8321"])))


def test_all_processes_of_the_compose_file_load_one_ontology() -> None:
    loaded = ontologies("broker")
    assert loaded == ontologies("matcher")
    assert loaded
    assert all(Path(path).is_file() for path in loaded)


def test_the_image_installs_its_wheel_with_known_extras(tmp_path: Path) -> None:
    (argument,) = re.findall(r"pip install .*(\"\$\(echo .*\)\[.*\]\")", DOCKERFILE)
    wheel = tmp_path / "graphmatch-1.0-cp311-abi3-linux_x86_64.whl"
    wheel.touch()
    script = f"printf %s {argument.replace('/wheels', str(tmp_path))}"
    shown = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True).stdout
    file, _, extras = shown.removesuffix("]").rpartition("[")
    assert file == str(wheel)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"broker", "kafka", "postgresql"} == set(extras.split(","))
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
