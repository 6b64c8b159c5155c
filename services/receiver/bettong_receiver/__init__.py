"""The receiver: delivers results from the log to files, Redis and gRPC subscribers, each message once.

It decides nothing about streams but what the delivery rule says, and never runs a function of the application.

| module          | what it holds                                                             |
| --------------- | ------------------------------------------------------------------------- |
| `main`          | settings and signals                                                      |
| `service`       | the life of a receiver: wait, deliver, serve, stop                        |
| `delivery`      | records in, messages to each target, by the rule                          |
| `progress`      | how far one target is in one partition of a sink (pure)                   |
| `positions`     | progress as bytes, and back (pure)                                        |
| `formats`       | frames as the messages that a sink delivers (pure)                        |
| `json_lines`    | columns as JSON objects (pure)                                            |
| `file_target`   | results in files, exactly once                                            |
| `redis_target`  | the newest results in Redis, exactly once                                 |
| `opening`       | waits for and opens what deliveries need                                  |
| `background`    | one job at a time on a thread of its own                                  |
| `latency`       | the client's send time to delivery, in histograms                         |
| `status`        | what the receiver says of itself                                          |
| `reporting`     | says it: the live record in Redis, and how far behind the log it is       |
| `subscriptions` | where a subscriber starts (pure), and its way through the log             |
| `servicer`      | the gRPC service                                                          |
"""
