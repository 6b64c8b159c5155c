"""The computations of a stage: what each kind does with a batch, written once, however its function is called."""
