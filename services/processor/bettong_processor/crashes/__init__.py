"""Finds messages that kill the worker which folds them, and excludes them from then on.

    fold ──> mark, outside of the process: this record is being folded
       └─ the process dies ──> the next one finds the mark: one death at that offset
                                 └─ the second ──> trial: parts of the frame are folded in children that may die
                                                     └─ exclusion: a record of the log, before the frame is folded

marks   the record that each partition is folding, in shared memory; and the deaths counted there
trial   folding in a child process
memory  how much memory is available for that
guard   folds a partition's records with all that
states  saves and restores states in the same way
watch   the thread that detects a stalled record
"""
