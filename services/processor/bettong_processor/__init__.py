"""The processor: runs an application's stages as a Spark application.

    main        settings, waiting for Kafka and Redis, start and stop
    supervision runs the query, starts it again after a passing fault, tells live figures
    session     the Spark session
    query       the micro-batch schedule: one Structured Streaming query for all stages
    task        what one Spark task does with the records of one partition
    partitions  the partition workers of one Python process, and where their states come from
    programs    the application's stages, loaded and compiled once a process
    daemon      loads them before Spark forks its Python workers

It knows Spark; the folding itself is `bettong.worker`, which does not.
"""
