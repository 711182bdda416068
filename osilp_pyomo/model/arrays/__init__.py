"""Rows by arrays: trees whose leaves are arrays, numpy over the index, and dot.

Holds: array leaves, array expressions and symbols of the index, blocks of terms as light nodes of Pyomo, ``dot``.
May know: Pyomo's nodes and components, and no other file of its room.
Gives: nodes that Pyomo reads as terms and this package as arrays.
"""
