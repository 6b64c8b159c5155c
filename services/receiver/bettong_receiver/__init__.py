"""The receiver: delivers results from the log to files, Redis and gRPC subscribers, each message once.

It decides nothing about streams but what the delivery rule says, and never runs a function of the application.

| module          | what it holds                                                             |
| --------------- | ------------------------------------------------------------------------- |
| `main`          | settings and signals                                                      |
| `service`       | the life of a receiver: wait, deliver, serve, stop                        |
| `routes`        | which sinks go to which connectors                                        |
| `sink_context`  | what the connector of one sink is made of                                 |
| `delivery`      | the delivery engine: records in, messages to each connector, by the rule  |
| `connectors`    | what stores them: files, Redis, Postgres, Kafka, webhooks and others      |
| `progress`      | how far one connector is in one partition of a sink (pure)                |
| `positions`     | progress as bytes, and back (pure)                                        |
| `formats`       | frames as the messages that a sink delivers (pure)                        |
| `json_lines`    | columns as JSON objects (pure)                                            |
| `opening`       | waits for and opens what deliveries need                                  |
| `background`    | one job at a time on a thread of its own                                  |
| `latency`       | the client's send time to delivery, in histograms                         |
| `latency_parts` | its parts, from the client over log and worker to the sink                |
| `tracing`       | spans of what subscribers get, of sampled frames                          |
| `status`        | what the receiver reports of itself                                       |
| `reporting`     | reports it: the live record in Redis, and how far behind the log it is    |
| `subscriptions` | where a subscriber starts (pure), and its way through the log             |
| `servicer`      | the gRPC service                                                          |
"""
