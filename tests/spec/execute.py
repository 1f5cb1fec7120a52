"""Runs a block of a document."""

import ast


def execute(text, filename, ns):
    """Runs the text as it is. What its last expression gives is kept as `_`, as at a prompt."""
    module = ast.parse(text, filename)
    tail = module.body.pop() if isinstance(module.body[-1], ast.Expr) else None
    exec(compile(module, filename, "exec"), ns)
    if tail is not None:
        ns["_"] = eval(compile(ast.Expression(tail.value), filename, "eval"), ns)
