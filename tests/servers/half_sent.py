"""A client of bare HTTP/2 that sends messages of gRPC in part, and leaves it at that."""

import select
import socket
import struct
import time

from bettong.closing import Closing
from bettong.local.addresses import LOOPBACK

_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GO_AWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_ACKNOWLEDGED, _END_HEADERS = 1, 4
_INITIAL_WINDOW = 4
_PIECE = 16_384


def message(data: bytes) -> bytes:
    """As gRPC puts it into a stream: not compressed, its length, and the bytes."""
    return struct.pack(">BI", 0, len(data)) + data


class HalfSender(Closing):
    """One connection, with calls that send as much of what they are given as the server lets them."""

    def __init__(self, port: int, *, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._begun_s = 0.0
        self._socket = socket.create_connection((LOOPBACK, port))
        self._readable = select.poll()  # unlike `select.select` it takes descriptors above 1,023
        self._readable.register(self._socket, select.POLLIN)
        settings = struct.pack(">HI", _INITIAL_WINDOW, 1 << 30)
        self._socket.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0, settings) + _grant(1 << 30)
        )
        self._initial = self._window = 65_535
        self._windows: dict[int, int] = {}
        self._left: dict[int, memoryview] = {}
        self._buffer = b""
        self.sent = 0
        self.is_closed = False

    def call(self, path: str, data: bytes) -> None:
        """A call of which `data` will be sent."""
        number = 2 * len(self._windows) + 1
        self._windows[number] = self._initial
        self._left[number] = memoryview(data)
        self._socket.sendall(_frame(_HEADERS, _END_HEADERS, number, _headers(path)))

    def run(self, seconds: float) -> None:
        """Sends and answers, until nothing more can be sent for as long, or the connection is closed."""
        quiet_s = self._begun_s = time.monotonic()
        try:
            while not self.is_closed and time.monotonic() - quiet_s < seconds:
                if self._push() | self._listen(0.01):
                    quiet_s = time.monotonic()
        except OSError:
            self.is_closed = True

    def close(self) -> None:
        """Goes away."""
        self._socket.close()

    def _push(self) -> bool:
        """Whether something could be sent."""
        before = self.sent
        for number, left in self._left.items():
            due = int((time.monotonic() - self._begun_s) * self._bytes_per_s) - self.sent
            size = min(len(left), self._windows[number], self._window, due)
            for start in range(0, max(size, 0), _PIECE):
                piece = bytes(left[start : min(start + _PIECE, size)])
                self._socket.sendall(_frame(_DATA, 0, number, piece))
                self.sent += len(piece)
                self._window -= len(piece)
                self._windows[number] -= len(piece)
            self._left[number] = left[max(size, 0) :]
        return self.sent > before

    def _listen(self, seconds: float) -> bool:
        """Whether the server let more be sent."""
        if not self._readable.poll(1000 * seconds):
            return False
        came = self._socket.recv(1 << 20)
        self.is_closed = not came
        self._buffer += came
        granted = False
        while len(self._buffer) >= 9 and len(self._buffer) >= 9 + int.from_bytes(self._buffer[:3], "big"):
            end = 9 + int.from_bytes(self._buffer[:3], "big")
            kind, flags = self._buffer[3], self._buffer[4]
            number, payload = int.from_bytes(self._buffer[5:9], "big"), self._buffer[9:end]
            self._buffer = self._buffer[end:]
            granted |= self._heard(kind, flags, number, payload)
        return granted

    def _heard(self, kind: int, flags: int, number: int, payload: bytes) -> bool:
        if kind == _SETTINGS and not flags & _ACKNOWLEDGED:
            for key, value in struct.iter_unpack(">HI", payload):
                if key == _INITIAL_WINDOW:
                    self._windows = {
                        each: left + value - self._initial for each, left in self._windows.items()
                    }
                    self._initial = value
            self._socket.sendall(_frame(_SETTINGS, _ACKNOWLEDGED, 0))
        elif kind == _PING and not flags & _ACKNOWLEDGED:
            self._socket.sendall(_frame(_PING, _ACKNOWLEDGED, 0, payload))
        elif kind == _WINDOW:
            more = int.from_bytes(payload, "big")
            if number == 0:
                self._window += more
            elif number in self._windows:
                self._windows[number] += more
            return True
        elif kind == _RESET or (kind == _HEADERS and flags & 1):
            self._left.pop(number, None)
        return False


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _grant(size: int) -> bytes:
    return _frame(_WINDOW, 0, 0, struct.pack(">I", size))


def _headers(path: str) -> bytes:
    """Each as a literal that nobody remembers (RFC 7541, 6.2.2)."""
    pairs = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "sender",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    return b"".join(
        b"\x00" + b"".join(bytes([len(text)]) + text.encode() for text in pair) for pair in pairs.items()
    )
