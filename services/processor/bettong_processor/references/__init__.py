"""The driver's part of reference tables: loads them, stores their versions, and names each in the logs.

loading      what `load()` gives, as bytes
naming       a record of each partition's log names a version
kept         one table: its next version, and those that nobody needs any more
reloading    all tables of an application, beside the schedule

A version is stored before any record names it, so whoever meets the record finds it.
"""
