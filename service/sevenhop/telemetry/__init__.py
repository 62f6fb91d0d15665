"""How Sevenhop is watched itself: metrics, health, logs, traces, and a heartbeat whose absence somebody notices."""
