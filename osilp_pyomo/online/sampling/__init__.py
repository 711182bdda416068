"""From arrivals that were seen, or are foretold, to a price.

Holds: samples of the arrivals ahead, their copies, the problem that they make on what is left, and trust in forecasts.
May know: programs, policies, the history and forecasts; no loop and no controller.
Gives: a dual, and what the sample does on ties.
"""
