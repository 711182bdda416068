"""Problems that are convex in their variables.

Holds: linear rows that touch convex ones, the loop over them, bounds from multipliers, and integers beside them.
May know: the problem, its curved terms, searches, proofs and audit, and lp; no Pyomo.
Gives: how such a problem ended, from which methods make what every method gives.
"""
