"""
Faust as the stream of a worker: membership, assignment, delivery.  No tables, no state, no web server of its own.

What Faust says and what it does differ in places (tried with 0.15.3 and Kafka 4.1):
    - `on_rebalance_complete` is sent but not waited for; `perform_seek` runs next, so there partitions are sought and
      paused; a seek in the hook is undone;
    - time spent in the signal of assigned partitions stops heartbeats: nothing is rebuilt there;
    - both topics of a partition meet on one worker only with Faust's own assignor, which needs `table_standby_replicas`
      of at least 1.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Mapping
from typing import Any, Protocol

from sevenhop.runtime.scaled.topics import Topics, tls_of
from sevenhop.settings_scaled import KafkaSettings

log = logging.getLogger("sevenhop.stream")

_LOOK_S = 0.5

FETCH_WAIT_MS = 100
"""
How long a broker may hold back its answer while there is nothing.  aiokafka has one question at a time for each broker,
so a partition that is resumed, or has been read out, waits for the answer about the others; Faust asks for 1,500 ms.
"""

FETCH_BYTES = 4 * 1024 * 1024
"""Of one partition in one answer: a backlog comes in few questions."""


class StreamError(Exception):
    """The stream ended by itself."""


class Taker(Protocol):
    """Who takes what the stream brings."""

    def revoked(self) -> None: ...

    async def assigned(self, numbers: set[int]) -> None: ...

    def next_offsets(self, number: int) -> dict[str, int]: ...

    async def take(self, topic: str, number: int, message: Any) -> None: ...


class Stream:
    """One member of the consumer group."""

    def __init__(self, settings: KafkaSettings, topics: Topics, taker: Taker) -> None:
        self._settings = settings
        self._topics = topics
        self._taker = taker
        self._app: Any = None
        self._paused: set[int] = set()
        self.is_up = False  # before it is, Faust's consumer cannot even be asked
        self._failure: BaseException | None = None

    async def run(self) -> None:
        """
        Until cancelled.

        Raises:
            StreamError: It ended by itself.
        """
        # Faust makes folders for tables, where we run if not told otherwise; there are no tables.
        with tempfile.TemporaryDirectory(prefix="sevenhop-faust-") as folder:
            self._app = self._build(folder)
            self._app.finalize()
            try:
                await self._app.start()
                while not (self._app.crashed or self._failure or self._app.should_stop):  # noqa: ASYNC110  no event
                    await asyncio.sleep(_LOOK_S)
                raise StreamError(f"the stream ended: {self._failure or self._app.crash_reason or 'stopped'}")
            finally:
                await self._app.stop()

    def pause(self, number: int) -> None:
        self._paused.add(number)
        self._app.consumer.pause_partitions(self._places(number))

    async def resume(self, number: int, offsets: Mapping[str, int]) -> None:
        """Go on at these offsets."""
        consumer = self._app.consumer
        assigned = consumer.assignment()
        for place in self._places(number):
            if place in assigned:
                await consumer.seek(place, offsets[place.topic])
        self._paused.discard(number)
        consumer.resume_partitions(self._places(number) & set(assigned))

    def lag(self) -> dict[int, int]:
        """Partition to the records that are there and were not brought yet, as far as it is known."""
        found: dict[int, int] = {}
        if not self.is_up:
            return found
        for place in self._app.consumer.assignment():
            offset = self._taker.next_offsets(place.partition).get(place.topic)
            highwater = self._app.consumer.highwater(place)
            if offset is not None and highwater is not None:
                found[place.partition] = found.get(place.partition, 0) + max(0, highwater - offset)
        return found

    def _places(self, number: int) -> set[Any]:
        from faust.types import TP

        return {TP(topic, number) for topic in self._topics.inputs}

    def _build(self, folder: str) -> Any:
        import faust
        from faust.transport.drivers import aiokafka as driver
        from yarl import URL

        stream = self

        class Consumer(driver.Consumer):
            async def perform_seek(self) -> None:
                await super().perform_seek()
                await stream._seek_all(self)

            def _new_consumer_thread(self) -> Any:
                return Thread(self, loop=self.loop, beacon=self.beacon)

        class Thread(driver.AIOKafkaConsumerThread):
            def _create_worker_consumer(self, transport: Any) -> Any:
                consumer = super()._create_worker_consumer(transport)
                consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # noqa: SLF001  read at its start; Faust has no setting
                return consumer

        class Transport(driver.Transport):
            pass

        Transport.Consumer = Consumer
        brokers = [URL(f"kafka://{server}") for server in self._settings.servers]
        session_s = self._settings.session_timeout.total_seconds()
        app = faust.App(
            f"{self._settings.prefix}-workers",
            broker=brokers,
            broker_credentials=self._credentials(),
            value_serializer="raw",
            key_serializer="raw",
            web_enabled=False,
            datadir=folder,
            store="memory://",
            topic_disable_leader=True,
            topic_allow_declare=False,
            stream_wait_empty=False,
            broker_commit_interval=1,
            broker_session_timeout=session_s,
            broker_heartbeat_interval=session_s / 4,
            broker_rebalance_timeout=10,
            broker_request_timeout=max(20, session_s),
            consumer_auto_offset_reset="earliest",
            consumer_metadata_max_age_ms=5000,
            broker_max_poll_records=500,
            consumer_max_fetch_size=FETCH_BYTES,
            table_standby_replicas=1,
        )
        app.transport = Transport(brokers, app)
        source = app.topic(
            *self._topics.inputs, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
        )

        async def deliver(events: Any) -> None:
            async for event in events.noack().events():
                message = event.message
                try:
                    await stream._taker.take(message.topic, message.partition, message)
                except asyncio.CancelledError:
                    raise
                except BaseException as error:
                    stream._failure = error  # Faust would take it as done, and go on
                    raise
                finally:
                    event.ack()

        app.agent(source, name="records")(deliver)

        async def revoked(*_: Any, **__: Any) -> None:
            stream._taker.revoked()

        async def complete(*_: Any, **__: Any) -> None:
            try:
                inputs = set(stream._topics.inputs)
                places = app.consumer.assignment()
                await stream._taker.assigned({place.partition for place in places if place.topic in inputs})
            except BaseException as error:
                stream._failure = error
                raise

        app.on_partitions_revoked.connect(revoked)
        app.on_rebalance_complete.connect(complete)
        self._hooks = (deliver, revoked, complete)
        return app

    async def _seek_all(self, consumer: Any) -> None:
        """After each rebalance: go on where each partition stands, and leave those alone that are not rebuilt."""
        self.is_up = True
        waiting = set()
        for place in consumer.assignment():
            offset = self._taker.next_offsets(place.partition).get(place.topic)
            if offset is None:
                waiting.add(place)
            else:
                await consumer.seek(place, offset)
        consumer.pause_partitions(waiting)

    def _credentials(self) -> Any:
        import faust

        context = tls_of(self._settings)
        if self._settings.sasl:
            return faust.SASLCredentials(
                username=self._settings.user,
                password=self._settings.password.get_secret_value(),
                mechanism=self._settings.sasl,
                ssl_context=context,
            )
        return faust.SSLCredentials(context) if context is not None else None
