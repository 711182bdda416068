"""Rows that hold for every point of an index, and the methods that solve them.

Holds: the problem in arrays, exchange, projection, counterpart, prices, the audit, and results.
May know: lp and index; no Pyomo, no arrival.
Gives: a :class:`~osilp_pyomo.offline.results.Result` in the user's names.
"""
