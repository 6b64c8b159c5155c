"""The micro-batch schedule: a Structured Streaming query hands the partitions' records to short tasks.

query       one query for all stages, and Spark's words for how it goes (progress)
ticking     the driver lets time pass in partitions that are idle
task        what one Spark task does with the records of one partition
partitions  the partition workers of one Python process, and where their states come from
arrow_maps  how a data frame's records are handed to Python
replay      a stretch of a log, to fold it again
uploads     states go from shared memory to the store, once their output is durable
"""
