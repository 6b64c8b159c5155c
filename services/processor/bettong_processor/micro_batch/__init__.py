"""The micro-batch schedule: a Structured Streaming query hands the partitions' records to short tasks.

query       one query for all stages; `progress` reads Spark's progress reports
ticking     the driver advances time in idle partitions
task        folds the records of one partition in a Spark task
partitions  the partition workers of one Python process, and where their states come from
arrow_maps  passes a DataFrame's records to Python
replay      reads a range of a log, to fold it again
uploads     copies states from shared memory to the store once their output is durable
"""
