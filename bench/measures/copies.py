"""What the look at a tensor.copy_() costs while recording with attribution: CPU time, on and off within a process."""
import launch
import pairs
from rows import Row, ns_text, ratio_text


def measure(size):
    command = launch.program("copies.py", "--tool", "gpumemprof", "--pairs", size["hook_pairs"])
    taken = launch.run_recorded(command)["pairs"]
    on, off = ([pair[key] for pair in taken] for key in ("on_cpu_s", "off_cpu_s"))
    about = f"one `tensor.copy_()` of 64 numbers with attribution, CPU time, {len(taken)} pairs"
    return [Row(f"{about}: on − off", ns_text(pairs.difference(on, off).scaled(1e9)), section="more", raw=taken),
            Row(f"{about}: on ÷ off", ratio_text(pairs.ratio(on, off)), section="more")]
