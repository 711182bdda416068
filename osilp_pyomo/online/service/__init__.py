"""What a controller needs beside decisions to run in a service.

Holds: the log of decisions, quotes, what is left along the index.
May know: programs, the loop and the state; no controller.
Gives: frames and numbers in the user's names.
"""
