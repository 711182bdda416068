"""Rows over a whole convex set as finitely many rows and cones, by duality.

Holds: sets as duality wants them, the limits of rows with their multipliers, what those prove, and the counterpart.
May know: the problem, its rows, proofs and audits of offline; index; lp.
Gives: a finite program that is the same problem, its prices as vectors with masses, and an answer that is proved.
"""
