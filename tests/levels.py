"""How much the tests try: ``LEFTFOLD_TESTS`` is read here, and nowhere else.

========  ===============  ==========================================================================
quick     ``make test``    what finds nearly every fault, in minutes: sweeps and examples are sampled,
                           by rules without chance; the program starts warm (`tests.app.warm`)
whole     ``.ci/run``      every call of every sweep, all examples; the program starts cold
soak      ``make soak``    other random examples each time, and many of them
========  ===============  ==========================================================================
"""

import os

LEVELS = ("quick", "whole", "soak")
LEVEL = os.environ.get("LEFTFOLD_TESTS") or "quick"
if LEVEL not in LEVELS:
    raise SystemExit(f"LEFTFOLD_TESTS={LEVEL}: it is one of {', '.join(LEVELS)}")


def at_level(*, quick, whole, soak=None):
    """Return the value for the level; a soak is like the whole, if it has none of its own."""
    if LEVEL == "quick":
        return quick
    return whole if LEVEL == "whole" or soak is None else soak


def examples(whole):
    """Return how many examples of a property are tried, where CI tries *whole*."""
    return at_level(quick=max(whole // 4, 10), whole=whole, soak=whole * 20)
