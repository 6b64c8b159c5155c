"""The command `bettong`. A module or a package a command; what takes time to import is imported inside the command.

Commands parse, call and print; what they do is done elsewhere: `bettong.local` runs, `bettong.client` sends and
receives, `bettong.inspection` looks at what runs, `bettong.application` describes, and the services run themselves.
"""
