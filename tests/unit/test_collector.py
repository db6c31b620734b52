import subprocess
import sys

CODE = """
import gc
begun = gc.get_freeze_count()  # Python 3.12 has some of its own
from handler import collector
imported = gc.get_freeze_count()
collector.settle()
settled = gc.get_freeze_count()
print(imported == begun, settled > imported, gc.get_threshold()[0] == collector.YOUNG_OBJECTS, gc.isenabled())
"""


def test_what_the_boot_leaves_is_out_of_the_collectors_sight_and_the_rest_is_not() -> None:
    answer = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["True"] * 4
