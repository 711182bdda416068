"""Ordinary models made robust.

Holds: which data are uncertain, what of a model is silently nominal, substitution, ``robustify``, and the solver that
takes the call of PyROS.
May know: everything below it; the verbs that solve as well.
Gives: a new model with semi-infinite rows under the names of the old one, and what each component came from.
"""
