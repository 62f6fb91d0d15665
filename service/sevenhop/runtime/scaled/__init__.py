"""
The scaled runtime: Kafka for the stream, Faust to share it among workers, Redis for what cannot be rebuilt.

    edge (one per cluster) ──► topics ──► worker (any number) ──► Redis: state, outbox, input offset in one write
     watches, acts                        engine per cluster       └─► outbox ──► channels

Read `worker.py`, then `partition.py` and `cell.py`; `edge.py` is the other end.
"""
