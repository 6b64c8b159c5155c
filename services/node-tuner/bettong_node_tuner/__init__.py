"""The node tuner: sets the kernel of a node for low latency, and sets it back.

Facts in, decisions out: what a file of /sys or /proc should hold, and whether it may be written, is decided by pure
functions over a snapshot; few modules touch the machine. It needs neither the library `bettong` nor Spark.

| module       | what it holds                                                                    |
| ------------ | -------------------------------------------------------------------------------- |
| `settings`   | what is wanted: environment variables `BETTONG_NODE_TUNER_<NAME>`                |
| `formats`    | how the kernel writes values: lists and masks of CPUs, choices (pure)            |
| `snapshot`   | what the machine's files held at one time, as a value (pure)                     |
| `targets`    | which files a wanted setting is about, and what each should hold (pure)          |
| `processors` | the same of those that name CPUs or threads: interrupts, RPS, SCHED_FIFO (pure)  |
| `journal`    | old values, and those that we may have written (pure)                            |
| `decisions`  | keep, write, restore, or leave alone, and why (pure)                             |
| `report`     | decisions as a table and as a node's annotation (pure)                           |
| `machine`    | reads and writes files, swap, threads and the latency bound                      |
| `keeping`    | the journal on the disk                                                          |
| `effects`    | performs decisions, the journal always ahead of the machine                      |
| `metrics`    | Prometheus metrics                                                               |
| `node`       | the node's annotation and its startup taint, by the API server                   |
| `service`    | the life of a tuner: pass after pass, then back                                  |
| `main`       | the command `bettong-node-tuner`                                                 |
"""
