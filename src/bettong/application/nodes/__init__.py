"""Nodes: what an application consists of, as immutable data. What `Stream` describes with, and `plan` reads.

Each module holds one kind of node, and the function that makes it of what a method of `Stream` was given: it checks
all of that, and raises ApplicationError, which names the node. Nothing here knows `Stream`, or runs a message.
"""
