"""Interrupts that come at a line of one's choice."""

import sys


def interrupted_after(lines, files, act):
    """Do something that an interrupt ends after so many lines of some files; whether it came so far."""
    left = [lines]

    def trace(frame, event, _):
        if not frame.f_code.co_filename.endswith(files):
            return None if frame.f_code.co_filename.startswith("<") else trace
        left[0] -= event == "line"
        if left[0] < 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False
