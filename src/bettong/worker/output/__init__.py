"""What leaves a stage: rows become numbered frames for sinks and other stages; what failed becomes dead letters."""
