"""Policies against hindsight, many times: tables, pictures, one page.

Holds: comparisons and their trials, files and executors; their pictures and reports.
May know: show, online and offline; no Pyomo.
Gives: a :class:`~osilp_pyomo.studies.compare.Study`.
"""
