"""Advice: which configuration of RocksDB suits a drive, a data set and a mix of operations, and what it will do.

workload.py       what is asked: data, mix, rate, limits       drive.py       what the drive can do
configuration.py  one configuration, as RocksDB's options      space.py       all configurations that are considered
traffic.py        what one does to the drive, in closed form   simulated.py   the same by the simulator of the tree
reads.py          what gets and scans take                     loop.py        clients, processor and drive together
predict.py        all of it as figures with intervals          exact.py       at the rate of puts of the mix
search.py         from hundreds to a ranked few                rank.py        limits, orders, and which limit fails
reasons.py        why each line of the winner is as it is      decide.py      the first of them, or the defaults
options_file.py   RocksDB's OPTIONS files, written and read    others.py      B-trees, buffer pools, compactions at once
words.py          tables and sentences                         verify.py      the advised beside the measured
document.py       the JSON document
"""

from spillway.advise.search import Advice, Request, advise

__all__ = ["Advice", "Request", "advise"]
