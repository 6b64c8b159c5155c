"""The bound on what a sender holds for all its sessions together. Pure; used from one thread."""

# Credits flow again when this part of the bound is free, so that they do not come and go with every record.
_FREE_PART = 8


class Buffer:
    """Bytes of clients' frames that the log has not answered for, against their bound."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes = 0
        self.is_full = False
        self._bytes_max = bytes_max

    def add(self, size: int) -> None:
        """A frame came in."""
        self.bytes += size
        if self.bytes >= self._bytes_max:
            self.is_full = True

    def remove(self, size: int) -> None:
        """A frame was answered for."""
        self.bytes -= size
        if self.bytes <= self._bytes_max - self._bytes_max // _FREE_PART:
            self.is_full = False


class Progress:
    """How long the log has owed an answer. Times are of any clock that does not go back, in seconds."""

    def __init__(self) -> None:
        self._owed = 0
        self._since_s = 0.0

    def handed(self, now_s: float) -> None:
        """One more answer is owed."""
        if self._owed == 0:
            self._since_s = now_s
        self._owed += 1

    def heard(self, now_s: float) -> None:
        """The log gave some answer."""
        self._since_s = now_s

    def settled(self) -> None:
        """It owes one answer less."""
        self._owed -= 1

    def silent_s(self, now_s: float) -> float:
        """How long the log has been silent though it owes an answer; 0 when it owes none."""
        return now_s - self._since_s if self._owed else 0.0
