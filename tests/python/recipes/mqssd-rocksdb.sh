#!/bin/sh
# MQSSD, section 3.3: the drive is preconditioned by writing twice its capacity, 2 TB.
# Section 5.3: keys 1 to 6.4e7 in random order by one thread, then waitforcompaction; 3.2e6 queries or scans of 128 pairs
# by k threads after readtocache. 16-byte keys, 2048-byte values, direct I/O, no compression, all else RocksDB's defaults.
DRIVE=/dev/nvme0n1
DB=/mnt/db
COMMON="--db=$DB --key_size=16 --value_size=2048 --num=64000000 --compression_type=none
  --use_direct_reads=true --use_direct_io_for_flush_and_compaction=true"

fio --name=precondition --filename=$DRIVE --rw=write --bs=128k --size=100% --loops=2 --direct=1

insert() {
  db_bench --benchmarks=filluniquerandom,waitforcompaction $COMMON --threads=1 \
    --max_background_compactions=$1 --subcompactions=$1
}

query() {
  db_bench --benchmarks=readtocache,$2 $COMMON --use_existing_db=1 --threads=$1 --reads=$((3200000 / $1)) --seek_nexts=128
}

for k in 1 2 4 8 16 32; do
  insert $k
  query $k readrandom
  query $k seekrandom
done
