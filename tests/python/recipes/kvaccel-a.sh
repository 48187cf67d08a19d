# KVAccel, section VI-A, Table IV: workload A is fillrandom with one write thread and no write limit for 600 seconds, with
# 4 B keys and 4 KB values; Table III: memtables of 128 MB, 1, 2 or 4 compaction threads. ext4 on the board (section III).
for threads in 1 2 4; do
  ./db_bench --benchmarks=fillrandom --duration=600 --threads=1 --key_size=4 --value_size=4096 \
    --write_buffer_size=134217728 --max_background_compactions=$threads --histogram --db=/mnt/cosmos
done
