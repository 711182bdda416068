"""What people see of a value: its picture, its table, its formula, its page.

Holds: pictures (one file knows matplotlib), pieces of HTML, and what results, prices, programs, runs and rules show.
May know: online, offline and index; no Pyomo. The rooms below do not know it: a value that shows itself names its kind,
and ``_displays.py`` loads the file that draws it when it is asked for.
Gives: figures and texts.
"""
