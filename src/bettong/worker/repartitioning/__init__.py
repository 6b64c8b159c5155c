"""An application's snapshots for another number of partitions, made from those that it has. Pure.

delivery        who has sent what: one table for all new partitions
event_clocks    how far event time has come there
heads           all of a new partition's snapshot but its states
states          the states, by key
"""
