"""Sevenhop: which of the seven hops of AI inference on Kubernetes broke first, and what helps."""
