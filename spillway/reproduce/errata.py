"""What is wrong in the papers, in a sentence each, by the name that a verdict gives it (T numbers: docs/SOURCES.md)."""

ERRATA = {
    "T1": "MQSSD section 2.2 says s ≪ α of the affine model; it means s ≫ α.",
    "T2": "MQSSD equation 9 has an argument D that is C.",
    "T3": "MQSSD equation 9 divides by the bytes of a file, so its result is per byte, not per pair.",
    "T4": "MQSSD equation 11: a single level touches no more files than there are, here fewer than a file has pairs.",
    "T5": "MQSSD section 5.3.2 names fanout 32 as the fastest for queries and scans; for queries Table 3 says 16.",
    "T6": "MQSSD section 2.2: the best node of a B-tree is (s/α) / ln(s/α) pages, not (s/α) ln(s/α).",
    "T7": "MQSSD Table 4: the single level's time at k = 1 does not fit those beside it.",
    "T8": "MQSSD section 1 and section 3.3.2 state different drops of throughput.",
    "T9": "MQSSD section 5: keys run from 0 to N-1 or from 1 to N; 128 GB are 132 GB or 123 GiB.",
    "T10": "PIO section 3.1: the cost of a batched write is α / k_w; the index is missing.",
    "T11": "PIO appendix A: e^(-m/n) is E_m / n, not E_m, and 37 % of idle channels is its limit for many channels.",
    "T12": "PIO section 2: a gain of 40× to 1900 MB/s and Table 1's latency of 12.4 µs exclude each other.",
    "T13": "PIO section 2: the gains without file system make α 3.3 or 3.4, not 3.0.",
    "T14": "PIO section 2: a drive capped at one rate has α = 1 by the definition; 11 I/Os gain at most 11×.",
    "T28": "MQSSD equations 3, 7 and 8 add throughputs where costs must be added.",
    "T29": "MQSSD Table 2: reads by 8 threads or more are faster than the drive's link, so they are not the drive's.",
    "T30": "MQSSD equation 6 fitted without bounds meets all points and has a pole between them.",
    "T31": "MQSSD Figure 5: the text fits s and t as printed, per percent of pages, where per access is meant.",
}
