"""The files of docs/deploy: commands start outside Docker, and checks, metrics and backups work.

The tests replace only names of hosts, ports and folders.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen

import pytest
import typer
import yaml

from graphmatch.broker.app.supervisor import Supervisor
from graphmatch.broker.db.store import Store
from graphmatch.broker.db.tables import matches
from graphmatch.broker.metrics import Metrics
from graphmatch.broker.models.limits import BrokerLimits
from graphmatch.broker.models.subscription_settings import SubscriptionSettings
from graphmatch.broker.service.broker import Broker
from graphmatch.broker.service.match_worker import MatchWorker
from graphmatch.cli import app
from graphmatch.command.config import read_limits
from graphmatch.engine import Engine
from semantic.clock import utc_now
from tests.graphmatch.broker.harness import Cluster, postgresql_folder
from tests.graphmatch.broker.live_broker import ALL
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
    ports = [str(free_port()), str(free_port())]
    service, worker = (
        placed(services()[name]["command"], **{store: f"--store={database}", "8321": port})
        for name, port in zip(("broker", "worker"), ports, strict=True)
    )
    assert service != services()["broker"]["command"]
    with running(service) as wait, running(worker) as wait_worker:
        wait(lambda _: is_ready(int(ports[0])))
        wait_worker(lambda _: is_ready(int(ports[1])))


def test_all_processes_of_the_compose_file_load_one_ontology() -> None:
    loaded = ontologies("broker")
    assert loaded == ontologies("worker")
    assert loaded
    assert all(Path(path).is_file() for path in loaded)


def test_the_unit_is_valid(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is missing")
    text = (DEPLOY / "graphmatch.service").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=(\S+) serve --config \S+$", text, re.MULTILINE)
    unit = tmp_path / "graphmatch.service"
    unit.write_text(text.replace(command, sys.executable), encoding="utf-8")
    ran = subprocess.run(
        [program, "verify", str(unit)], check=False, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")


# -- The configuration --------------------------------------------------------------------------


def parsed(*arguments: str) -> dict[str, Any]:
    """Return the parameters of ``graphmatch serve`` with options."""
    group: Any = typer.main.get_command(app)
    command = group.get_command(None, "serve")
    parent = typer.Context(group)
    parameters = dict(command.make_context("serve", list(arguments), parent=parent).params)
    del parameters["config"]
    return parameters


def test_the_example_of_a_configuration_has_the_defaults() -> None:
    defaults = parsed()
    example = parsed("--config", str(DEPLOY / "broker.toml"))
    assert example.pop("store") == str(DEPLOY / defaults.pop("store"))
    assert example == defaults
    assert read_limits(DEPLOY / "broker.toml") == BrokerLimits()
    table = tomllib.loads((DEPLOY / "broker.toml").read_text(encoding="utf-8"))
    names = {field.name.replace("_", "-") for field in fields(BrokerLimits)}
    assert table["limits"].keys() == names


def test_the_examples_in_comments_of_the_configuration_are_valid(tmp_path: Path) -> None:
    text = (DEPLOY / "broker.toml").read_text(encoding="utf-8")
    text, count = re.subn(r"^# ([a-z-]+ = )", r"\1", text, flags=re.MULTILINE)
    file = tmp_path / "broker.toml"
    file.write_text(text, encoding="utf-8")
    parameters = parsed("--config", str(file))
    assert count > 8
    assert [str(one) for one in parameters["files"]] == [str(tmp_path / "ontologies/news.ttl")]
    assert parameters["kafka"] == "kafka-1:9092,kafka-2:9092"
    assert parameters["url"] == "https://broker.example.org"
    assert parameters["smtp"].startswith("smtp://broker@")


# -- Metrics ------------------------------------------------------------------------------------


def metric_names(tmp_path: Path) -> set[str]:
    """Return the names of all metrics, as Prometheus stores them."""
    store = Store(str(tmp_path / "broker.db"))
    metrics = Metrics(store, utc_now)
    metrics.registry.register(Supervisor())
    ends = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
    names = {
        family.name + end
        for family in metrics.registry.collect()
        for end in ends.get(family.type, ("",))
    }
    store.close()
    return names


def test_dashboard_and_alerts_use_metrics_that_exist(tmp_path: Path) -> None:
    known = metric_names(tmp_path)
    board = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    panels = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    groups = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    alerts = [rule["expr"] for group in groups for rule in group["rules"]]
    for expressions in (panels, alerts):
        used = set(re.findall(r"\b(?:graphmatch|process)_\w+", " ".join(expressions)))
        assert used
        assert used <= known, used - known
    assert "process_resident_memory_bytes" in known


def test_the_guide_explains_each_alert() -> None:
    groups = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    names = {rule["alert"] for group in groups for rule in group["rules"]}
    guide = (ROOT / "docs/guides/operator.md").read_text(encoding="utf-8")
    guide = guide.partition("## Incidents")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", guide, re.MULTILINE)) == names


# -- Backups ------------------------------------------------------------------------------------


def fill(store: Store) -> None:
    async def main() -> None:
        broker = Broker(store, Engine())
        await broker.subscriptions.subscribe({"query": ALL}, SubscriptionSettings())
        await broker.publications.publish(b"<urn:a> a <urn:C> .", format="ttl")

    asyncio.run(main())


def check_restored(url: str) -> None:
    """Match the publication of a restored store."""
    store = Store(url)
    matcher = MatchWorker(Broker(store, Engine()))
    matcher.load()
    assert matcher.step() == 1
    assert store.read_now(lambda db: len(db.execute(matches.select()).all())) == 1
    store.close()


def test_a_backup_of_sqlite_is_restored(tmp_path: Path) -> None:
    """The store is in use, and its log is not yet in the file."""
    store = Store(str(tmp_path / "broker.db"))
    fill(store)
    with (
        closing(sqlite3.connect(tmp_path / "broker.db")) as source,
        closing(sqlite3.connect(tmp_path / "saved.db")) as target,
    ):
        source.backup(target)  # `sqlite3 broker.db ".backup saved.db"` does the same.
    store.close()
    check_restored(str(tmp_path / "saved.db"))


def test_a_backup_of_postgresql_is_restored(tmp_path: Path, cluster: Cluster) -> None:
    source, target = cluster(), cluster()
    store = Store(source)
    fill(store)
    programs, saved = postgresql_folder(), str(tmp_path / "saved.dump")
    assert programs is not None
    subprocess.run([programs / "pg_dump", "-Fc", "-f", saved, source], check=True)
    store.close()
    subprocess.run([programs / "pg_restore", "--no-owner", "-d", target, saved], check=True)
    check_restored(target)


# -- The image ----------------------------------------------------------------------------------


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
