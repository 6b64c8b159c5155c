"""Connectors write results to external systems. The delivery engine (`bettong_receiver.delivery`) calls each.

They hold what differs between systems: file formats, transactions, two-phase commits, how positions are stored.

| module              | what it holds                                                     |
| ------------------- | ----------------------------------------------------------------- |
| `files`             | results in files, exactly once                                    |
| `durable`           | replaces, syncs and locks files, for both kinds of file sinks     |
| `partitioned_files` | files in folders named after fields, exactly once                 |
| `folder_names`      | which folder a message goes to (pure)                             |
| `file_journal`      | positions of these files, and what recovery has to undo (pure)    |
| `redis_results`     | the newest results in Redis, exactly once                         |
| `kafka_topic`       | records and position in one transaction                           |
| `postgres`          | rows and position in one transaction                              |
| `table_columns`     | which column types can store which field (pure)                   |
| `two_phase`         | a sink that the user implements                                   |
| `webhook`           | POST requests, at least once                                      |
| `tcp`               | lines or frames over TCP, at least once                           |
| `redis_positions`   | stores the positions of webhook and TCP                           |

`bettong_receiver.routes` decides which sinks go where. The module of a destination (`to=`) is named after its kind and
defines

    route(context, destination) -> Route

which at the start of the receiver checks all that needs no connection, and raises SettingsError.
"""
