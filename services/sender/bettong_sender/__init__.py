"""The sender: takes clients' frames in over gRPC and appends them to the log, split by key.

| module                                                        | what                                |
| ------------------------------------------------------------- | ----------------------------------- |
| `refusal` `body` `numbering` `session` `ledger` `buffer`      | pure: frames in, decisions out      |
| `servicer`                                                    | a client's call                     |
| `ownership`                                                   | who feeds a stream: leases in Redis |
| `cuts`                                                        | pure: where a foreign topic is cut into frames |
| `beginning`                                                   | pure: where the reading of a foreign topic begins |
| `topic_feed`                                                  | feeds a source from a foreign topic |
| `log_keeper`                                                  | Kafka: waited for, and opened again |
| `live`                                                        | figures in Redis                    |
| `main`                                                        | settings, wiring, signals           |

It knows nothing of what happens to a message behind the log.
"""
