"""The sender: takes clients' frames in over gRPC and appends them to the log, split by key.

| module                                                        | what                                |
| ------------------------------------------------------------- | ----------------------------------- |
| `ledger` `buffer` `ticker` `deaths`                           | pure: what becomes of frames is `bettong.ingest` |
| `servicer`                                                    | a client's call                     |
| `ownership`                                                   | who feeds a stream: leases in Redis |
| `batcher`                                                     | pure: how what is read is divided into frames |
| `beginning`                                                   | pure: where the reading of an external system begins |
| `external_sources`                                            | what this sender reads, and by which reader |
| `readers`                                                     | what reads each kind of external system |
| `source_feed`                                                 | feeds a source from an external system |
| `log_keeper`                                                  | Kafka: waited for, and opened again |
| `tracing`                                                     | spans of sampled frames             |
| `live`                                                        | metrics in Redis                    |
| `main`                                                        | settings, wiring, signals           |

It knows nothing of what happens to a message behind the log.
"""
