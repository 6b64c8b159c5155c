"""Operators: what each kind of computation does with a batch, independent of how its function is called."""
