"""Whoever may write to Kafka, and has no key: orders that go straight into the topic, past every worker."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from datetime import UTC, datetime

from msgspec.structs import replace

from sevenhop.runtime.scaled.orders import ORDER_LIVES, Letter, Order, Orders, write_order
from sevenhop.runtime.scaled.signing import signing_orders
from sevenhop.runtime.scaled.topics import prepare
from sevenhop.settings_scaled import KafkaSettings
from tests.e2e.scaled_people import KEY
from tests.testbed.client import Object


def patch_of(cluster: str, request_id: str, target: Object, body: bytes) -> Order:
    """A patch of a Deployment, as a worker orders it now."""
    where = target["metadata"]
    return Order(
        cluster=cluster,
        request_id=request_id,
        until=datetime.now(UTC) + ORDER_LIVES,
        method="PATCH",
        path=f"/apis/apps/v1/namespaces/{where['namespace']}/deployments/{where['name']}",
        body=body,
        content_type="application/merge-patch+json",
    )


def of_worker(order: Order, key: str = KEY) -> Letter:
    """As a worker with this key signs it."""
    return write_order(order, signing_orders(key))


def forgeries(order: Order) -> dict[str, Letter]:
    """The same order as those could write it who have another key or none, with the word for why it is refused."""
    foreign = of_worker(replace(order, cluster="elsewhere", request_id=f"{order.request_id}-c"))
    moved = replace(foreign, value=foreign.value.replace(b"elsewhere", order.cluster.encode()))
    return {
        "unsigned": write_order(replace(order, request_id=f"{order.request_id}-a")),
        "forged: another key": of_worker(replace(order, request_id=f"{order.request_id}-b"), "another key"),
        "forged: another cluster": moved,
    }


def put(kafka: KafkaSettings, cluster: str, *letters: Letter) -> None:
    """Into the partition of the cluster's orders."""

    async def main() -> None:
        orders = Orders(kafka, await prepare(kafka))
        await orders.start()
        try:
            for letter in letters:
                await orders.send(cluster, letter)
        finally:
            await orders.close()

    asyncio.run(main())


def refused(address: str) -> dict[str, int]:
    """What an edge counts at /metrics: reason to the number of orders that it refused, of those that it did."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        page = answer.read().decode()
    rows = re.findall(r'sevenhop_edge_orders_refused_total\{.*?reason="(\w+)"\} ([\d.]+)', page)
    assert rows, page[:500]
    return {reason: int(float(count)) for reason, count in rows if float(count)}
