import pytest
from commands.programs_for_commands import recorded_pid, standing_program


class Standing:
    def __init__(self, folder):
        self.folder, self.pid = folder, recorded_pid(folder)


@pytest.fixture(scope="session")
def standing(tmp_path_factory):
    """A recorded program that holds known tensors and waits."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("standing") / "recording"
    with standing_program(folder):
        yield Standing(folder)
