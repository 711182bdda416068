"""One arrival: its data as numbers, and its own small problem.

Holds: the template that all arrivals share, batches of them on the grid, and the solvers of a stage.
May know: offline, index and lp; no policy, no loop.
Gives: an evaluator (data to use and value) and a stage solver (price to decision).
"""
