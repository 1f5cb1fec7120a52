"""What the Python half notes of graphs, and that the program does not notice."""

import harness
from tensorflow_helpers import environment, execute, last_json, needs_tensorflow

pytestmark = needs_tensorflow

BEGIN = """
import os, sys, json, gc, weakref
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from gpumemprof._recorded import tf_graphs as _graphs
"""


def run(code, *arguments):
    return last_json(execute([harness.PYTHON, "-c", BEGIN + code, *arguments]))


def test_arming_imports_nothing_and_the_import_hook_takes_itself_away(tmp_path):
    said = last_json(harness.execute([harness.PYTHON, "-c", BEGIN + """
before = list(sys.meta_path)
_graphs.arm(sys.argv[1])
armed = [m for m in ("tensorflow", "numpy") if m in sys.modules]
import tensorflow as tf
ours = [f for f in sys.meta_path if type(f).__module__.startswith("tfmemprof")]
print(json.dumps([armed, len(ours), [f in sys.meta_path for f in before]]))
""", tmp_path], env=environment(), timeout=300))
    assert said == [[], 0, [True] * len(said[2])]


def test_graphs_are_not_kept_alive_and_those_that_are_gone_are_counted(tmp_path):
    said = run("""
_graphs.arm(sys.argv[1])
import tensorflow as tf
def make():
    f = tf.function(lambda x: x * 2)
    f(tf.constant(1.0))
    return weakref.ref(f.get_concrete_function(tf.constant(1.0)).graph)
graph = make()
gc.collect()
kept = tf.function(lambda x: tf.add(x, 3, name="by_three"))
kept(tf.constant(1.0))
print(json.dumps([graph() is None, _graphs.collect().as_json()]))
""", tmp_path)
    is_gone, document = said
    assert is_gone and document["left_out"]["graphs"] >= 1
    assert document["operations"]["by_three"] is not None
    assert "Mul" not in document["operations"] and "mul" not in document["operations"]


def test_operations_of_a_loaded_model_have_no_lines_and_take_none_from_others(tmp_path):
    document = run("""
import tensorflow as tf
class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def call(self, x):
        return tf.add(x, 3.0, name="by_three")
tf.saved_model.save(Model(), sys.argv[1] + "/model")
_graphs.arm(sys.argv[1])
loaded = tf.saved_model.load(sys.argv[1] + "/model")
kept = tf.function(lambda x: tf.add(x, 4.0, name="by_four"))
kept(loaded.call(tf.ones(2)))
print(json.dumps(_graphs.collect().as_json()))
""", tmp_path)
    assert "errors" not in document
    assert document["operations"]["by_three"] is None and document["operations"]["by_four"] is not None


def test_one_name_in_two_places_is_said_to_be_unknown(tmp_path):
    said = run("""
_graphs.arm(sys.argv[1])
import tensorflow as tf
first = tf.function(lambda x: tf.add(x, 3, name="same"))
second = tf.function(lambda x: tf.add(x, 4, name="same"))
first(tf.constant(1.0)), second(tf.constant(1.0))
print(json.dumps(_graphs.collect().as_json()["operations"]["same"]))
""", tmp_path)
    assert said is None


def test_no_time_leaves_operations_out_and_counts_them(tmp_path):
    said = run("""
_graphs.arm(sys.argv[1])
import tensorflow as tf
f = tf.function(lambda x: x * 2)
f(tf.constant(1.0))
nothing = _graphs.collect(max_seconds=-1).as_json()
print(json.dumps([nothing["operations"], nothing["left_out"]["operations"]]))
""", tmp_path)
    assert said[0] == {} and said[1] >= 3


def test_without_a_graph_no_file_is_written(tmp_path):
    folder = tmp_path / "recording"
    folder.mkdir()
    run("_graphs.arm(sys.argv[1]); print(0)", folder)
    assert list(folder.iterdir()) == []


def test_a_call_that_is_compiled_in_one_place_and_not_in_another_is_a_cluster_in_neither(tmp_path):
    said = run("""
from gpumemprof._recorded.tf_clusters import Clusters
class Operation:
    def __init__(self, name, function, compiled):
        self.name, self.type, self._function, self._compiled = name, "PartitionedCall", function, compiled
    def get_attr(self, name):
        return type("Function", (), {"name": self._function})
    @property
    def node_def(self):
        class Node: attr = {"_XlaMustCompile": type("Value", (), {"b": self._compiled})}
        return Node
found = Clusters()
found.add("top", Operation("Call", "__inference_mid_5", False))
found.add("mid", Operation("Call", "__inference_f_3", True))
found.add("other", Operation("only", "__inference_f_3", True))
found.add("other", Operation("two", "__inference_f_3", True))
found.add("third", Operation("two", "__inference_g_4", True))
print(json.dumps(found.by_name()))
""")
    assert said == {"Call/Call": "__inference_f_3", "only": "__inference_f_3"}


def test_scopes_of_graphs_have_the_path_of_keras_layers_and_none_where_graphs_do_not_agree(tmp_path):
    said = run("""
from gpumemprof._recorded import graph_scopes as scopes
import tensorflow as tf
def enter(scope, path):
    with tf.Graph().as_default(), tf.name_scope(scope):
        scopes.note(tf, path)
with tf.name_scope("eager"):
    scopes.note(tf, "model/eager")
enter("a_1", "model/a"), enter("a_1", "model/a"), enter("b", "model/b"), enter("b", "model/b_1")
scopes.MAX_SCOPES = 2
enter("c", "model/c")
print(json.dumps([scopes.paths, scopes.left_out]))
""")
    assert said == [{"a_1": "model/a", "b": None}, 1]


def test_a_deleted_variable_takes_no_lines_from_any_graph(tmp_path):
    said = run("""
_graphs.arm(sys.argv[1])
import tensorflow as tf
def make():
    freed, kept = tf.Variable(1.0, name="freed"), tf.Variable(2.0, name="kept")
    @tf.function
    def step(x):
        freed.assign_add(x, name="to_freed"), kept.assign_add(x, name="to_kept")
    return step.get_concrete_function(tf.constant(1.0)).graph, kept, weakref.ref(freed)
graph, kept, freed = make()
other = tf.function(lambda x: tf.add(x, 3, name="by_three"))
other(tf.constant(1.0))
gc.collect()
print(json.dumps([freed() is None, _graphs.collect().as_json()]))
""", tmp_path)
    is_freed, document = said
    assert is_freed
    assert all(document["operations"][name] is not None for name in ("by_three", "to_kept", "to_freed"))
    assert document["variables"] == {"to_kept": ["kept", None]}
    assert "errors" not in document


def test_a_graph_that_cannot_be_asked_takes_nothing_from_the_others_and_is_said(tmp_path):
    said = run("""
_graphs.arm(sys.argv[1])
import tensorflow as tf
functions = [tf.function(lambda x, n=n: tf.add(x, 3, name=f"by_{n}")) for n in range(3)]
graphs = [f.get_concrete_function(tf.constant(1.0)).graph for f in functions]
def broken():
    raise ValueError("cannot be asked")
graphs[0].get_operations = graphs[1].get_operations = broken
with open(_graphs.write(sys.argv[1])) as file:
    print(file.read())
""", tmp_path)
    assert {name for name in said["operations"] if name.startswith("by_")} == {"by_2", "by_2/y"}
    assert said["errors"] == {"a graph (ValueError: cannot be asked)": 2}
