"""The same arrivals, all known at once: what an online run is compared with.

Holds: the LP of linear stages and the dual method for concave ones.
May know: stages, offline, index and lp; no policy.
Gives: the optimum of a batch, and its prices.
"""
