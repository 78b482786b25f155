"""``graphmatch spark filter``: publications in bulk to a folder of Parquet.

The folder has ``matches`` (publication, subscription, solution, graph), ``refused`` (source, line,
column, item, what, remedy) and ``counts.json``, which is written last.
"""

from __future__ import annotations

import json as json_
import shutil
import time
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING

from graphmatch.command.console import plural
from graphmatch.command.filter import nothing_to_match
from graphmatch.command.options import Knowing, Subscribing, Verbosity
from graphmatch.command.session import DONE, REFUSED, Session
from graphmatch.command.spark import Bulk, Running, settings
from graphmatch.engine import Engine
from semantic.clock import utc_now
from semantic.errors import InputError, Place, Problem, Severity
from semantic.reading import Cut
from semantic.tables import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from graphmatch.spark.shipping import Shipped

MATCHES, REFUSED_, COUNTS = "matches", "refused", "counts.json"
"""What there is in an output."""
_SHOWN = 20
"""So many of what was refused are shown; all are written."""


def named(columns: str | None) -> tuple[str, str, str, str]:
    """Return what columns are called.

    Raises
    ------
    InputError
        When one is named that is none.

    Examples
    --------
    >>> named("publication=graph,object=o")
    ('graph', 'subject', 'predicate', 'o')
    """
    called = dict(zip(COLUMNS, COLUMNS, strict=True))
    for pair in columns.split(",") if columns else ():
        name, equals, column = pair.partition("=")
        if name.strip() not in called or not equals or not column.strip():
            what = f"{pair!r} does not say what a column is called"
            remedy = f"Write NAME=COLUMN; the names are {', '.join(COLUMNS)}."
            raise InputError(Problem(what, Place("--columns"), remedy))
        called[name.strip()] = column.strip()
    publication, subject, predicate, object_ = called.values()
    return publication, subject, predicate, object_


def run(
    bulk: Bulk,
    subscribing: Subscribing,
    knowing: Knowing,
    running: Running,
    verbosity: Verbosity,
    *,
    json: bool,
) -> int:
    """Filter, write, sum up; return the exit status."""
    from graphmatch.spark.shipping import ship
    from graphmatch.spark.start import session as started

    with Session(verbosity) as session:
        _check(bulk)
        conf = settings(running.conf or ())
        engine = session.engine(knowing)
        session.take_in(engine, subscribing)
        if not len(engine):
            raise nothing_to_match()
        with session.waiting("Starting Spark"):
            spark = started(master=running.master, settings=conf)
        try:
            shipped = ship(spark, engine, knowing.now or utc_now())
            return _filtered(session, bulk, engine, spark, shipped, json=json)
        finally:
            spark.stop()


def _filtered(
    session: Session,
    bulk: Bulk,
    engine: Engine,
    spark: SparkSession,
    shipped: Shipped,
    *,
    json: bool,
) -> int:
    from graphmatch.spark.batch import match_files
    from graphmatch.spark.units import How

    columns = named(bulk.columns)
    how = How(columns, Cut(bulk.cut), bulk.format, bulk.base)
    started = time.perf_counter()
    before = len(session.problems)
    matched = match_files(
        bulk.publications, shipped, spark=spark, how=how, on_problem=session.report
    )
    unread = session.problems[before:]
    output = bulk.output
    if output.exists():
        shutil.rmtree(output)
    with session.waiting("Matching"):
        matched.write(output, unread)
    counts = matched.counts
    refusals = list(islice(matched.told(), _SHOWN + 1))
    for problem in refusals[:_SHOWN]:
        session.report(problem)
    if len(refusals) > _SHOWN:
        session.note(f"… and more, in {output / REFUSED_}")
    matched.close()
    seconds = time.perf_counter() - started
    refused = counts.refused + sum(p.severity is Severity.REFUSED for p in unread)
    summary = {**asdict(counts), "refused": refused, "subscriptions": len(engine)}
    (output / COUNTS).write_text(json_.dumps(summary) + "\n", encoding="utf-8")
    if json:
        session.out.write_json({**summary, "output": str(output), "seconds": round(seconds, 3)})
    session.show_warnings()
    session.note(
        f"{plural(counts.publications, 'publication')}, {plural(len(engine), 'subscription')}: "
        f"{plural(counts.matches, 'match', 'matches')}, {refused} refused, {seconds:.2f} s, "
        f"in {output}"
    )
    return REFUSED if refused or session.refused else DONE


def _check(bulk: Bulk) -> None:
    """Check the options, and that the output may be written.

    Raises
    ------
    InputError
        When not.
    """
    bulk.check("parquet")
    named(bulk.columns)
    output = bulk.output
    is_ours = (output / COUNTS).is_file() and (output / MATCHES).is_dir()
    if output.exists() and not (bulk.overwrite and is_ours):
        what = "is there already"
        remedy = "Name a folder that is not there yet, or add --overwrite."
        if bulk.overwrite:
            what, remedy = "is no output of this command", "Name another folder."
        raise InputError(Problem(what, Place(str(output)), remedy))
