"""The driver's part of reference tables: loads them, stores their versions, and names each in the logs.

loading      calls `load()`, and encodes its result
spark_files  finds paths that Spark listed as empty
naming       appends a record that names a version to each partition's log
kept         one table: its next version, and the removal of versions that are no longer needed
reloading    all tables of an application, beside the schedule

A version is stored before any record names it, so a worker that reads the record finds the version.
"""
