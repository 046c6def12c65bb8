"""Compares the table of conditions and their results with cel-python.

usage: cel_cases.py TABLE [--update]

Each line of the table is `bindings | condition | result`, the result true, false or error. The
library's own test reads the same table; this one asks CEL. --update writes CEL's answers for the
conditions below.
"""
import itertools
import pathlib
import random
import sys

import celpy
from celpy import celtypes

BINDINGS = [
    "A=4 B=6 C=64 i=3 j=-2 p=true q=false r=0.125 mode=tanh dtype=bf16",
    "A=0 B=1 C=8192 i=0 j=7 p=false q=false r=-1e-06 mode=none dtype=f32",
    "A=128 B=16 C=100 i=-9 j=4 p=true q=true r=0.0 mode=tanh dtype=f16",
]

CONDITIONS = """
A == 4
A != 4
A < B
A <= 4
A > B
A >= B
4 == A
100 < C
!(A == 4)
!!(A == 4)
A + B == 10
A - B < 0
A * B >= 24
C / B
C / B == 10
C % B == 4
C % 16 == 0
i % 2 == 1
i % 2 == -1
j % 4 == -2
i / 2 == -4
i / 2 == 1
-i == 9
- i < j
A + B * C == 388
(A + B) * C == 640
A - B - C == -66
C / A / B == 2
C % A % B == 0
2 * A % 3 == 2
A in [4, 8]
A in []
A in [1, 2, 3, 4]
!(A in [4, 8])
C in [64, 128] && A > 1
p
!p
p && q
p || q
p == q
p != q
p < q
q <= p
true
false
true && p
false || q
p && A > 1 || q
p || A > 1 && q
(p || A > 1) && q
!(p && q)
!p || !q
p ? A > 1 : B > 1
p ? true : false
(p ? A : B) == 4
p ? q ? true : false : true
A > 1 ? A > 2 ? true : false : A == 0
(A > B ? A : B) * 2 == 12
A / 0 == 1
A / 0 == 1 || p
A / 0 == 1 && p
p || A / 0 == 1
q && A / 0 == 1
A % 0 == 0
C / A > 3
A != 0 && C / A > 3
A == 0 || C / A > 3
A > 0 ? C / A > 3 : false
(A == 0 ? 1 : C / A) == 1
!(C / A > 3)
9223372036854775807 > A
9223372036854775807 + A > 0
-9223372036854775808 < j
-9223372036854775808 - A < 0
9223372036854775807 * 2 == 0
-(-9223372036854775808) > 0
-9223372036854775808 / -1 == 0
0x10 == B
0xff > A
mode == "tanh"
mode != "tanh"
mode == 'none'
mode in ["none"]
!(mode in ["none", "tanh"])
mode == "tanh" && A > 1
"tanh" == mode
"a" == "a"
"a" == "b"
"a" != "b"
"a" < "b"
"b" <= "a"
"a" in ["a", "b"]
"c" in ["a", "b"]
"\\x41" == "A"
"\\u0041" == 'A'
r"\\n" == "\\\\n"
"\\101" == "A"
"it's" == 'it\\'s'
dtype(x) == "bf16"
dtype(x) != "bf16"
dtype(x) in ["f16", "bf16"]
!(dtype(x) in ["f16", "bf16"])
dtype(x) == dtype(y)
dtype(x) == "f32" || C >= 100
A < B == true
A < B == (B < C)
A == B == false
1 < 2 == true
A < B && B < C
A + 1 > B - 1 == p
i < 0 || j < 0
i * j < 0
i - j == 5
-(i + j) == -1
--A == 4
!p == q
!p && !q || p && q
1 + 2 * 3 - 4 / 2 == 5
10 - 4 - 3 == 3
100 / 10 / 5 == 2
7 % 4 % 2 == 1
-7 / 2 == -3
-7 % 2 == -1
7 / -2 == -3
7 % -2 == 1
2 > 1 // a remark
r == 0.125
r != 0.125
0.125 == r
r < 1e-5
r <= 1.25E-1
r > -1e-06
r >= .125
r == -0.0
r in [0.125, 1.0]
!(r < 0.5) || p
(p ? 0.5 : 1.5) > r
1.5 < 2.5
""".strip("\n").split("\n")


def random_condition(rng, depth):
    """A condition over integers and bools that both CEL and the subset can parse."""
    if depth == 0:
        return rng.choice(["p", "q", "A == 4", "C % 16 == 0", "i < j", "B in [1, 6]", "C / A > 3"])
    kind = rng.randrange(6)
    if kind == 0:
        return f"!({random_condition(rng, depth - 1)})"
    if kind == 1:
        return (f"({random_condition(rng, depth - 1)} ? {random_condition(rng, depth - 1)} : "
                f"{random_condition(rng, depth - 1)})")
    if kind in (2, 3):
        sign = rng.choice(["&&", "||"])
        return f"({random_condition(rng, depth - 1)} {sign} {random_condition(rng, depth - 1)})"
    left, right = (f"({rng.choice('ABCij')} {rng.choice('+-*/%')} {rng.randrange(-3, 9)})"
                   for _ in range(2))
    return f"{left} {rng.choice(['==', '!=', '<', '<=', '>', '>='])} {right}"


def activation(bindings):
    values = {}
    for pair in bindings.split():
        name, value = pair.split("=")
        if value in ("true", "false"):
            values[name] = celtypes.BoolType(value == "true")
        elif name == "r":
            values[name] = celtypes.DoubleType(value)
        elif name in ("mode", "dtype"):
            values[name] = celtypes.StringType(value)
        else:
            values[name] = celtypes.IntType(int(value))
    dtype = values.pop("dtype")
    values["x"] = values["y"] = celtypes.StringType("tensor")
    return values, {"dtype": lambda tensor: dtype}


def answer(bindings, condition):
    """CEL's result: true, false or error. A result that is not a boolean counts as an error."""
    values, functions = activation(bindings)
    environment = celpy.Environment()
    try:
        result = environment.program(environment.compile(condition), functions).evaluate(values)
    except (celpy.CELEvalError, celpy.CELParseError):
        return "error"
    return str(bool(result)).lower() if isinstance(result, celtypes.BoolType) else "error"


def cases():
    rng = random.Random(7)
    made = [random_condition(rng, depth) for depth in (1, 2, 3) for _ in range(20)]
    return itertools.product(BINDINGS, CONDITIONS + made)


def main(table, *options):
    path = pathlib.Path(table)
    if options == ("--update",):
        lines = []
        for bindings, condition in cases():
            lines.append(f"{bindings} | {condition} | {answer(bindings, condition)}\n")
        path.write_text("".join(lines))
    lines = path.read_text().splitlines()
    wrong = 0
    for line in lines:
        bindings, rest = line.split(" | ", 1)
        condition, result = rest.rsplit(" | ", 1)
        found = answer(bindings, condition)
        if found != result:
            wrong += 1
            print(f"{condition} with {bindings}: the table says {result}, CEL {found}")
    print(f"cel: {len(lines)} cases, {wrong} differ")
    return 1 if wrong or len(lines) < 300 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
