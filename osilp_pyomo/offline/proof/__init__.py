"""Proofs that rows hold over their whole index: enclosures, bounds on boxes, branch and bound, sorted sweeps."""
