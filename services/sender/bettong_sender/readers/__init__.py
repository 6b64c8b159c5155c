"""Readers of external systems: one module for each kind (`Transport.kind`), imported by that name.

A module has one function, which `bettong_sender.external_sources` calls with a transport of its kind:

    opener(transport, *, source, connections) -> Callable[[], ExternalReader]

It is called at the start of the sender, checks what needs no connection, and raises SettingsError. The function that it
returns connects, blocks, and raises LogError.
"""
