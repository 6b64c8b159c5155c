"""What becomes of a client's frame: read, divided by key, judged by its event times, numbered. Pure.

session      one client's frames in, records of the log out
requests     from the bytes of the wire to a hello, or a frame
body         a frame's messages as columns, and those that are refused
event_times  when messages happened
dividing     which messages go to which partition
numbering    what was last sent to each partition
care         how a frame is read that a sender died over
refusal      why a call ends, and nothing of gRPC

The sender runs it between a client and Kafka, `bettong.testing` in memory. Clocks are passed in; nothing here knows who
serves clients, or where records go.
"""
