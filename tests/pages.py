"""Pages with code: what their blocks print is what stands below them."""

import contextlib
import doctest
import io
import re

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Times, sizes in memory, boxes of a proof, points of an audit, rows that exchange added, and what rounding leaves, differ
# from run to run or from one processor to the next.
_TIMES = re.compile(r"[\d.,]+(e[+-]?\d+)?( \+- [\d.,]+)? (s|us|ms|MB|kB|boxes|fresh points|semi-infinite rows held)\b")
_TINY = re.compile(r"\b(gap|by|violation|than) (0|[\d.]+e-(0[6-9]|[1-9]\d))(?![\d.])")


def blocks(text):
    """Language and text of each fenced block."""
    return [(match[1], match[2]) for match in FENCE.finditer(text)]


def run(text, names):
    """Run the Python blocks of a page one after the other; (printed, what the page says it prints or None) of each."""
    found, done = blocks(text), []
    for number, (language, source) in enumerate(found):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(source, names)
        said = found[number + 1] if number + 1 < len(found) else ("", "")
        done.append((printed.getvalue(), said[1] if said[0] == "output" else None))
    return done


def same(printed, said):
    """Whether both are the same but for times, sizes and rounding; ``...`` stands for anything."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(_plain(said), _plain(printed), flags)


def _plain(text):
    return _TINY.sub(r"\1 tiny", _TIMES.sub("#", text)) + "\n"
