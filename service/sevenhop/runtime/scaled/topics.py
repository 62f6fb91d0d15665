"""The topics: names, which partition a cluster lies in, and that they are as they must be before anything starts."""

from __future__ import annotations

import asyncio
import ssl
from hashlib import sha256
from typing import Any

import msgspec

from sevenhop.runtime.scaled.reach import only_our_words, why_unreachable
from sevenhop.settings_scaled import KafkaSettings

CREATE_WITHIN_S = 30.0
_EXISTS = 36  # Kafka's TOPIC_ALREADY_EXISTS
_UNKNOWN = 3  # UNKNOWN_TOPIC_OR_PARTITION


class TopicsError(Exception):
    """The topics do not fit, or Kafka cannot be asked; one line with what to do."""


class KafkaAwayError(TopicsError):
    """No broker answers now; one may later."""


class Topics(msgspec.Struct, frozen=True):
    """
    Names.

    Attributes:
        objects: What is true, compacted by key: objects, states of sources, one tick per cluster.
        signals: What passes: decisions, silences, samples, XIDs, answers of the edges.
        orders: Steps for the edges to carry out.
        dead: Records that could not be used, each with its reason.
    """

    objects: str
    signals: str
    orders: str
    dead: str

    @property
    def inputs(self) -> tuple[str, str]:
        """What a worker takes in: the same number of partitions each."""
        return (self.objects, self.signals)


def topics_of(settings: KafkaSettings) -> Topics:
    """The names that the settings make."""
    return Topics(*(f"{settings.prefix}.{name}" for name in ("objects", "signals", "orders", "dead-letters")))


def partition_of(cluster: str, partitions: int) -> int:
    """
    Where all of a cluster lies; the same for ever and in every process.

    >>> [partition_of(name, 24) for name in ("prod-eu", "prod-us", "lab")]
    [0, 4, 17]
    """
    return int.from_bytes(sha256(cluster.encode()).digest()[:8]) % partitions


def client_options(settings: KafkaSettings) -> dict[str, Any]:
    """How any aiokafka client speaks to the brokers."""
    options: dict[str, Any] = {"bootstrap_servers": settings.servers}
    context = tls_of(settings)
    if settings.sasl:
        options |= {
            "security_protocol": "SASL_SSL" if context else "SASL_PLAINTEXT",
            "sasl_mechanism": settings.sasl,
            "sasl_plain_username": settings.user,
            "sasl_plain_password": settings.password.get_secret_value(),
        }
    elif context:
        options["security_protocol"] = "SSL"
    if context:
        options["ssl_context"] = context
    return options


def tls_of(settings: KafkaSettings) -> ssl.SSLContext | None:
    """
    Raises:
        TopicsError: A file cannot be read.
    """
    if settings.security != "tls":
        return None
    # In this order, and each alone: what ssl raises names no file.
    for name, path in (("ca", settings.ca), ("certificate", settings.certificate), ("key", settings.key)):
        try:
            if path is not None:
                path.open("rb").close()
        except OSError as error:
            raise TopicsError(f"kafka.{name}: {path}: {error.strerror}") from None
    try:
        context = ssl.create_default_context(cafile=str(settings.ca) if settings.ca else None)
    except OSError as error:
        raise TopicsError(f"kafka.ca: {settings.ca}: no certificate in PEM form: {error}") from None
    try:
        if settings.certificate and settings.key:
            context.load_cert_chain(settings.certificate, settings.key, password="")
    except (OSError, ValueError) as error:
        raise TopicsError(
            f"kafka.certificate and kafka.key: {settings.certificate}, {settings.key}: not a pair in PEM form, without "
            f"a passphrase: {error}"
        ) from None
    return context


async def prepare(settings: KafkaSettings) -> Topics:
    """
    Create what is missing, and check all of it.

    Raises:
        TopicsError: With everything that does not fit, a line each.
        KafkaAwayError: No broker answers.
    """
    from aiokafka.admin import AIOKafkaAdminClient
    from aiokafka.errors import KafkaError

    topics = topics_of(settings)
    admin = AIOKafkaAdminClient(**client_options(settings), request_timeout_ms=10_000)
    try:
        with only_our_words():
            await admin.start()
    except (KafkaError, OSError, ValueError) as error:
        with only_our_words():
            await admin.close()
            why = await why_unreachable(settings, client_options(settings))
        if why is not None:
            raise (TopicsError if why.is_settings else KafkaAwayError)(why.text) from None
        raise KafkaAwayError(
            f"kafka: {', '.join(settings.servers)}: {type(error).__name__}: {error}; check kafka.servers"
        ) from None
    try:
        async with asyncio.timeout(CREATE_WITHIN_S):
            if settings.create_topics:
                await _create(admin, topics, settings)
            problems = await _problems(admin, topics, settings)
            while settings.create_topics and problems and all("has no leader" in each for each in problems):
                await asyncio.sleep(0.2)  # a new partition gets its leader in a moment
                problems = await _problems(admin, topics, settings)
    except (KafkaError, OSError, TimeoutError) as error:
        raise TopicsError(f"kafka: topics cannot be looked at: {type(error).__name__}: {error}") from None
    finally:
        await admin.close()
    if problems:
        raise TopicsError("\n".join(problems))
    return topics


def _configs(topics: Topics, settings: KafkaSettings) -> dict[str, dict[str, str]]:
    """Topic to how it is kept; why, in docs/operating/choose-a-runtime.md."""
    in_sync = str(min(2, settings.replicas))
    day_ms = 24 * 3600 * 1000
    return {
        topics.objects: {
            "cleanup.policy": "compact",
            # A key rewritten after the stored offset may have lost its older record: keep both for longer than we lag.
            "min.compaction.lag.ms": str(10 * 60 * 1000),
            "max.compaction.lag.ms": str(60 * 60 * 1000),
            "segment.ms": str(10 * 60 * 1000),
            "min.cleanable.dirty.ratio": "0.1",
            "delete.retention.ms": str(day_ms),
            "min.insync.replicas": in_sync,
        },
        topics.signals: {
            "cleanup.policy": "delete",
            "retention.ms": str(day_ms),
            "min.insync.replicas": in_sync,
        },
        topics.orders: {
            "cleanup.policy": "delete",
            "retention.ms": str(day_ms),
            "min.insync.replicas": in_sync,
        },
        topics.dead: {"cleanup.policy": "delete", "retention.ms": str(7 * day_ms), "min.insync.replicas": in_sync},
    }


async def _create(admin: Any, topics: Topics, settings: KafkaSettings) -> None:
    from aiokafka.admin import NewTopic

    wanted = [
        NewTopic(
            name=name,
            num_partitions=1 if name == topics.dead else settings.partitions,
            replication_factor=settings.replicas,
            topic_configs=configs,
        )
        for name, configs in _configs(topics, settings).items()
    ]
    answer = await admin.create_topics(wanted)  # does not raise: the answer says what went wrong
    refused = [
        f"kafka: {name}: cannot be created: {message or code}"
        for name, code, message in answer.topic_errors
        if code not in (0, _EXISTS)
    ]
    if refused:
        raise TopicsError("\n".join(refused))


async def _problems(admin: Any, topics: Topics, settings: KafkaSettings) -> list[str]:
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

    names = (topics.objects, topics.signals, topics.orders, topics.dead)
    found: list[str] = []
    for row in await admin.describe_topics(list(names)):
        name = row["topic"]
        if row["error_code"] == _UNKNOWN:
            found.append(f"kafka: {name}: has no leader yet, or is missing; set kafka.create_topics or create it")
            continue
        partitions = row["partitions"]
        if name != topics.dead and len(partitions) != settings.partitions:
            found.append(
                f"kafka: {name}: has {len(partitions)} partitions, kafka.partitions says {settings.partitions}; "
                "set it to what is there (a cluster's partition is found by it), or use another kafka.prefix"
            )
        elif any(partition["leader"] < 0 for partition in partitions):
            found.append(f"kafka: {name}: has no leader for some of its partitions")
    if found:
        return found
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, {"cleanup.policy": None}) for name in names]
    wanted = {name: configs["cleanup.policy"] for name, configs in _configs(topics, settings).items()}
    for answer in await admin.describe_configs(resources):
        for resource in answer.resources:
            name, entries = resource[3], resource[4]
            policy = next((entry[1] for entry in entries if entry[0] == "cleanup.policy"), None)
            if policy is not None and wanted[name] not in policy.split(","):
                found.append(
                    f"kafka: {name}: cleanup.policy is {policy}, it must be {wanted[name]}: without it state is lost, "
                    "or grows for ever"
                )
    return found
