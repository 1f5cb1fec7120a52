"""gpumemprof.jax_memory_analysis: what the compiler says, by arithmetic on the shapes."""

import pytest

import harness
from jax_helpers import environment, python


def run(tmp_path, program):
    file = tmp_path / "program.py"
    file.write_text(program)
    (said,) = harness.execute([python(), file], env=environment(tmp_path), timeout=120).ok().printed()
    return said


def test_arguments_outputs_and_aliases_are_the_arrays_own_sizes(tmp_path):
    said = run(tmp_path, """
import dataclasses, json, jax, jax.numpy as jnp
from gpumemprof import jax_memory_analysis
x, w = jnp.ones((256, 512)), jnp.ones((512, 384))
plain = jax_memory_analysis(jax.jit(lambda x, w: x @ w).lower(x, w).compile())
donated = jax_memory_analysis(jax.jit(lambda x: x + 1, donate_argnums=0).lower(x).compile())
print(json.dumps([dataclasses.asdict(plain), dataclasses.asdict(donated)]))
""")
    plain, donated = said
    assert plain["argument_bytes"] == (256 * 512 + 512 * 384) * 4
    assert plain["output_bytes"] == 256 * 384 * 4 and plain["alias_bytes"] == 0
    assert donated["argument_bytes"] == donated["output_bytes"] == donated["alias_bytes"] == 256 * 512 * 4
    assert donated["temp_bytes"] == 0
    if plain["peak_bytes"] is not None:
        assert plain["peak_bytes"] >= plain["argument_bytes"] + plain["output_bytes"]
    assert plain["unknown"] == {k: v for k, v in plain["unknown"].items() if plain[k] is None}


def test_the_peak_has_the_temporaries_that_jaxlib_leaves_out_of_its_own(tmp_path):
    plan = run(tmp_path, """
import dataclasses, json, jax, jax.numpy as jnp
from gpumemprof import jax_memory_analysis
def loss(h, xs):
    return jax.lax.scan(lambda h, x: (jnp.sin(h + x), None), h, xs)[0].sum()
compiled = jax.jit(jax.grad(loss)).lower(jnp.ones((128, 128)), jnp.ones(100)).compile()
print(json.dumps(dataclasses.asdict(jax_memory_analysis(compiled))))
""")
    array = 128 * 128 * 4
    assert plan["temp_bytes"] >= 100 * array  # each step's cosine is saved for the gradient
    assert plan["peak_bytes"] is None or plan["peak_bytes"] >= 102 * array + 100 * 4  # + argument and gradient


class Compiled:
    def __init__(self, said):
        self.said = said

    def memory_analysis(self):
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


class OldStatistics:
    argument_size_in_bytes = 12
    temp_size_in_bytes = -1


@pytest.fixture
def analyse(monkeypatch):
    monkeypatch.syspath_prepend(str(harness.ROOT / "python"))
    from gpumemprof.jax_memory import jax_memory_analysis
    return jax_memory_analysis


def test_what_an_older_jaxlib_does_not_say_is_none_with_the_reason(analyse):
    found = analyse(Compiled(OldStatistics()))
    assert found.argument_bytes == 12
    assert found.peak_bytes is None and found.unknown["peak_bytes"] == "this jaxlib does not give peak_memory_in_bytes"
    assert found.temp_bytes is None and "temp_bytes" in found.unknown


def statistics(peak):
    class Statistics:
        argument_size_in_bytes, output_size_in_bytes, alias_size_in_bytes = 700, 300, 200
        temp_size_in_bytes, peak_memory_in_bytes = 5000, peak
    return Statistics


@pytest.mark.parametrize(("said", "peak"), [(828, 700 + 300 - 200 + 5000), (6000, 6000)])
def test_a_peak_is_at_least_all_that_one_call_allocates(analyse, said, peak):
    assert analyse(Compiled(statistics(said))).peak_bytes == peak


def test_a_backend_that_has_no_answer_is_a_reason_and_no_exception(analyse):
    assert analyse(Compiled(None)).unknown["temp_bytes"] == "the backend does not report a compiled function's memory"
    why = analyse(Compiled(NotImplementedError("not here"))).unknown["temp_bytes"]
    assert why == "the backend cannot report it: NotImplementedError: not here"


def test_a_function_that_is_not_compiled_is_refused_with_what_to_give(analyse):
    with pytest.raises(TypeError, match=r"give jax\.jit\(f\)\.lower\(\*arguments\)\.compile\(\)"):
        analyse(print)


def test_asking_imports_no_jax(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("import sys, json\nfrom gpumemprof import jax_memory_analysis\n"
                    "print(json.dumps([m for m in sys.modules if m.startswith('jax')]))\n")
    (said,) = harness.execute([harness.PYTHON, file], env=environment(tmp_path)).ok().printed()
    assert said == []
