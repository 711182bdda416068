"""Points, sets and functions of the index, on arrays.

Holds: domains and convex sets, grids, test functions, curves, formulas with their derivatives and curvature.
May know: lp (some sets need one); no row, no decision, no model.
Gives: points with weights, test functions as matrices, the farthest point of a set in a direction.
"""
