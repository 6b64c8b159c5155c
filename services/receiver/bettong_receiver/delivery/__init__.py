"""The delivery engine: brings the results of sinks from the log to connectors, each message once.

A task reads the topics of its sinks with a reader of its own, from the positions that its connectors hold, applies the
delivery rule and hands over batch by batch. The log is its buffer: a connector that is away for an hour holds up no
other task and misses nothing. This package knows no connector.

| module         | what it holds                                                                |
| -------------- | ---------------------------------------------------------------------------- |
| `connector`    | the seam: what a connector does, and the batches that it gets                |
| `route`        | which sinks go to which connectors; a record, decoded once for all of them   |
| `batcher`      | records in, one batch a partition out, by the delivery rule (pure)           |
| `refusals`     | what becomes of messages that a connector refuses (pure)                     |
| `delivery`     | one round: each record to every connector of a route that lacks it           |
| `task`         | the loop: open, read, deliver; open again after whatever went wrong          |
| `tasks`        | the tasks of a receiver, and what metrics say of them                        |
| `observations` | latency, the newest dead letter, lines in the log                            |
| `tracing`      | spans of what is delivered, of sampled frames                                |
"""
