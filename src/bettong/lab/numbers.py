"""Numbers for people."""


def shown(value: float) -> str:
    """A value for display: three significant digits, or the whole number from 1,000 on."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
