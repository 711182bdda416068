"""SemiInfiniteConstraint, and what its rule does while it is called."""
