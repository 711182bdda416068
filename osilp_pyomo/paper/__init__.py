"""The experiments of Zong and Jiang (arXiv:2603.16200) run again: ``osilp reproduce``.

Holds: the paper's instances, its algorithms as printed, its claims, and the page that compares.
May know: everything below the command line; nothing but the command imports it.
Gives: a page of claims with measured figures.
"""
