"""What the command `bettong` ends with. The codes of errors are those of the error tree."""

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
    LogError.exit_code: "Kafka, Redis, a sender or a receiver cannot be reached",
    LocalError.exit_code: "a part that runs on this machine cannot be started, or died for good",
    NOT_RUNNING: "status: something does not go on; up: it runs, but a service waits; health: the processor does not go"
    " on; k8s: not all is ready",
    PoisonError.exit_code: 'a computation with on_error="stop" cannot process a message; mend it, then start again',
    LogTruncatedError.exit_code: "records, or a reference table, that a state needs are gone; an operator has to act",
    BROKEN: "chaos: an invariant is broken, the report names it; lab: an objective is missed, or a metric became worse",
    ClusterError.exit_code: "k8s: the cluster cannot be reached, does not allow it, or has not what was asked for",
    INTERRUPTED: "ended by Ctrl-C",
    TERMINATED: "ended by SIGTERM",
}

AT_THE_START = """\
`bettong up` ends with 0 only when all of it goes on: the processor holds its partitions and can go on from what is
kept, the receiver has opened the destination of each sink, the sender the topic of each source. Else it says which
service, why, and what to do:

| at the start | exit code of `up` | and then |
| --- | --- | --- |
| a process ends for good: a changed state, a function that cannot be compiled, a wrong setting, a trimmed log | its own: 3, 3, 4, 9 | all is stopped, what is kept stays; `run` likewise |
| a process dies otherwise, or does not answer | 6 | all is stopped; `run` likewise |
| all answer, but 10 s later a service waits: for a table, a destination, a source's topic, Kafka | 7 | all runs on, and goes on by itself once that is mended; `run` says the reason and runs on |
| all answer, then a process ends for good: a message that it cannot process | its own: 8 | the others run on; `run` says so and runs on |
"""  # noqa: E501 - rows of a table
