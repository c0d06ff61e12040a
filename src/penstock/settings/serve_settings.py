"""``[serve]``: how `penstock serve` listens, runs and watches.

[serve]
host = "0.0.0.0"
port = 8600
allowed_hosts = ["penstock.example.com"]
trusted_proxy = "10.0.0.0/8"
slots = 4
catchup = "latest"
kafka_servers = ["kafka-1:9092"]
postgres_dsn = "host=db dbname=events user=penstock"
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Settings of `penstock serve`. Lengths of time are in seconds.

    Attributes:
        host: The address on which it listens.
        port: The port; 0 for any that is free.
        allowed_hosts: Names that a request may have in its ``Host`` header, besides those of the
            loopback address and ``host``.
        trusted_proxy: The address or network of a proxy that authenticates requests; True trusts
            whoever connects, False nobody.
        slots: The number of runs at once.
        backfill_share: The part of the slots that backfills may take, above 0 and up to 1.
        share: Whether `penstock run` of the project on this machine may use its Spark.
        poll: How long it waits between two looks at the lakes.
        file_poll: How long it waits between two looks at files.
        drain_timeout: How long runs may go on after SIGTERM; None until they end.
        idle_timeout: How long Spark stays without use; None always.
        max_body: The size of a request's body at most, in bytes.
        catchup: The mode of models whose header has no ``catchup``; None to choose by the model.
        max_catchup: The number of missed times that fire of a schedule at most.
        catchup_window: Missed times older than this do not fire; None for any age.
        kafka_servers: Addresses of a Kafka cluster, as ``host:port``.
        postgres_dsn: The connection of ``on postgres``, a secret; None for no connection.
    """

    host: str
    port: int
    trusted_proxy: str | bool
    slots: int
    backfill_share: float
    share: bool
    poll: float
    file_poll: float
    max_body: int
    drain_timeout: float | None = None
    idle_timeout: float | None = None
    allowed_hosts: tuple[str, ...] = ()
    catchup: str | None = None
    max_catchup: int = 100
    catchup_window: float | None = None
    kafka_servers: tuple[str, ...] = ()
    postgres_dsn: str | None = field(default=None, repr=False)
