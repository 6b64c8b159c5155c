"""The partition worker: folds the frames of one partition of one stage. Pure but for what the user's code does.

partition   dedupes, runs the stage's operators, puts out frames, snapshots
rows        messages on their way through a stage, as objects or as columns
operators   map, filter, flat_map
stage_program                              a stage ready to run: operators and folds, each behind one interface
python_fold, compiled_fold, vectorized     stateful: the three ways to run it
state_codec, state_reading                 states of plain Python as bytes, and back
state_classes, state_parts                 which classes they may be of, and how values are taken apart
state_pickles                              states as signed pickles, where an application asks for them
compiling, kernel, compiled_run            functions compiled by Numba, with state or without
vectors                                    columns as a vectorized function sees them
state_array, key_table, prefetching        states as records of an array: of compiled and vectorized functions
exits       rows become frames with the numbers that make them effectively once
letters     messages that could not be processed
exclusions  messages that are left out, for they killed the worker; halving finds them
progress    which message a fold is at, for those who look on
"""
