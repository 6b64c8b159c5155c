"""`bettong top`: the terminal's picture of a running application. It reads, and changes nothing.

Only what the command itself needs is imported with the command line; Textual comes when it runs.
"""
