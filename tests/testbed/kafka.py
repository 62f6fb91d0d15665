"""
Real Kafka in KRaft mode, on loopback: one broker, or three of which one may die.

The jars come from Maven once and stay in the test bed's cache; Java 17 and mvn are needed.

    python -m tests.testbed.kafka    # one broker until ^C, prints its address
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.testbed.binaries import BuildFailed, cache_folder, locked
from tests.testbed.ports import free_ports
from tests.testbed.programs import Program

VERSION = "4.1.1"

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>dev.sevenhop.testbed</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{VERSION}</version></dependency>
</dependencies></project>
"""

# Quick to start and small: throughput is not what these brokers are for.
_JAVA = ("-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Dkafka.logs.dir=.")


def ensure_jars(say: Callable[[str], None] = lambda _: None) -> Path:
    """
    The folder with Kafka's jars, fetched if need be (half a minute).

    Raises:
        BuildFailed: No Java, no mvn, or Maven's last words.
    """
    if shutil.which("java") is None:
        raise BuildFailed("kafka: no java on PATH")
    folder = cache_folder() / f"kafka-{VERSION}-{hashlib.sha256(_POM.encode()).hexdigest()[:12]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(folder.name + ".lock")):
        if not folder.is_dir():
            say(f"kafka {VERSION}: fetching its jars …")
            _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise BuildFailed("kafka: no mvn on PATH")
    scratch = Path(tempfile.mkdtemp(prefix=".kafka-", dir=folder.parent))
    try:
        (scratch / "pom.xml").write_text(_POM)
        command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildFailed("kafka: mvn failed\n" + "\n".join(done.stdout.strip().splitlines()[-15:]))
        scratch.chmod(0o755)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True)
class Secured:
    """
    A second listener with TLS, where clients say who they are by SASL, or by a certificate.

    Attributes:
        identity: PEM file with the brokers' key and certificate, for 127.0.0.1.
        users: Name to password, for SCRAM-SHA-256, SCRAM-SHA-512 and PLAIN; without any there is TLS alone.
        clients: PEM file of the authority whose certificates clients must have; None asks for none.
    """

    identity: Path
    users: Mapping[str, str]
    clients: Path | None = None


class Kafka:
    """
    A cluster of `brokers`; three keep what two of them have, so one may be killed.

    Args:
        secured: Also listen with TLS and SASL (`secured_servers`); the plain listener stays.
    """

    def __init__(
        self, brokers: int = 1, *, secured: Secured | None = None, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self._count = brokers
        self._secured = secured
        self._say = say
        self.secured_servers = ""
        self.folder = Path()
        self.brokers: list[Program] = []

    @property
    def servers(self) -> str:
        """For `kafka.servers` of the settings."""
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers)

    @property
    def replicas(self) -> int:
        """Copies that its topics should have."""
        return min(3, self._count)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """
        Raises:
            BuildFailed: It cannot be had here.
            ProgramFailed: A broker does not come up.
        """
        jars = ensure_jars(self._say)
        self.folder = Path(tempfile.mkdtemp(prefix="sevenhop-kafka-"))
        ports = free_ports(3 * self._count)
        secured = ports[2 * self._count :]
        self.secured_servers = ",".join(f"127.0.0.1:{port}" for port in secured) if self._secured else ""
        voters = ",".join(f"{n + 1}@127.0.0.1:{ports[2 * n + 1]}" for n in range(self._count))
        java = ["java", *_JAVA, "-cp", f"{jars}/lib/*"]
        identity = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=").replace("-", "A")
        try:
            for number in range(self._count):
                folder = self.folder / f"broker-{number + 1}"
                folder.mkdir()
                properties = _properties(
                    number + 1, ports[2 * number], ports[2 * number + 1], voters, self._count, folder
                )
                if self._secured is not None:
                    properties = _with_secured(properties, secured[number], self._secured)
                (folder / "server.properties").write_text(properties)
                (folder / "server.properties").chmod(0o600)
                self.brokers.append(
                    Program(
                        [*java, "kafka.Kafka", "server.properties"],
                        port=ports[2 * number],
                        log=folder / "broker.log",
                        folder=folder,
                    )
                )
            with ThreadPoolExecutor(self._count) as pool:
                list(pool.map(lambda broker: _format(java, identity, broker.log.parent, self._secured), self.brokers))
            for broker in self.brokers:
                broker.start(wait_s=0)
            for broker in self.brokers:
                broker.wait()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the brokers and remove the folder; fine to call twice."""
        for broker in self.brokers:
            broker.kill()
        self.brokers.clear()
        if self.folder != Path() and not os.environ.get("SEVENHOP_TESTBED_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)


def _format(java: list[str], identity: str, folder: Path, secured: Secured | None) -> None:
    command = [*java, "kafka.tools.StorageTool", "format", "-t", identity, "-c", "server.properties"]
    for name, password in secured.users.items() if secured else ():
        for mechanism in _SCRAM:
            command += ["--add-scram", f"{mechanism}=[name={name},password={password}]"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildFailed(f"kafka: its storage cannot be formatted\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _properties(number: int, port: int, controller_port: int, voters: str, count: int, folder: Path) -> str:
    replicas = min(3, count)
    return "\n".join(
        (
            "process.roles=broker,controller",
            f"node.id={number}",
            f"controller.quorum.voters={voters}",
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            f"log.dirs={folder / 'data'}",
            f"offsets.topic.replication.factor={replicas}",
            f"transaction.state.log.replication.factor={replicas}",
            f"transaction.state.log.min.isr={min(2, replicas)}",
            f"min.insync.replicas={min(2, replicas)}",
            "offsets.topic.num.partitions=4",
            "transaction.state.log.num.partitions=2",
            "group.initial.rebalance.delay.ms=0",
            "group.min.session.timeout.ms=1000",
            "broker.session.timeout.ms=3000",
            "broker.heartbeat.interval.ms=500",
            "controller.quorum.election.timeout.ms=1000",
            "controller.quorum.fetch.timeout.ms=2000",
            "auto.create.topics.enable=false",
            "log.cleaner.backoff.ms=1000",
            "num.network.threads=2",
            "num.io.threads=2",
            "background.threads=2",
            "",
        )
    )


_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def _with_secured(properties: str, port: int, secured: Secured) -> str:
    """The same broker with one listener more; keys as in Kafka's manual, "Security", with PEM files (KIP-651)."""
    properties = re.sub(r"(?m)^((?:advertised\.)?listeners=.*)$", rf"\1,SECURED://127.0.0.1:{port}", properties)
    protocol = "SASL_SSL" if secured.users else "SSL"
    properties = re.sub(r"(?m)^(listener\.security\.protocol\.map=.*)$", rf"\1,SECURED:{protocol}", properties)
    module = "org.apache.kafka.common.security"
    users = " ".join(f'user_{name}="{password}"' for name, password in secured.users.items())
    ours = {
        "sasl.enabled.mechanisms": ",".join((*_SCRAM, "PLAIN")),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(secured.identity),
        "plain.sasl.jaas.config": f"{module}.plain.PlainLoginModule required {users};",
        **{f"{name.lower()}.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;" for name in _SCRAM},
    }
    if secured.clients is not None:
        ours |= {
            "ssl.client.auth": "required",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(secured.clients),
        }
    return properties + "".join(f"listener.name.secured.{key}={value}\n" for key, value in ours.items())


if __name__ == "__main__":
    with Kafka(say=print) as kafka:
        print(kafka.servers, flush=True)
        try:
            while True:
                time.sleep(1)
        except KeyboardInterrupt:
            pass
