"""Cards: what a notebook shows of a value."""
