"""Sends files of messages idempotently: a frame's sequence is the number of its last message in the file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from bettong.client.message_files import Format, Portion
from bettong.client.sender import Sender
from bettong.errors import BettongError, RefusedError

# Of the hash in a stream's name: enough that no two files share one.
_FINGERPRINT_BYTES = 16


def stream_of_file(path: Path, kind: Format) -> str:
    """The stream of a file, named after its content and its format, not after its path.

    So a file that was extended or corrected is another stream. Reads all of it. Raises BettongError.
    """
    try:
        with path.open("rb") as file:
            content = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_FINGERPRINT_BYTES))
    except OSError as error:
        raise BettongError(f"{path} cannot be read: {error.strerror}") from None
    return f"{kind}-{content.hexdigest()}"


def send_portions(sender: Sender, found: Iterable[Portion]) -> int:
    """Sends all of a file; returns the number of its messages, with those that were durable before.

    Raises RefusedError when the stream was fed before, but with other frames; and what the sender raises.
    """
    durable, last, count = sender.acknowledged, 0, 0
    for portion in found:
        if last < durable < portion.last:
            raise RefusedError(
                f"stream {sender.stream!r} was fed before, up to message {durable}, which is now inside a frame:"
                " send the same file with the same --frame, or another file under another name"
            )
        last = portion.last
        count += len(portion.body)
        if isinstance(portion.body, list):
            sender.send_rows(portion.body, sequence=last)
        else:
            sender.send_columns(portion.body, sequence=last)
    if last < durable:
        raise RefusedError(
            f"stream {sender.stream!r} was fed before, up to message {durable}, and this file ends at {last}: send"
            " another file under another name"
        )
    return count
