"""A rank without TensorFlow, which does what its arguments say."""

import json
import os
import signal
import sys
import time
from pathlib import Path


def place():
    for prefix in ("EMBEDRA_", "OMPI_COMM_WORLD_"):
        for size in ("WORLD_SIZE", "SIZE"):
            if prefix + size in os.environ:
                return int(os.environ[prefix + "RANK"]), int(
                    os.environ[prefix + size]
                )
    return 0, 1


def end(number, frame):
    del frame
    (folder / f"{number} {rank}").touch()
    sys.exit(5)


rank, size = place()
way, folder = sys.argv[1], Path(sys.argv[2])
print(f"rank {rank} of {size}: {sys.argv[3:]}")
print("an error", file=sys.stderr)
if way == "config":
    config = json.loads(os.environ["TF_CONFIG"])
    assert config["task"] == {"type": "worker", "index": rank}
    assert len(set(config["cluster"]["worker"])) == size
elif way == "fails":
    if rank == 1:
        sys.exit(7)
    (folder / f"pid {rank}").write_text(str(os.getpid()))
    time.sleep(1000)
elif way == "waits":
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    (folder / f"ready {rank}").touch()
    time.sleep(1000)
