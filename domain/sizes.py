"""Sizes, as people write them."""


def size(number: int) -> str:
    """Return a number of bytes as people write it."""
    if number < 10_000:  # noqa: PLR2004
        return f"{number:,} bytes"
    if number < 1_000_000:  # noqa: PLR2004
        return f"{number / 1_000:,.1f} KB"
    return f"{number / 1_000_000:,.1f} MB"
