"""Points, sets and functions of the index, on arrays.

Holds: domains and convex sets, grids, test functions, curves, formulas with derivatives, curvature and enclosures.
May know: lp (some sets need one); no row, no decision, no model.
Gives: points with weights, test functions as matrices, farthest points of sets, what a formula can be over boxes.
"""
