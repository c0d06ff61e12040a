"""A process that lives where a warm server would, without Spark: ``PLACE PORT [deaf|brief]``, or
without arguments as `warm.start_server` starts one.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from penstock.engine.session.warm_files import ServerPlace, ServerRecord
from penstock.engine.session.warm_server import OCCUPIED


def main(path: str, port: str, *how: str) -> int:
    """Live until killed; ``deaf``: SIGTERM is not enough; ``brief``: two seconds, as one that ends.

    ``slow``: be there some time before saying so, as Spark is.
    """
    if "deaf" in how:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    place = ServerPlace(Path(path))
    life = place.hold_server()
    if life is None:
        return OCCUPIED
    time.sleep(0.5 if "slow" in how else 0)
    if "brief" not in how:
        record = ServerRecord(os.getpid(), int(port), "t", time.time(), "4.3.0", "local[2]")
        place.write_record(record)
    print("lives", flush=True)
    time.sleep(2 if "brief" in how else 60)
    return 0


if __name__ == "__main__":
    given = sys.argv[1:] or [json.load(sys.stdin)["place"], "1", "slow"]
    sys.exit(main(*given))
