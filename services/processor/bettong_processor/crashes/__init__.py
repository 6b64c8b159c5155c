"""Messages that kill the worker which folds them: noticed, found, and left out from then on.

    fold ──> mark: this record is at work, outside of the process
       └─ the process dies ──> the next one finds the mark: one death at that offset
                                 └─ the second ──> trial: parts of the frame are folded in children that may die
                                                     └─ exclusion: a record of the log, before the frame is folded

marks   which record each partition is at, in shared memory; and the deaths counted there
trial   folding in a child
memory  how much is left for that
guard   folds a partition's records with all that
states  saves and restores states in the same way
watch   the thread that sees a record stand still
"""
