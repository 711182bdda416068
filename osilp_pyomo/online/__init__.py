"""Arrivals decided one by one: policies, the loop over arrivals, controllers, programs, runs.

Holds: what learns a price and decides by it; stages, kernels, hindsight and chunks are rooms within.
May know: offline, index and lp; no Pyomo.
Gives: an :class:`~osilp_pyomo.online.program.OnlineProgram` with its controllers and runs.
"""
