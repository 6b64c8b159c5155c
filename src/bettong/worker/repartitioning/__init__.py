"""The snapshots of an application with another number of partitions, from those of the one that it has. Pure.

delivery        who has sent what: one table for all new partitions
event_clocks    how far event time has come there
heads           all of a new partition's snapshot but its states
states          the states, by key
"""
