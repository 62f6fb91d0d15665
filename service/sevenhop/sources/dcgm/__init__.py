"""
GPU samples without our agent: dcgm-exporter's metrics page, or the same series from Prometheus.

It tells less: no processes, no holders by DRA, an XID only as the last one; see docs/howto/gpu-agent.md.
"""
