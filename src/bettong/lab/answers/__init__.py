"""The right answer to a load, and whether there is one."""
