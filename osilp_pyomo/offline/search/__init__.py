"""Where a row is violated most: separation oracles.

Holds: the scan of an index with local search from its best points, and exact separation over convex sets.
May know: the problem and its rows, index and lp.
Gives: for an x the points whose rows it violates, the worst first.
"""
