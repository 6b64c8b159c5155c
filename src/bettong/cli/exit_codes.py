"""Exit codes of the command `bettong`. The codes of errors come from the error tree."""

from bettong.errors import (
    ApplicationError,
    BettongError,
    ClusterError,
    LocalError,
    LogError,
    LogTruncatedError,
    PoisonError,
    SettingsError,
)

USAGE = 2
NOT_RUNNING = 7
BROKEN = 10
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
TERMINATED = 143  # 128 + SIGTERM

MEANINGS = {
    0: "done",
    BettongError.exit_code: "something went wrong; the one line on standard error says what to do",
    USAGE: "the command line is wrong",
    ApplicationError.exit_code: "the application is wrong",
    SettingsError.exit_code: "a setting is missing or wrong",
    LogError.exit_code: "Kafka, Redis or the store of snapshots cannot be reached, or refuses; a sender or a receiver"
    " cannot be reached",
    LocalError.exit_code: "a process on this machine cannot be started, or ended for good",
    NOT_RUNNING: "status: something does not work; up: it runs, but a service waits; health: the processor makes no"
    " progress; k8s: not everything is ready",
    PoisonError.exit_code: 'a computation with on_error="stop" cannot process a message; fix it, then start again',
    LogTruncatedError.exit_code: "records, or a reference table, that a state needs are gone; an operator has to act",
    BROKEN: "chaos: an invariant is broken, the report names it; lab: an objective is missed, no rate is sustained,"
    " something may grow, or a metric became worse",
    ClusterError.exit_code: "k8s: the cluster cannot be reached, refuses the request, or lacks what it names",
    INTERRUPTED: "ended by Ctrl-C",
    TERMINATED: "ended by SIGTERM",
}

AT_THE_START = """\
`bettong up` ends with 0 only when all services work: the processor holds its partitions and can resume from the data
that is kept, the receiver has opened the destination of each sink, the sender the topic of each source. Otherwise it
prints which service waits, why, and what to do:

| at the start | exit code of `up` | and then |
| --- | --- | --- |
| a process ends for good: a changed state, a function that cannot be compiled, a wrong setting, a trimmed log | its own: 3, 3, 4, 9 | everything is stopped, kept data stays; `run` does the same |
| a process dies otherwise, or does not answer | 6 | everything is stopped; `run` does the same |
| all answer, but 10 s later a service waits: for a table, a destination, a source's topic, Kafka | 7 | everything keeps running, and resumes by itself once the cause is fixed; `run` prints the reason and keeps running |
| all answer, then a process ends for good: a message that it cannot process | its own: 8 | the others keep running; `run` reports it and keeps running |
"""  # noqa: E501 - rows of a table
