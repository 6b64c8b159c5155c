"""From a client's frame to records of the log: reads it, partitions it by key, checks event times, numbers it. Pure.

session      one client's frames in, records of the log out
requests     parses a hello, or a frame
body         a frame's messages as columns, and those that are refused
event_times  the event time of each message
dividing     which messages go to which partition
numbering    what was last sent to each partition
care         how to read a frame during which a sender crashed
refusal      why a call ends, independent of gRPC

The sender runs it between a client and Kafka, `bettong.testing` in memory. Clocks are passed in; nothing here knows who
serves clients, or where records go.
"""
