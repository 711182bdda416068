"""Terms of objectives and rows that are not linear in the variables.

Holds: such terms in arrays with their derivatives, and the proof that they are convex or concave.
May know: rows of a problem and formulas in index; no Pyomo.
Gives: what a problem holds beside its linear part, and refusals with two points between which a term bends wrongly.
"""
