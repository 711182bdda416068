"""Proofs that rows hold over their whole index.

Holds: rows enclosed over boxes, bounds from enclosures, branch and bound, and what is proved of each family.
May know: the problem, its rows and searches, and enclosures of formulas in index.
Gives: for an x what no point of the index exceeds a row by, or points that do.
"""
