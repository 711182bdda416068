"""Problems with decisions that react, without the form that their rules were given.

Holds: such problems in arrays, scenarios with recourse of their own, dual decision rules, vertices of sets, and bounds.
May know: families, rules and audit, the index, and lp; no Pyomo.
Gives: what no policy can beat, and the best policy where the set has few vertices.
"""
