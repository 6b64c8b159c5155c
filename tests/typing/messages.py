"""What the pipelines here are about."""

from dataclasses import dataclass
from typing import Annotated

import bettong

Symbol = Annotated[str, bettong.Width(8)]


@dataclass
class Trade:
    symbol: Symbol
    venue: bettong.u16
    price: float
    at: int


@dataclass
class Quote:
    symbol: Symbol
    bid: float


@dataclass
class Alert:
    symbol: Symbol
    text: Annotated[str, bettong.Width(16)]


@dataclass
class Volume:
    symbol: Symbol
    trades: int
    high: float


@dataclass
class Seen:
    trades: int = 0
    high: float = 0.0


@dataclass
class Watched:
    symbol: str = ""
    quiet_at: bettong.Timer = bettong.NEVER
