"""
What runs on each GPU node: reads the GPUs, who holds them and what the driver reports, and sends it to the service.

Imports events, their wire format and their words alone (`core.events`, `core.gpu_sample`, `core.gpu_wire`,
`core.gpu_words`).
"""
