"""The processor: runs an application's stages as a Spark application.

    main        settings; Java, which starts while the rest is loaded
    java        Spark's Java, and its context
    service     waiting for Kafka and Redis, start and stop
    supervision runs a schedule, starts it again after a passing fault, reports live metrics
    warming     Python started on every slot before it is needed
    resident    the default schedule: long-running tasks
    micro_batch the other one: a Structured Streaming query, for work that feeds Spark SQL
    restoring   partition workers restored from saved increments
    stamping    the headers of a record's output: its times, and its trace
    programs    the application's stages, loaded and compiled once a process
    daemon      loads them before Spark forks its Python workers
    reporting   live metrics of partitions

It depends on Spark; the folding itself is `bettong.worker`, which does not.
"""
