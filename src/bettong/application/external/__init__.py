"""External systems that an application names: what sources read (`from_=`) and sinks append to (`to=`).

| value                | source       | sink          | how a sink does it                                            |
| -------------------- | ------------ | ------------- | ------------------------------------------------------------- |
| `KafkaTopic`         | exactly once | exactly once  | records and position in one transaction, for `read_committed` |
| `Postgres`           |              | exactly once  | rows and position in one transaction                          |
| `PartitionedFiles`   |              | exactly once  | a journal says what to cut back after a crash                 |
| `TwoPhase`           |              | exactly once  | a sink of your own: see `TwoPhaseSink`                        |
| `AtLeastOnceWebhook` |              | at least once | a crash between a request and its position posts it again     |
| `AtLeastOnceTcp`     |              | at least once | a crash between an answer and its position sends it again     |

A value is pure data: it holds no connection and no secret. `connection` names an entry of the file BETTONG_CONNECTIONS,
which holds addresses and passwords; by default it is the name of the source or sink. A source reads a `Transport`, a
sink appends to a `Destination`, one module each; a value may be both. The module of its `kind` implements it:
`bettong_sender.readers.{kind}` and `bettong_receiver.connectors.{kind}`.
"""
