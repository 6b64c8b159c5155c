"""The sender: takes clients' frames in over gRPC and appends them to the log, split by key.

| module                      | what                                |
| ----------------------------| ----------------------------------- |
| `ledger` `ticker` `deaths`  | pure: credits, TICKs, crashes; frames are split in `bettong.ingest` |
| `servicer`                  | one client's gRPC call              |
| `ownership`                 | which session feeds a stream: leases in Redis |
| `batcher`                   | pure: how records read from external systems are divided into frames |
| `beginning`                 | pure: the offsets at which reading an external system starts |
| `external_sources`          | the external systems that this sender reads, each with its reader |
| `readers`                   | one reader for each kind of external system |
| `source_feed`               | feeds a source from an external system |
| `log_keeper`                | waits for Kafka, reopens a failed log |
| `tracing`                   | spans of sampled frames             |
| `live`                      | metrics in Redis                    |
| `main`                      | settings, wiring, signals           |

It does not know what happens to a message once it is in the log.
"""
