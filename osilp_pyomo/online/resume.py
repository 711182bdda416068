"""load_controller: go on with a saved controller as if it had never stopped."""

from __future__ import annotations

import json
from typing import Any

from osilp_pyomo._files import read_state
from osilp_pyomo.errors import OptionError, SavedStateError
from osilp_pyomo.online.clock.times import Times
from osilp_pyomo.online.controller import BEYOND, GUARDS, Controller
from osilp_pyomo.online.policies import Policy, policy_record
from osilp_pyomo.online.program import OnlineProgram
from osilp_pyomo.online.registry import POLICIES
from osilp_pyomo.online.saved_state import check_header, read_forecast


def load_controller(path: Any, program: OnlineProgram, policy: Policy | None = None, *, log: Any = None) -> Controller:
    """A controller that was saved by ``controller.save(path)``; it goes on as if it had never stopped.

    Parameters
    ----------
    path : path
        The file that ``save`` wrote.
    program : OnlineProgram
        The program it was made for; another one is refused.
    policy : Policy, optional
        Needed only for a policy of one's own, or one with a potential of one's own: code is never read from a file.
    log : int or path, optional
        As in ``program.controller``; the log itself is not saved with the controller.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_program
    >>> program = demo_program()
    >>> controller = program.controller(osilp.MirrorDescent())
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "state.npz")
    ...     decision = controller.step(value=0.9, place=0.5)
    ...     controller.save(path)
    ...     again = load_controller(path, program)
    >>> again.t, again.reward
    (1, 0.9)
    """
    header, arrays = read_state(path)
    if header.get("program") != program.fingerprint:
        raise SavedStateError(
            f"'{path}' was saved for another program: its formulas, test functions or budgets differ. Compile the same "
            "model with the same grid and basis."
        )
    clock = header.get("clock")
    check_header(path, header, {"guard": GUARDS, "beyond": BEYOND})
    saved = header["policy"]
    policy = _policy(path, saved) if policy is None else _same_policy(path, saved, policy)
    null = arrays.get("null")
    if null is None or null.shape != (len(program.template.decisions),):
        raise SavedStateError(f"'{path}' is no state that controller.save wrote for this program and policy: no null.")
    # In continuous time the number of arrivals is estimated from that of the program.
    horizon = header["horizon"] if clock is None else program.horizon
    try:
        controller = Controller(
            program, policy, header["guard"], null.astype(float), horizon, header["beyond"], header["seed"],
            read_forecast(path, arrays, program), log, None if clock is None else Times.of_record(clock),
        )  # fmt: skip
    except (OptionError, TypeError, ValueError, ArithmeticError) as error:
        raise SavedStateError(f"'{path}' was saved with settings that this program cannot have ({error}).") from None
    controller.resume(path, header, arrays)
    return controller


def _policy(path: Any, saved: dict[str, Any]) -> Policy:
    """The policy that a file names, one of the package: it never decides what code runs."""
    known = POLICIES.get(saved["name"])
    if known is None or saved.get("arguments") is None:
        raise SavedStateError(
            f"'{path}' was saved with the policy {saved.get('text')}, which cannot be read from a file; give policy=..."
        )
    try:
        return known(**saved["arguments"])
    except (TypeError, ValueError, ArithmeticError, OptionError):
        raise SavedStateError(f"'{path}' was saved with settings that {saved['name']} does not have.") from None


def _same_policy(path: Any, saved: dict[str, Any], policy: Policy) -> Policy:
    """A policy that was given, if it is the one that was saved; settings that are code cannot be compared."""
    given = policy_record(policy)
    if given["name"] != saved["name"] or not _same(given["arguments"], saved.get("arguments")):
        raise SavedStateError(f"'{path}' was saved with the policy {saved.get('text')} (got {policy!r}).")
    return policy


def _same(given: Any, saved: Any) -> bool:
    """Whether settings are the same; tuples are lists in a file."""
    return given is None or saved is None or json.loads(json.dumps(given)) == saved
