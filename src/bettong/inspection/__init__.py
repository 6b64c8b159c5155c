"""Inspects a deployment: its services, their progress, states, the history of a key, dead letters, health.

Facts in, values out: for the command line, which shows them, and for other callers. Pure but for
`bettong.inspection.live`, which reads Kafka, Redis and the snapshot store, and sends dead letters again. Knows no
terminal and no flag.
"""
