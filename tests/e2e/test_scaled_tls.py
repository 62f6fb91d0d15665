"""
Kafka with TLS and SASL, Redis with TLS and a password: an event passes from edge to webhook; and what is set wrongly is
one line with the setting to look at, and no secret in it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sevenhop.cli.main import main
from sevenhop.runtime.scaled.topics import TopicsError, prepare
from sevenhop.settings_scaled import KafkaSettings
from tests.e2e.inbox import Inbox
from tests.e2e.rules import few_gpus_rule
from tests.e2e.scaled_roles import Role, Row, tails
from tests.e2e.scaled_stage import wait_until
from tests.testbed import build
from tests.testbed.certificates import Authority, Signed
from tests.testbed.cluster import Cluster
from tests.testbed.kafka import Kafka, Secured
from tests.testbed.nodes import set_gpus
from tests.testbed.plugin import Pool
from tests.testbed.redis import Redis

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

KAFKA_PASSWORD, REDIS_PASSWORD, WRONG_PASSWORD = "kafka-Gh7xQ2", "redis-Lm4vZ9", "wrong-Rt5bN1"


@dataclass
class Safe:
    """Both servers, and settings with which they take us."""

    kafka: Kafka
    redis: Redis
    other_ca: Path
    settings: Row


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Safe]:
    folder = tmp_path_factory.mktemp("tls")
    ours, other = Authority(folder / "ours"), Authority(folder / "other")
    identity = ours.sign("server")
    secured = Secured(identity.both, {"sevenhop": KAFKA_PASSWORD})
    with Kafka(1, secured=secured) as kafka, Redis(password=REDIS_PASSWORD, identity=identity) as redis:
        settings = {
            "cluster": "safe",
            "rules": [str(few_gpus_rule(folder))],
            "incidents": {"group_wait": "0s"},
            "kafka": {
                "servers": kafka.secured_servers.split(","), "partitions": 2, "replicas": 1, "security": "tls",
                "ca": str(ours.ca), "sasl": "SCRAM-SHA-512", "user": "sevenhop", "password": KAFKA_PASSWORD,
            },
            "redis": {"url": redis.url, "ca": str(ours.ca), "password": REDIS_PASSWORD},
        }  # fmt: skip
        yield Safe(kafka, redis, other.ca, settings)


@pytest.mark.parametrize("sasl", ["SCRAM-SHA-512", "PLAIN"])
def test_an_event_passes(testbed: Cluster, pool: Pool, safe: Safe, tmp_path: Path, sasl: str) -> None:
    """API server, edge, Kafka, worker, Redis, webhook: encrypted and with a password all the way, by each mechanism."""
    name = f"safe-{sasl.lower()}"
    pool.add(build.gpu_node(name))
    inbox = Inbox()
    settings = deepcopy(safe.settings)
    settings["cluster"] = name
    settings["kafka"] |= {"sasl": sasl, "prefix": name}
    settings["receivers"] = {"hook": {"type": "webhook", "url": inbox.url}}
    password = settings["kafka"].pop("password")
    edge_settings = {**settings, "kubernetes": {"kubeconfig": str(testbed.kubeconfig())}}
    roles = [
        Role(tmp_path, "edge", edge_settings, {"SEVENHOP__KAFKA__PASSWORD": password}),
        Role(tmp_path, "worker", settings, {"SEVENHOP__KAFKA__PASSWORD": password}),
    ]
    try:
        for role in roles:
            role.start()
        wait_until("seen", lambda: roles[1].serves(name), 150, lambda: tails(roles))
        set_gpus(testbed.client, name, 7)
        wait_until("told", lambda: bool(inbox.about(name)), 30, lambda: tails(roles))
    finally:
        for role in roles:
            role.stop()
        inbox.close()
    assert len(inbox.about(name)) == 1
    assert not [word for word in (KAFKA_PASSWORD, REDIS_PASSWORD) for role in roles if word in role.log]


Change = Callable[[Safe, Row], Any]


def kafka(**changes: Any) -> Change:
    return lambda safe, settings: settings["kafka"].update(
        {key: value(safe) if callable(value) else value for key, value in changes.items()}
    )


def redis(**changes: Any) -> Change:
    return lambda safe, settings: settings["redis"].update(
        {key: value(safe) if callable(value) else value for key, value in changes.items()}
    )


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        pytest.param(
            kafka(password=WRONG_PASSWORD), 2,
            "SCRAM-SHA-512 refuses the user or the password; check kafka.user and kafka.password",
            id="Kafka: wrong password",
        ),
        pytest.param(
            kafka(user="nobody"), 2,
            "SCRAM-SHA-512 refuses the user or the password; check kafka.user and kafka.password",
            id="Kafka: wrong user",
        ),
        pytest.param(
            kafka(sasl="", user=""), 2, "it may want SASL or a client certificate; check kafka.sasl",
            id="Kafka: no SASL",
        ),
        pytest.param(
            kafka(ca=lambda safe: str(safe.other_ca)), 2, "its certificate is not trusted", id="Kafka: wrong CA"
        ),
        pytest.param(
            kafka(ca="/nowhere/ca.crt"), 2, "kafka.ca: /nowhere/ca.crt: No such file or directory",
            id="Kafka: no CA file",
        ),
        pytest.param(
            kafka(servers=lambda safe: safe.kafka.secured_servers.replace("127.0.0.1", "localhost")), 2,
            "its certificate is made for other names", id="Kafka: another name",
        ),
        pytest.param(
            kafka(security="plaintext"), 2, "it may want TLS or SASL; check kafka.security",
            id="Kafka: plain to a TLS port",
        ),
        pytest.param(
            kafka(servers=lambda safe: safe.kafka.servers), 2,
            "it may not speak TLS on this port; check kafka.security",
            id="Kafka: TLS to a plain port",
        ),
        pytest.param(
            kafka(servers=lambda safe: safe.kafka.servers, security="plaintext"), 2,
            "this listener takes no SASL; check kafka.sasl", id="Kafka: SASL to a listener without",
        ),
        pytest.param(
            kafka(servers="127.0.0.1:1"), 3, "kafka: 127.0.0.1:1: Connection refused; check kafka.servers",
            id="Kafka: nobody there",
        ),
        pytest.param(
            redis(password=WRONG_PASSWORD), 4, "it refuses the user or the password; check redis.password",
            id="Redis: wrong password",
        ),
        pytest.param(redis(password=""), 4, "it wants a password; check redis.password", id="Redis: no password"),
        pytest.param(
            redis(ca=lambda safe: str(safe.other_ca)), 4, "its certificate is not trusted; check redis.ca",
            id="Redis: wrong CA",
        ),
        pytest.param(
            redis(ca="/nowhere/ca.crt"), 4, "redis.ca: /nowhere/ca.crt: No such file or directory",
            id="Redis: no CA file",
        ),
        pytest.param(
            redis(url=lambda safe: safe.redis.url.replace("127.0.0.1", "localhost")), 4,
            "its certificate is made for other names; check redis.url", id="Redis: another name",
        ),
        pytest.param(
            lambda safe, settings: settings.update(
                redis={"url": safe.redis.url.replace("rediss", "redis"), "password": REDIS_PASSWORD}
            ),
            4, "it may want TLS; check redis.url (rediss://)", id="Redis: plain to a TLS port",
        ),
        pytest.param(
            redis(url=lambda safe: safe.redis.url.replace("rediss", "redis")), 2,
            "redis: ca needs a url with rediss://", id="Redis: a CA without TLS",
        ),
        pytest.param(
            redis(url=lambda safe: safe.redis.url.replace("//", f"//:{WRONG_PASSWORD}@"), password=""), 4,
            "it refuses the user or the password; check redis.password", id="Redis: wrong password in the url",
        ),
        pytest.param(
            redis(url=f"rediss://:{WRONG_PASSWORD}/x@127.0.0.1:6379/0"), 2,
            "a password with / # @ or : belongs into redis.password", id="Redis: a url that cannot be read",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(
    safe: Safe, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Change, code: int, says: str
) -> None:
    """A worker ends at once with its exit code, and says which setting to look at and no secret."""
    settings = deepcopy(safe.settings)
    change(safe, settings)
    config = tmp_path / "sevenhop.yaml"
    config.write_text(json.dumps({**settings, "state": str(tmp_path / "state"), "runtime": {"role": "worker"}}))
    config.chmod(0o600)
    ended = main(["run", "--config", str(config)])
    said = capsys.readouterr()
    print(said.err)
    assert ended == code
    (line,) = said.err.splitlines()
    assert says in line
    assert line.startswith("sevenhop: ")
    assert not [word for word in (KAFKA_PASSWORD, REDIS_PASSWORD, WRONG_PASSWORD) if word in said.out + said.err]


def test_a_broker_that_wants_a_certificate(tmp_path: Path) -> None:
    """With one that it trusts we are taken; without, or with another one, the setting is named."""
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    identity, good, bad = ours.sign("server"), ours.sign("client"), other.sign("client")
    with Kafka(1, secured=Secured(identity.both, {}, clients=ours.ca)) as running:

        def settings(signed: Signed | None) -> KafkaSettings:
            files = {"certificate": signed.certificate, "key": signed.key} if signed is not None else {}
            servers = running.secured_servers.split(",")
            return KafkaSettings(servers=servers, partitions=1, replicas=1, security="tls", ca=ours.ca, **files)

        topics = asyncio.run(prepare(settings(good)))
        said = []
        for signed in (None, bad):
            with pytest.raises(TopicsError) as caught:
                asyncio.run(prepare(settings(signed)))
            said.append(str(caught.value))
        with pytest.raises(TopicsError, match=r"kafka\.certificate and kafka\.key: .*: not a pair in PEM form"):
            asyncio.run(prepare(settings(good).model_copy(update={"key": bad.key})))
    print(*said, sep="\n")
    assert topics.objects == "sevenhop.objects"
    assert "it may want SASL or a client certificate; check kafka.sasl and kafka.certificate" in said[0]
    assert "it may not take our certificate, or want SASL; check kafka.certificate and kafka.sasl" in said[1]


def test_an_edge_says_it_too(testbed: Cluster, safe: Safe, tmp_path: Path) -> None:
    """It needs no Redis, and looks at Kafka as a worker does."""
    settings = deepcopy(safe.settings)
    settings |= {"kubernetes": {"kubeconfig": str(testbed.kubeconfig())}}
    settings["kafka"]["password"] = WRONG_PASSWORD
    role = Role(tmp_path, "edge", settings).start()
    try:
        ended = role.ends(30)
    finally:
        role.kill()
    assert ended == 2
    refused = "SCRAM-SHA-512 refuses the user or the password; check kafka.user and kafka.password"
    assert role.log.splitlines() == [f"sevenhop: kafka: {safe.kafka.secured_servers}: {refused}"]


def test_one_embedded_replica_says_it_too(testbed: Cluster, safe: Safe, tmp_path: Path) -> None:
    """Redis is its store."""
    settings = {**deepcopy(safe.settings), "kubernetes": {"kubeconfig": str(testbed.kubeconfig())}}
    settings["redis"]["password"] = WRONG_PASSWORD
    del settings["kafka"]
    role = Role(tmp_path, "embedded", settings).start()
    try:
        ended = role.ends(30)
    finally:
        role.kill()
    print(role.log)
    assert ended == 4
    assert role.log.splitlines()[-1].endswith("it refuses the user or the password; check redis.password")
    assert WRONG_PASSWORD not in role.log
