"""A finite LP or MILP in arrays, and who solves it.

Holds: the LP and its units, HiGHS, and the dual of LPs with few rows and very many columns.
May know: arrays only; no index, no row of a continuum, no model.
Gives: :class:`~osilp_pyomo.lp.finite.FiniteLP` in, :class:`~osilp_pyomo.lp.highs.LPSolution` out.
"""
