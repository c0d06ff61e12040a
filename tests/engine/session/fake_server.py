"""A process that lives where a warm server would, without Spark: ``PLACE PORT [deaf]``."""

import os
import signal
import sys
import time
from pathlib import Path

from penstock.engine.session.warm_files import ServerPlace, ServerRecord


def main(path: str, port: str, *how: str) -> None:
    """Live until killed; ``deaf``: SIGTERM is not enough."""
    if "deaf" in how:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    place = ServerPlace(Path(path))
    life = place.hold_server()
    assert life is not None
    place.write_record(ServerRecord(os.getpid(), int(port), "t", time.time(), "4.3.0", "local[2]"))
    print("lives", flush=True)
    time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
