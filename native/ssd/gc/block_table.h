// Erase blocks: state and wear of each, the free ones by plane, and the victim policies of garbage collection.
//
// Victim policies (the choice is among all closed blocks of the drive):
//   greedy        fewest valid units
//   fifo          closed first
//   d-choices     fewest valid units among d closed blocks drawn at random (Van Houdt 2013)
//   cost-benefit  largest (1 - u) / 2u x age, age since the last invalidation (Kawaguchi et al. 1995)
// Greedy and cost-benefit keep closed blocks in lists by valid count. Blocks enter a list at its tail when an
// invalidation moves them there, so each list is in order of last invalidation, and its head is its oldest: the best of
// its count under cost-benefit.
#pragma once

#include <cstdint>
#include <vector>

#include "ssd/interface/config.h"
#include "ssd/structures/flat_array.h"
#include "ssd/structures/random.h"

namespace spillway::ssd {

inline constexpr std::uint32_t kNoBlock = ~std::uint32_t{0};

// cached: a full block of the SLC cache that has yet to be folded.
enum class BlockState : std::uint8_t { free, open, closed, cached, collecting };

struct Block {
  std::uint32_t valid = 0;   // slots that hold current data
  std::uint32_t erases = 0;  // P/E cycles
  std::uint32_t programmed_pages =
      0;  // pages whose program has finished; the data of later ones is still in the controller
  std::uint32_t previous = kNoBlock;  // within the victim list
  std::uint32_t next = kNoBlock;
  std::uint32_t changed = 0;  // time of the last invalidation, in host and relocation steps (wraps)
  BlockState state = BlockState::free;
  bool slc = false;  // in SLC mode; open or cached
};

// Whether its choice is the best of all closed blocks. If that frees nothing, no other block would.
bool considers_every_block(GcPolicy policy);

class BlockTable {
 public:
  // Valid data is counted in slots: mapping units, or granules if the controller compresses.
  BlockTable(const SsdConfig& config, std::uint32_t blocks);

  Block& operator[](std::uint32_t block) { return blocks_[block]; }
  const Block& operator[](std::uint32_t block) const { return blocks_[block]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(blocks_.size()); }
  std::uint32_t plane_of(std::uint32_t block) const { return block % planes_; }

  // --- Free blocks
  std::uint32_t free_in_plane(std::uint32_t plane) const { return static_cast<std::uint32_t>(free_[plane].size()); }
  std::uint32_t free_total() const { return free_total_; }
  // Opens the plane's free block with the fewest erases (dynamic wear levelling), else the one freed first.
  // REQUIRES: free_in_plane(plane) > 0
  std::uint32_t open(std::uint32_t plane, bool slc);
  // Open → closed: a candidate for collection. In SLC mode open → cached, which is no candidate.
  void close(std::uint32_t block);
  // Closed or cached → collecting: no longer a candidate. The caller may set its valid count.
  void begin_collecting(std::uint32_t block);
  // Collecting → free. Counts the erase. REQUIRES: no valid unit in it.
  void erase(std::uint32_t block);

  // --- Valid data
  void add_valid(std::uint32_t block, std::uint32_t slots = 1) { blocks_[block].valid += slots; }  // REQUIRES: open
  void remove_valid(std::uint32_t block, std::uint32_t slots = 1);
  void add_cached() { ++cached_units_; }  // with each add_valid() of a block in SLC mode
  // Of a cached block: units moved to other blocks.
  void remove_cached(std::uint32_t block, std::uint32_t units) {
    blocks_[block].valid -= units;
    cached_units_ -= units;
  }
  std::uint64_t cached_units() const { return cached_units_; }  // valid in the SLC cache

  // The policy's choice among the closed blocks; kNoBlock if none is closed.
  std::uint32_t pick_victim(Random& random);
  // The closed block with the fewest valid slots, whatever the policy. Examines every block.
  std::uint32_t fewest_valid_closed() const;
  // The closed block with the fewest erases, and the spread between it and the most worn block.
  std::uint32_t least_worn_closed(std::uint32_t* spread) const;

  std::uint64_t erases_total() const { return erases_total_; }
  std::uint32_t erases_max() const { return erases_max_; }

  // Rebuilds free lists and victim lists from the blocks' fields, closed blocks in the given order.
  void rebuild(const std::vector<std::uint32_t>& closed_in_order);
  // Closed blocks in victim-list order, for saving.
  std::vector<std::uint32_t> closed_in_order() const;
  std::uint32_t clock() const { return clock_; }
  void set_clock(std::uint32_t clock) { clock_ = clock; }

 private:
  struct FreeBlock {
    std::uint32_t order;  // erases, or a counter that makes the heap a queue
    std::uint32_t block;
    bool operator<(const FreeBlock& other) const {
      return order != other.order ? order > other.order : block > other.block;  // a min-heap
    }
  };
  struct List {
    std::uint32_t head = kNoBlock;
    std::uint32_t tail = kNoBlock;
  };

  bool keeps_lists() const { return policy_ != GcPolicy::d_choices; }
  std::size_t list_of(const Block& block) const { return policy_ == GcPolicy::fifo ? 0 : block.valid; }
  void link(std::uint32_t block);
  void unlink(std::uint32_t block);
  void add_free(std::uint32_t block);
  std::uint32_t pick_random(Random& random) const;
  std::uint32_t pick_cost_benefit() const;

  GcPolicy policy_;
  std::uint32_t choices_;
  bool dynamic_;
  std::uint32_t planes_;
  std::uint32_t slots_per_block_;
  FlatArray<Block> blocks_;
  std::vector<List> lists_;
  std::vector<std::vector<FreeBlock>> free_;
  std::uint32_t free_total_ = 0;
  std::uint32_t free_order_ = 0;
  std::uint32_t closed_total_ = 0;
  std::uint32_t first_list_ = 0;  // all lists below this one are empty
  std::uint32_t clock_ = 0;
  std::uint64_t cached_units_ = 0;
  std::uint64_t erases_total_ = 0;
  std::uint32_t erases_max_ = 0;
};

}  // namespace spillway::ssd
