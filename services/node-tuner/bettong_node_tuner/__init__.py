"""The node tuner: tunes the kernel of a node for low latency, and restores the old values.

Facts in, decisions out: pure functions over a snapshot decide what a file of /sys or /proc should hold, and whether it
may be written; few modules touch the machine. It needs neither the library `bettong` nor Spark.

| module       | content                                                                          |
| ------------ | -------------------------------------------------------------------------------- |
| `settings`   | the wanted values: environment variables `BETTONG_NODE_TUNER_<NAME>`             |
| `formats`    | how the kernel writes values: lists and masks of CPUs, choices (pure)            |
| `snapshot`   | the contents of the machine's files at one time, as a value (pure)               |
| `targets`    | the files of a setting, and the value that each should hold (pure)               |
| `processors` | the same for CPUs and threads: interrupts, RPS, SCHED_FIFO (pure)                |
| `journal`    | old values, and those that we may have written (pure)                            |
| `decisions`  | keep, write, restore, or leave alone, and why (pure)                             |
| `report`     | decisions as a table and as a node's annotation (pure)                           |
| `machine`    | reads and writes files, swap, threads and the latency bound                      |
| `keeping`    | the journal on the disk                                                          |
| `effects`    | performs decisions, writing the journal always before the machine                |
| `metrics`    | Prometheus metrics                                                               |
| `node`       | the node's annotation and its startup taint, by the API server                   |
| `service`    | the life cycle of a tuner: pass after pass, then revert                          |
| `main`       | the command `bettong-node-tuner`                                                 |
"""
