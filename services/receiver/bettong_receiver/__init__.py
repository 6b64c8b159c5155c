"""The receiver: delivers results from the log to files, Redis and gRPC subscribers, each message once.

Of stream semantics it applies only the delivery rule, and it never runs a function of the application.

| module          | what it holds                                                             |
| --------------- | ------------------------------------------------------------------------- |
| `main`          | settings and signals                                                      |
| `service`       | the life of a receiver: wait, deliver, serve, stop                        |
| `routes`        | which sinks go to which connectors                                        |
| `sink_context`  | the configuration from which the connector of one sink is built           |
| `delivery`      | the delivery engine: reads records, passes messages to each connector     |
| `connectors`    | write them to files, Redis, Postgres, Kafka, webhooks and others          |
| `progress`      | how far one connector is in one partition of a sink (pure)                |
| `positions`     | progress as bytes, and back (pure)                                        |
| `formats`       | frames as the messages that a sink delivers (pure)                        |
| `json_lines`    | columns as JSON objects (pure)                                            |
| `opening`       | waits for Kafka, opens the readers and writers that deliveries need       |
| `background`    | runs one job at a time on its own thread                                  |
| `latency`       | latency from the client's send time to delivery, in histograms            |
| `latency_parts` | its parts, from the client through log and worker to the sink             |
| `tracing`       | spans of sampled frames that are sent to subscribers                      |
| `status`        | the receiver's state, and what it waits for                               |
| `reporting`     | writes the live record in Redis, with the lag behind the log              |
| `room`          | memory held for subscribers, and its bounds                               |
| `subscriptions` | where a subscription starts (pure), and how it reads the log              |
| `servicer`      | the gRPC service                                                          |
"""
