"""Where a cluster lies, and what the settings of the scaled runtime ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.runtime.scaled.topics import partition_of
from sevenhop.settings import SettingsError, load_settings

FIXED = {"prod-eu": 0, "prod-us": 4, "lab": 17}
"""Written down: another answer in a later version would tear clusters from their state."""


@pytest.mark.parametrize(("cluster", "partition"), FIXED.items())
def test_a_cluster_stays_where_it_is(cluster: str, partition: int) -> None:
    """The same partition in every process and every version."""
    assert partition_of(cluster, 24) == partition


@given(st.text(max_size=30), st.integers(1, 100))
def test_every_cluster_has_a_partition(cluster: str, partitions: int) -> None:
    """Whatever its name."""
    assert 0 <= partition_of(cluster, partitions) < partitions


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("runtime: {role: worker}", "kafka.servers", id="worker without kafka"),
        pytest.param("runtime: {role: worker}\nkafka: {servers: [a:9092]}", "redis.url", id="worker without redis"),
        pytest.param("runtime: {role: edge}", "kafka.servers", id="edge without kafka"),
        pytest.param("runtime: {lease: a/b}", "redis.url", id="two replicas without redis"),
        pytest.param("runtime: {lease: ab}", "namespace/name", id="a lease without namespace"),
        pytest.param("redis: {url: localhost}", "redis://", id="no url"),
        pytest.param("kafka: {certificate: a.pem}", "go together", id="half a certificate"),
        pytest.param("kafka: {sasl: PLAIN}", "needs a user", id="sasl without user"),
        pytest.param("kafka: {partitons: 3}", "did you mean partitions", id="a misspelt key"),
    ],
)
def test_what_is_missing_is_said_before_anything_starts(tmp_path: Path, text: str, problem: str) -> None:
    """With the key to write."""
    path = tmp_path / "sevenhop.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=problem):
        load_settings(path, {})


def test_an_edge_needs_no_redis(tmp_path: Path) -> None:
    """It keeps nothing, and servers may come from the environment as a list with commas."""
    settings = load_settings(None, {"SEVENHOP__RUNTIME__ROLE": "edge", "SEVENHOP__KAFKA__SERVERS": "a:1, b:2"})
    assert settings.kafka.servers == ["a:1", "b:2"]
