"""The driver's part of reference tables: loads them, stores their versions, and names each in the logs.

loading      calls `load()`, and encodes its result
spark_files  finds paths that Spark listed as empty
naming       appends a record that names a version to each partition's log
kept         one table: its next version, and the removal of versions that are no longer needed
lost         the versions that the store has lost, and that are to be stored again
reading      reads the tables that a record sees, in a worker
reloading    all tables of an application, beside the schedule

A version is stored before any record names it, so a worker that reads the record finds the version.
"""
