"""load_controller: go on with a saved controller as if it had never stopped."""

from __future__ import annotations

from typing import Any

from osilp_pyomo._files import read_state
from osilp_pyomo.errors import SavedStateError
from osilp_pyomo.online.controller import Controller
from osilp_pyomo.online.policies import Policy
from osilp_pyomo.online.program import OnlineProgram
from osilp_pyomo.online.registry import POLICIES


def load_controller(path: Any, program: OnlineProgram, policy: Policy | None = None) -> Controller:
    """A controller that was saved by ``controller.save(path)``; it goes on as if it had never stopped.

    Parameters
    ----------
    path : path
        The file that ``save`` wrote.
    program : OnlineProgram
        The program it was made for; another one is refused.
    policy : Policy, optional
        Needed only for a policy of one's own, or one with a potential of one's own: code is never read from a file.

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
    saved = header["policy"]
    if policy is None:
        # A file names a policy of the package or none: it never decides what code runs.
        known = POLICIES.get(saved["name"])
        if known is None or saved["arguments"] is None:
            raise SavedStateError(
                f"'{path}' was saved with the policy {saved['text']}, which cannot be read from a file; give policy=..."
            )
        policy = known(**saved["arguments"])
    elif type(policy).__name__ != saved["name"]:
        raise SavedStateError(f"'{path}' was saved with the policy {saved['text']} (got {policy!r}).")
    null = arrays["null"]
    controller = Controller(
        program, policy, header["guard"], null, int(header["horizon"]), header["beyond"], int(header["seed"])
    )
    controller.resume(header, arrays)
    return controller
