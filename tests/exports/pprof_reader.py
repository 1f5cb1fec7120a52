"""Profiles of pprof, read by the descriptor that its publishers made."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest


def pprof_profile():
    """The message of profile.proto as its publishers describe it: the descriptor in PyPI's pypprof."""
    spec = importlib.util.find_spec("pypprof")
    pytest.importorskip("google.protobuf")
    if spec is None:
        pytest.skip("needs pypprof: scripts/setup tests installs it")
    from google.protobuf import descriptor_pool, message_factory

    source = (Path(spec.submodule_search_locations[0]) / "profile_pb2.py").read_text()
    # The package's own code is too old for today's protobuf; the descriptor in it is not.
    (literal,) = re.findall(r"serialized_pb=_b\((.*?)\)\s*\)", source, re.DOTALL)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile("".join(ast.literal_eval(f"({literal})")).encode("latin1"))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))


def pprof_stacks(profile, value):
    """{stack, innermost first, as `file:line function`: value}."""
    text = profile.string_table
    functions = {f.id: f for f in profile.function}
    frames = {}
    for location in profile.location:
        (line,) = location.line
        function = functions[line.function_id]
        name = f"{text[function.filename]}:{line.line} {text[function.name]}"
        frames[location.id] = name
    return {tuple(frames[i] for i in s.location_id): s.value[value] for s in profile.sample if s.value[value]}
