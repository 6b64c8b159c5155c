"""The resident schedule: one long-running Spark task a slot, each folding its share of the partitions.

driver      submits a job for each slot, deals the partitions, tells how it goes
dealing     which slot gets which partition: pure
slots       how many slots Spark's executors have now, and which of them have lost their task
task        what a Spark task does: it makes a loop of its process's parts
loop        reads, folds, writes; takes and lets go partitions; cuts increments
holding     one partition that a loop holds: its output under way, its increments
attendance  the thread that tells the store that the slot lives, and hears what it is to hold
measuring   lag, rate and latency of a partition
"""
