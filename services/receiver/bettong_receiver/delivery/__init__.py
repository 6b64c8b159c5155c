"""The delivery engine: brings the results of sinks from the log to connectors, each message once.

A task (`task`) feeds one connector. It reads the topics of its sinks with a reader of its own, from the positions that
the connector holds, applies the delivery rule and hands over batch by batch. The log is its buffer: a connector that is
away for an hour holds up no other and misses nothing.

| module         | what it holds                                                                |
| -------------- | ---------------------------------------------------------------------------- |
| `task`         | the loop: open, read, deliver; open again after whatever went wrong          |
| `tasks`        | the tasks of a receiver, and what figures say of them                        |
| `batcher`      | records in, one batch a partition out, by the delivery rule (pure)           |
| `refusals`     | what becomes of messages that a connector refuses (pure)                     |
| `observations` | latency and the newest dead letter                                           |
"""
