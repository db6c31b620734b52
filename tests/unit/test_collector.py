import gc
import subprocess
import sys

CODE = """
import gc
from handler import collector
collector.settle()
print(gc.get_freeze_count() > 0, gc.get_threshold()[0] == collector.YOUNG_OBJECTS, gc.isenabled())
"""


def test_what_the_boot_leaves_is_out_of_the_collectors_sight_and_the_rest_is_not() -> None:
    answer = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["True"] * 3
    assert gc.get_freeze_count() == 0, "only where it was asked for"
