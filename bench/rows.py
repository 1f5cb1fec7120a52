"""What a measurement hands back, and how figures are written."""
from dataclasses import dataclass, field

import pairs


@dataclass
class Row:
    what: str
    ours: str
    bound: str = ""
    met: bool | None = None  # None: there is no bound, or it could not be measured
    peers: list = field(default_factory=list)
    section: str = "budget"  # or "more": figures without a budget
    raw: dict = field(default_factory=dict)


def ratio_text(value):
    return f"{value.median:.3f}× [{value.low:.3f}, {value.high:.3f}]"


def ns_text(value):
    return f"{value.median:.0f} ns [{value.low:.0f}, {value.high:.0f}]"


def ratio_row(what, value, bound, peers=(), **more):
    return Row(what, ratio_text(value), f"≤ {bound:g}×", pairs.ratio_is_met(value, bound),
               list(peers), **more)


def ns_row(what, value, bound, peers=(), **more):
    """Met when the interval's upper end is within the bound."""
    return Row(what, ns_text(value), f"≤ {bound:.0f} ns", value.high <= bound, list(peers), **more)
