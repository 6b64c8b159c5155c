"""`bettong top`: shows a running application in the terminal. It reads, and changes nothing.

Only what the command itself needs is imported with the command line; Textual is imported when it runs.
"""
