"""Formulas at random, of two coordinates."""

_FUNCTIONS = ("exp", "sin", "cos", "atan", "tanh", "asinh", "sinh", "cosh", "floor", "ceil")
AXES = 2


def random_formula(depth, rng):
    """Shape and literals of a formula in prefix order."""
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.6:
            return [int(rng.integers(AXES))], []
        return ["#"], [repr(round(float(rng.normal()), 2))]

    def parts(count):
        shape, literals = [], []
        for _ in range(count):
            one, other = random_formula(depth - 1, rng)
            shape += one
            literals += other
        return shape, literals

    def square_plus(least):
        shape, literals = parts(1)
        return [("+", 2), "#", ("**", 2), *shape, "#"], [least, *literals, "2"]

    name = rng.choice(["+", "*", "-", "abs", "min", "max", "if", "function", "power", "sqrt", "log", "/"])
    if name == "function":
        shape, literals = parts(1)
        return [(str(rng.choice(_FUNCTIONS)), 1), *shape], literals
    if name in ("sqrt", "log"):
        shape, literals = square_plus("0.05")
        return [(str(name), 1), *shape], literals
    if name == "power":
        shape, literals = square_plus("0.1")
        return [("**", 2), *shape, "#"], [*literals, str(rng.choice(["1.5", "-1", "-2.5", "0.5", "3"]))]
    if name == "/":
        one, other = parts(1), square_plus("0.3")
        return [("/", 2), *one[0], *other[0]], [*one[1], *other[1]]
    if name == "if":
        test, rest = parts(2), parts(2)
        return [("if", 3), (str(rng.choice(["<=", "<"])), 2), *test[0], *rest[0]], [*test[1], *rest[1]]
    count = {"-": 1, "abs": 1, "+": 2, "*": 2}.get(str(name), int(rng.integers(2, 4)))
    shape, literals = parts(count)
    return [(str(name), count), *shape], literals
