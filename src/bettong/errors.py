"""Every error that Bettong raises on purpose.

    BettongError
    ├── ApplicationError   the description of an application is wrong
    ├── SettingsError      settings are missing or contradict each other
    ├── FrameError         bytes that are not a frame, or a frame that breaks its contract
    ├── SchemaError        values that do not fit a schema
    │   └── UnfitValueError       a value that is none of its field's (see `schema.form`)
    ├── SnapshotError      a snapshot that cannot be trusted
    │   └── StateChangedError     a state that another version of the application has made
    ├── LogError           the log (Kafka) cannot do what is asked of it
    │   ├── LogUnavailableError   no broker answers within the wait that was asked for
    │   └── LogTruncatedError     records that are needed are no longer, or not, in the log
    ├── PoisonError        a message that a computation with on_error="stop" cannot process
    ├── StoreError         the store (Redis, a folder, an object store) cannot be reached or refuses
    │   ├── DeadlyStateError        workers die of restoring a state
    │   ├── ReferenceLostError      a version of a reference table is not there any more
    │   ├── StoreUnavailableError   it does not answer
    │   └── SupersededError         another processor of the application folds by now
    ├── ReferenceLoadError the table of a `join_reference` cannot be loaded
    ├── ClientError        a client's call to a sender or receiver failed
    │   └── RefusedError   the service refused it for good: sending it again is no use
    ├── Refusal            a session with a client ends, with this status (see `ingest.refusal`)
    ├── WrongColumnsError  a vectorized function returned no such columns (see `worker.calling.vectors`)
    ├── CaseError          a case of `bettong.testing` that its application cannot meet
    ├── NotAtRestError     an application that is to be changed runs, or has not come to the end of its log
    ├── LabError           a measurement that failed, or metrics that cannot be read or compared
    │   └── LateError             what was sent did not come out in time
    ├── LocalError         a part that Bettong runs on this machine cannot be started
    └── ClusterError       a Kubernetes cluster cannot be reached, refuses, or has not what was asked for
        ├── ClusterForbiddenError     it does not allow a call
        └── ClusterUnavailableError   it did not answer, or not to the end

Beside the tree, for they end within the library, in a test, or with the process:

    Exception
    └── UnfitError         a state that cannot be written (see `worker.state.codec`)

    AssertionError
    ├── CheckError         a case of `bettong.testing` has different results in two of its variations
    └── ReplayError        a record that was folded again led to something else

    KeyboardInterrupt
    └── Terminated         SIGTERM or SIGHUP came (see `local.interrupts`)

An error's text names the object, what was expected and the remedy, in one line. Errors of other libraries are turned
into these at the edges. `exit_code` is what the command line ends with.
"""

from typing import ClassVar


class BettongError(Exception):
    """Root of the tree; catch it to catch all of Bettong's own errors."""

    exit_code: ClassVar[int] = 1


class ApplicationError(BettongError):
    """The description of an application is wrong; raised while it is built, before anything runs."""

    exit_code = 3


class SettingsError(BettongError):
    """Settings are missing or wrong; the text lists all faults at once."""

    exit_code = 4


class FrameError(BettongError):
    """Bytes that are not a frame, or a frame that violates the contract in `protos/bettong/v1/frame.proto`."""


class SchemaError(BettongError):
    """Values, columns or a class do not fit a schema."""


class SnapshotError(BettongError):
    """A snapshot is damaged, or belongs to something else."""


class StateChangedError(SnapshotError):
    """A saved state was made by another version of the application: an operator must decide what to do with it."""

    exit_code = 3


class LogError(BettongError):
    """The log cannot do what is requested."""

    exit_code = 5


class LogUnavailableError(LogError):
    """No broker answered in time. Nothing is lost: try again."""


class LogTruncatedError(LogError):
    """Records that a fold needs are missing from the log. The stage stops rather than produce wrong results."""

    exit_code = 9


class PoisonError(BettongError):
    """A computation with `on_error="stop"` cannot process a message. The same code would fail on it again.

    `index`: of the message in its frame; -1 for a timer, which no message triggered.
    """

    exit_code = 8

    def __init__(self, text: str, *, computation: str = "", reason: str = "", index: int = 0) -> None:
        super().__init__(text)
        self.computation = computation
        self.reason = reason
        self.index = index


class StoreError(BettongError):
    """The store of snapshots and metrics cannot be reached or refuses: Redis, a folder, an object store."""

    exit_code = 5


class DeadlyStateError(StoreError):
    """Restoring a state kills workers. Its partition waits; the text names the remedy."""


class ReferenceLostError(StoreError):
    """A version of a reference table that messages in the log use is missing from the store, or damaged."""

    exit_code = 9  # as for missing records: other errors of a store are transient, and retried


class StoreUnavailableError(StoreError):
    """The store did not answer in time. Nothing is lost: try again."""


class SupersededError(StoreError):
    """Another processor of the application has begun to fold. Nothing is lost: this one stands by."""


class ReferenceLoadError(BettongError):
    """`load()` of a reference table has failed, or has returned something else. It may succeed later."""


class ClientError(BettongError):
    """A call to a sender or receiver failed for now: connect again and resend."""

    exit_code = 5


class RefusedError(ClientError):
    """A sender or receiver refused a call for good: an unknown name, a wrong schema, a frame too large."""

    exit_code = 1


class CaseError(BettongError):
    """A test case is wrong: an unknown source, a message of another class, time that goes back."""


class NotAtRestError(BettongError):
    """An application runs, has not folded all of its log, or has clients whose frames may be in the log in part."""


class LabError(BettongError):
    """A measurement failed, or its metrics cannot be read or compared."""


class LateError(LabError):
    """What a run sends did not get there, or its results did not come, in time."""


class LocalError(BettongError):
    """A part that Bettong runs on this machine cannot be started or has died for good."""

    exit_code = 6


class ClusterError(BettongError):
    """A Kubernetes cluster cannot be reached, does not allow a call, or lacks what was requested."""

    exit_code = 11


class ClusterForbiddenError(ClusterError):
    """A cluster does not allow a call: a permission is missing, which the text names where the cluster does."""


class ClusterUnavailableError(ClusterError):
    """A cluster did not answer. It may have executed the last request: check it."""


# A process that ends with one of these would do so again after a restart, with the same code, settings and log. An
# operator must act.
FINAL_ERRORS: tuple[type[BettongError], ...] = (
    ApplicationError,
    LogTruncatedError,
    PoisonError,
    ReferenceLostError,
    SettingsError,
    StateChangedError,
)
