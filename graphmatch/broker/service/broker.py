"""The broker without its network interface: subscriptions, publications, owners and tokens.

A new subscription has a *ticket*, which the broker returns once. The ticket proves that a client
may change the subscription, so no account is needed. A subscription ends after its validity. The
broker announces the end to its sink. The client can renew, pause and change the subscription.
An acknowledged publication is in the log. It is matched with the subscriptions that were committed
before it.

Source: the service of Zeng and others, "Sub-Order" (the seeds' paper 3), section 5.1: subscribe,
unsubscribe, renew, a ticket, a validity, anonymous publishing. The paper's validity is one day by
default; here `BrokerLimits.validity` is configurable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from graphmatch.broker.app.supervisor import Supervisor
from graphmatch.broker.db.dead_letters import dead_letter_writer
from graphmatch.broker.db.store import Store
from graphmatch.broker.models.limits import BrokerLimits
from graphmatch.broker.outbox.safe_http import Network
from graphmatch.broker.service.accounts import Accounts
from graphmatch.broker.service.publications import Publications
from graphmatch.broker.service.subscriptions import Subscriptions
from graphmatch.engine import Engine
from semantic.clock import Clock, utc_now
from semantic.limits import DEFAULT_LIMITS

ENGINE_LIMITS = replace(DEFAULT_LIMITS, publication_seconds=1.0)


class Broker:
    """The operations of clients. Each one is committed when it returns.

    Parameters
    ----------
    store
        The database.
    engine
        Has the ontology. `graphmatch.broker.service.match_worker` adds the subscriptions to it.
    clock
        Returns the current time.
    limits
        Limits of requests, subscriptions, storage and deliveries.

    Attributes
    ----------
    allowed_networks
        Networks that sinks may be in although they are not public.

    Examples
    --------
    >>> import asyncio
    >>> from tempfile import TemporaryDirectory
    >>> from graphmatch.broker.models.subscription_settings import SubscriptionSettings
    >>> async def main(store):
    ...     broker = Broker(store, Engine())
    ...     query = {"query": "ASK { ?s a <urn:C> }"}
    ...     created = await broker.subscriptions.subscribe(query, SubscriptionSettings())
    ...     await broker.publications.publish(b"<urn:a> a <urn:C> .", format="ttl", name="urn:p")
    ...     return created.id[:4], len(created.ticket)
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
        """Called after the commit of a publication or of a change of a subscription."""
        self.allowed_networks: Sequence[Network] = ()
        self.subscriptions = Subscriptions(self)
        self.publications = Publications(self)
        self.accounts = Accounts(self)
