"""The partition worker: folds the frames of one partition of one stage. Pure, apart from the user's own code.

partition      dedupes, runs the stage's operators, emits frames, makes snapshots
batch          rows on their way through a stage
operators/     what each kind of computation does with a batch
calling/       how a user's function is called: message by message, compiled, over whole columns
state/         the states of a computation's keys, and how they are saved and restored
output/        rows become numbered frames for sinks and other stages; failed messages become dead letters
stage_program  a stage ready to run: kernels, and how operators, callings and states are put together
exclusions     messages that are left out because they killed the worker; halving finds them
progress       which message a fold is at, for other threads and for crash reports
"""
