"""A process that adds reports to a store, 50 commits a second: `-m support.writing DATA NAME`."""

import os
import sys
import time

from rappor.collection import Collection
from rappor.simulate import counts as simulated_counts
from rappor.store import CellKey, open_store
from support.collecting import today
from support.dashboard import folds

PAUSE_SECONDS = 0.02


def main(data: str, name: str) -> None:
    store = open_store(data)
    texts = [each.toml for each in store.definitions() if each.collection == name]
    collection = Collection.from_toml(texts[-1])
    counts = simulated_counts({"a": 1}, collection.params, 10, seed=2)
    cell = CellKey.of(name, collection.version, today().isoformat())
    while True:
        store.add([os.urandom(16)], lambda _: folds([(cell, counts)]), today())
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
