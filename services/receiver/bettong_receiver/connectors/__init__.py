"""Connectors: what writes results to external systems. The delivery engine (`bettong_receiver.delivery`) feeds each.

What differs is here: formats of files, transactions, two-phase commits, and how positions are stored.

| module              | what it holds                                                     |
| ------------------- | ----------------------------------------------------------------- |
| `files`             | results in files, exactly once                                    |
| `durable`           | replacing, syncing and locking for both kinds of files            |
| `partitioned_files` | files in folders named after fields, exactly once                 |
| `folder_names`      | which folder a message goes to (pure)                             |
| `file_journal`      | positions of these files, and what a crash has to undo (pure)     |
| `redis_results`     | the newest results in Redis, exactly once                         |
| `kafka_topic`       | records and position in one transaction                           |
| `postgres`          | rows and position in one transaction                              |
| `table_columns`     | which column takes which field (pure)                             |
| `two_phase`         | a sink of the user's own                                          |
| `webhook`           | POSTs, at least once                                              |
| `tcp`               | lines or frames over TCP, at least once                           |
| `redis_positions`   | where those two keep their positions                              |

`bettong_receiver.routes` says which sinks go where. A destination (`to=`) is found by the name of its kind: its module
has

    route(context, destination) -> Route

which checks at the start of the receiver what can be checked without a connection, and raises SettingsError.
"""
