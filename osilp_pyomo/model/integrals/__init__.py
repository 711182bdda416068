"""Integrals and expectations in objectives and constraints.

Holds: ``integral``, ``expectation``, their nodes in Pyomo's expressions, and the Integral of pyomo.dae.
May know: the other files of ``model``, but for those that read whole models.
Gives: expressions that are linear in the variables, and whose coefficients are integrals.
"""
