"""What a policy goes through again: arrivals that came, at fewer points where columns are smooth.

Holds: the policy, the memory of arrivals, and the points that prices are practised on.
May know: policies, kernels and stages; no loop, no controller.
Gives: a policy and its memory, which the loop keeps beside the price.
"""
