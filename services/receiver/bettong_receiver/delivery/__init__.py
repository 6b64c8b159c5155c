"""The delivery engine: passes the results of sinks from the log to connectors, each message once.

A task reads the topics of its sinks with its own reader, from the positions that its connectors store, applies the
delivery rule and delivers batch by batch. The log is the buffer: a connector that is unavailable for an hour delays no
other task and misses nothing. This package depends on no particular connector.

| module         | what it holds                                                                |
| -------------- | ---------------------------------------------------------------------------- |
| `connector`    | the interface of connectors, and the batches that they get                   |
| `route`        | which sinks go to which connectors; a record, decoded once for all of them   |
| `batcher`      | makes one batch per partition of records, by the delivery rule (pure)        |
| `refusals`     | skips or dead-letters messages that a connector refuses (pure)               |
| `delivery`     | one round: each record to every connector of a route that lacks it           |
| `task`         | the loop: open, read, deliver; reopen after any failure                      |
| `tasks`        | the tasks of a receiver, and their metrics                                   |
| `observations` | latency, the newest dead letter, log lines                                   |
| `tracing`      | spans of the deliveries of sampled frames                                    |
"""
