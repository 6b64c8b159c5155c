"""Readers: external systems that sources read, one module a kind (`Transport.kind`), found by its name.

A module has one function that `bettong_sender.external_sources` calls, with a value of its transport:

    opener(transport, *, source, connections) -> Callable[[], ExternalReader]

It checks at the start of the sender what can be checked without a connection, and raises SettingsError. What it returns
connects, blocks, and raises LogError.
"""
