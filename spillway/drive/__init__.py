"""Real drives: which ones lie under a path, their own counts of bytes written, and what a run wrote to them.

blocks.py      a path → the physical drives under it, and their counters in sysfs
attributes.py  the attributes of SATA drives that count bytes, with their units
documents.py   what nvme and smartctl print → a reading
reading.py     what a drive says of itself at one time
tools.py       runs nvme and smartctl
span.py        two readings → NAND bytes, as far as the counters' steps allow
watch.py       a run's measured phases: host bytes and NAND bytes of the drives under its directory
"""
