"""A program with every name of its own replaced by a word that means nothing."""

import ast
import builtins
import random

# Names that PyTorch looks for, and one that belongs to the harness of the programs.
NOT_OURS = {"__init__", "forward", "step", "self", *dir(builtins)}


class _Own(ast.NodeVisitor):
    """What the program defines: classes, functions, arguments, variables, attributes that it sets."""

    def __init__(self):
        self.names, self.imported = set(), set()

    def visit_Import(self, node):
        self.imported |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}

    def visit_ImportFrom(self, node):
        self.imported |= {alias.asname or alias.name for alias in node.names}

    def visit_ClassDef(self, node):
        self.names.add(node.name)
        self.generic_visit(node)

    def visit_FunctionDef(self, node):
        self.names.add(node.name)
        self.generic_visit(node)

    def visit_arg(self, node):
        self.names.add(node.arg)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Store):
            self.names.add(node.id)

    def visit_Attribute(self, node):
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self":
            self.names.add(node.attr)
        self.generic_visit(node)


class _Renamer(ast.NodeTransformer):
    def __init__(self, names):
        self.new = names

    def visit_Name(self, node):
        node.id = self.new.get(node.id, node.id)
        return node

    def visit_arg(self, node):
        node.arg = self.new.get(node.arg, node.arg)
        return node

    def visit_ClassDef(self, node):
        node.name = self.new.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node):
        node.name = self.new.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_Attribute(self, node):
        if isinstance(node.value, (ast.Name, ast.Attribute)) and _root(node) == "self":
            node.attr = self.new.get(node.attr, node.attr)
        return self.generic_visit(node)


def _root(node):
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def renamed(source, seed):
    tree = ast.parse(source)
    own = _Own()
    own.visit(tree)
    chance = random.Random(seed)
    new = {}
    for name in sorted(own.names - own.imported - NOT_OURS):
        new[name] = "".join(chance.choice("bdfgjkvwxz") + chance.choice("aeiouy") for _ in range(5))
    return ast.unparse(_Renamer(new).visit(tree))
