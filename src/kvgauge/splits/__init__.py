"""Other ways to divide serving than over equal ranks: shared prefixes, offload, disaggregation."""

from kvgauge.splits.figures import KINDS, Assumption, Figure, Split
from kvgauge.splits.splitting import SplitAnswer, splits

__all__ = ["KINDS", "Assumption", "Figure", "Split", "SplitAnswer", "splits"]
