"""The output of a stage: rows become numbered frames for sinks and other stages; failures become dead letters."""
