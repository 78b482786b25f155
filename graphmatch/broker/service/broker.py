"""The broker without its network: who subscribes to what, what was published, tokens and tickets.

The life of a subscription: it is taken in with a *ticket*, which is shown once and proves who may
change it (so nobody needs an account), and a validity, after which it ends. Before that its sink is
told; it may be renewed, paused and changed. A publication that is acknowledged is in the log, and
is matched by those subscriptions that were committed before it.

Source: the service of Zeng and others, "Sub-Order" (the seeds' paper 3), section 5.1: subscribe,
unsubscribe, renew, a ticket, a validity of a day by default, anonymous publishing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmatch.broker.app.supervisor import Supervisor
from graphmatch.broker.db.dead_letters import dead_letter_writer
from graphmatch.broker.db.store import Store
from graphmatch.broker.models.limits import BrokerLimits
from graphmatch.broker.service.accounts import Accounts
from graphmatch.broker.service.publications import Publications
from graphmatch.broker.service.subscriptions import Subscriptions
from graphmatch.engine import Engine
from semantic.clock import Clock, utc_now
from semantic.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    pass

ENGINE_LIMITS = replace(DEFAULT_LIMITS, publication_seconds=1.0)


class Broker:
    """What clients may do; each call is committed when it returns.

    Parameters
    ----------
    store
        Where all is.
    engine
        Knows the ontology; queries are checked by it, and `graphmatch.broker.service.match_worker` has the
        subscriptions in it.
    clock
        The time.
    limits
        What one may ask for.

    Examples
    --------
    >>> import asyncio
    >>> from tempfile import TemporaryDirectory
    >>> async def main(store):
    ...     broker = Broker(store, Engine())
    ...     made = await broker.subscriptions.subscribe({"query": "ASK { ?s a <urn:C> }"}, SubscriptionSettings())
    ...     await broker.publications.publish(b"<urn:a> a <urn:C> .", format="ttl", name="urn:p")
    ...     return made.id[:4], len(made.ticket)
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/broker.db")
    ...     print(asyncio.run(main(store)))
    ...     store.close()
    ('sub_', 47)
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        clock: Clock = utc_now,
        limits: BrokerLimits | None = None,
    ) -> None:
        self.store, self.engine, self.clock = store, engine, clock
        self.limits = limits or BrokerLimits()
        self.supervisor = Supervisor()
        self.supervisor.on_dead_letter = dead_letter_writer(store, clock)
        self.on_commit: Callable[[], None] = lambda: None
        """Called after a publication or a change of a subscription was committed."""
        self.subscriptions = Subscriptions(self)
        self.publications = Publications(self)
        self.accounts = Accounts(self)
