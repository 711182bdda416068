"""The only subpackage that reads Pyomo: from a model to the values that offline and online work on.

Holds: SemiInfiniteConstraint and Profile, the tracing of rules, the reading of stages.
May know: online, offline, index and lp.
Gives: a traced problem for `offline`, a template with its arrivals for `online`.
"""
