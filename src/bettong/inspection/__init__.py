"""What is known of a deployment: what runs, how far it is, states, the history of a key, dead letters, health.

Facts in, values out: for the command line, which shows them, and for other callers. Pure but for
`bettong.inspection.live`, which asks Kafka, Redis and the store of snapshots, and sends dead letters again. Knows no
terminal and no flag.
"""
