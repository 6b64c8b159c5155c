"""Connectors: foreign systems that get the results of a sink (`bettong.application.destinations`), a task for each.

A task reads the sink's topic by itself, from the position that the foreign system holds, and delivers batch by
batch: the log is its buffer, so that a system which is away for an hour holds up nobody and misses nothing.

| module       | what it holds                                                          |
| ------------ | ---------------------------------------------------------------------- |
| `connector`     | what a task needs of a foreign system                                  |
| `batch`      | records in, a batch of messages a partition out, by the delivery rule (pure) |
| `refusals`   | what becomes of messages that a foreign system refuses (pure)          |
| `task`       | the loop: open, read, deliver; open again after whatever went wrong    |
| `tasks`      | the tasks of a receiver                                                |
| `routes`     | how each sink gets to its destination                                  |
| `kafka_topic` | records and position in one transaction                               |
| `webhook`    | POSTs, at least once                                                   |
| `tcp`        | lines or frames over TCP, at least once                                |
| `redis_positions` | where those two keep their positions                              |
| `two_phase`  | a sink of the user's own                                               |
| `postgres`   | rows and position in one transaction                                   |
| `table_columns` | which column takes which field (pure)                           |
"""
