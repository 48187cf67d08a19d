"""Unmodified RocksDB programs with the accelerator: started with it, or with and without it in turns.

library.py     the library that is preloaded, and the program's environment with it
program.py     runs a program to its end and reads what the kernel and the accelerator counted
results.py     what db_bench and YCSB print → throughput and the worst write
comparison.py  turns with and without the accelerator, each with a database of its own
"""
