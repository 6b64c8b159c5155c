"""The command `bettong`: one module or package for each command. Slow imports are made inside the command.

Commands parse, call and print; the work is done elsewhere: `bettong.local` runs, `bettong.client` sends and
receives, `bettong.inspection` looks at what runs, `bettong.application` describes, and the services run themselves.
"""
