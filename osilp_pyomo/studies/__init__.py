"""Policies against hindsight, many times: tables, pictures, one page.

Holds: comparisons and their trials, files and executors; every picture, and the only file that knows matplotlib.
May know: online and offline; no Pyomo.
Gives: a :class:`~osilp_pyomo.studies.compare.Study`.
"""
