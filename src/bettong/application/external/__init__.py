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
where addresses and passwords are; by default it has the name of the source or sink. What a source can read is a
`Transport`, what a sink can append to a `Destination`, one module each; a value may be both. Each is served by the
module of its `kind`: `bettong_sender.readers.{kind}` and `bettong_receiver.connectors.{kind}`.
"""
