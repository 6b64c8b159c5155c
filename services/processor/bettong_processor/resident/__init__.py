"""The resident schedule: one long-running Spark task a slot, each folding its share of the partitions.

driver            submits a job for each slot, runs the assignor, reports progress
assignor          checks which slots live, and publishes the assignment of partitions to slots
assignment        which slot gets which partition: pure
slots             how many slots Spark's executors have now, and which of them have lost their task
task              the Spark task: it connects, and runs a loop
loop              reads, folds, writes; acquires and revokes partitions; saves increments
active_partition  one partition that a loop folds: its output in flight, its pending snapshots
snapshot_pacing   how often a partition is saved: pure
heartbeat         the thread that sends the slot's heartbeats, and receives its desired assignment
measuring         rate and latency of a partition
"""
