"""Memory growth, as documented: on for every GPU, as long as it can still be set."""

from __future__ import annotations

from ._tensorflow import is_initialized, loaded_tensorflow
from .devices import visible_gpus


def set_memory_growth() -> dict[str, str]:
    """Lets TensorFlow allocate GPU memory as needed. Returns the result by GPU: "on", or why it did not change.

    Once TensorFlow uses its devices the setting is refused; then it is not attempted, so nothing is printed or raised.
    """
    outcome: dict[str, str] = {}
    tensorflow = loaded_tensorflow()
    for index, gpu in enumerate(visible_gpus() if tensorflow is not None else ()):
        name = f"/GPU:{index}"
        if is_initialized():
            on = _growth_is_on(tensorflow, gpu)
            outcome[name] = "on" if on else "unchanged: TensorFlow already uses its devices"
            continue
        try:
            tensorflow.config.experimental.set_memory_growth(gpu, True)  # type: ignore[union-attr]
            outcome[name] = "on"
        except (ValueError, RuntimeError) as error:  # logical devices with limits of their own, for one
            outcome[name] = f"unchanged: {error}"
    return outcome


def _growth_is_on(tensorflow: object, gpu: object) -> bool:
    try:
        return bool(tensorflow.config.experimental.get_memory_growth(gpu))  # type: ignore[attr-defined]
    except (ValueError, RuntimeError):
        return False
