// The distribution of valid pages in an erase block in the steady state of uniform random overwrites. A page here is
// the unit of mapping and overwriting: a mapping unit.
//
// With b pages in an erase block, rho = U / T the share of data pages that are valid, m_i the share of erase blocks
// with i valid pages, S_i = sum of m_j over j >= i:
//
//   d-choices  c i m_i = 1 - S_i^d for i = 1..b, with c such that sum i m_i = rho b; A = 1 / (c rho)  (Van Houdt 2013,
//              from flow balance). Greedy is d → infinity.
//   FIFO       a page of a block that is a share x of the way from youngest to oldest is valid with probability
//              exp(-x / (rho A)), A = 1 / (1 - exp(-1 / (rho A)))  (Xiang and Kurkoski 2011)
//
// Holds for uniform single-page overwrites of all U pages and many erase blocks. Ignores open blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "ssd/interface/config.h"

namespace spillway::ssd {

// Shares m_0..m_b of erase blocks by valid pages, for d choices. REQUIRES: 0 < rho < 1, b >= 1, d >= 1
std::vector<double> d_choices_distribution(double rho, std::uint32_t pages_per_block, double choices);

// The write amplification A of FIFO collection. REQUIRES: 0 < rho < 1
double fifo_write_amplification(double rho);

}  // namespace spillway::ssd
