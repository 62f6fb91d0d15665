"""
What may be done about an incident: plans, the guards over them, people's decisions, runs, leases, and the audit.

    need → donors → victims → plan ─► proposed ─► approved ─► running ─► succeeded ─► restored

Guards stand before every step; each step is an effect, and what came of it comes back as an event.
"""
