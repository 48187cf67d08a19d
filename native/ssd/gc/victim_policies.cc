// The victim policies of garbage collection, each a function from the closed blocks to a choice. block_table.h has
// their definitions. A new policy needs
//   - a GcPolicy in ssd/interface/config.h, spelled in device/preset/preset.cc (for reading, and in the error that
//   lists
//     the policies) and drive_keys.cc (for writing), and in spillway/ssd/simulate.py (GC_POLICIES);
//   - a case in each switch below, and in Ftl::steady_valid_counts (ftl/ftl_precondition.cc): the compiler reports
//   them;
//   - if it uses lists of blocks, an answer in BlockTable::keeps_lists and list_of (block_table.h);
//   - for other differences: conditions on the policy in gc/block_table.cc and ftl/ftl_precondition.cc, and the check
//   of
//     its parameters in interface/config.cc;
//   - a test against its closed form (tests/native/ssd_closed_forms_test.cc).
#include "ssd/gc/block_table.h"

namespace spillway::ssd {

bool considers_every_block(GcPolicy policy) {
  switch (policy) {
    case GcPolicy::greedy:
    case GcPolicy::cost_benefit:
      return true;
    case GcPolicy::fifo:
    case GcPolicy::d_choices:
      return false;
  }
  return false;
}

std::uint32_t BlockTable::pick_victim(Random& random) {
  if (closed_total_ == 0) return kNoBlock;
  switch (policy_) {
    case GcPolicy::fifo:
      return lists_[0].head;
    case GcPolicy::d_choices:
      return pick_random(random);
    case GcPolicy::cost_benefit:
      return pick_cost_benefit();
    case GcPolicy::greedy:
      break;
  }
  while (lists_[first_list_].head == kNoBlock) ++first_list_;
  return lists_[first_list_].head;
}

std::uint32_t BlockTable::pick_random(Random& random) const {
  std::uint32_t best = kNoBlock;
  for (std::uint32_t drawn = 0; drawn < choices_;) {
    const auto block = static_cast<std::uint32_t>(random.below(blocks_.size()));
    if (blocks_[block].state != BlockState::closed) continue;  // when collection is needed, most blocks are closed
    if (best == kNoBlock || blocks_[block].valid < blocks_[best].valid) best = block;
    ++drawn;
  }
  return best;
}

std::uint32_t BlockTable::pick_cost_benefit() const {
  std::uint32_t best = kNoBlock;
  double best_score = -1;
  for (std::uint32_t valid = 0; valid < slots_per_block_; ++valid) {
    const std::uint32_t oldest = lists_[valid].head;
    if (oldest == kNoBlock) continue;
    if (valid == 0) return oldest;
    const double used = static_cast<double>(valid) / slots_per_block_;
    const double age = static_cast<double>(static_cast<std::uint32_t>(clock_ - blocks_[oldest].changed)) + 1;
    const double score = (1 - used) / (2 * used) * age;
    if (score > best_score) {
      best_score = score;
      best = oldest;
    }
  }
  return best != kNoBlock ? best : lists_[slots_per_block_].head;
}

std::uint32_t BlockTable::fewest_valid_closed() const {
  std::uint32_t best = kNoBlock;
  for (std::uint32_t block = 0; block < size(); ++block) {
    if (blocks_[block].state != BlockState::closed) continue;
    if (best == kNoBlock || blocks_[block].valid < blocks_[best].valid) best = block;
  }
  return best;
}

std::uint32_t BlockTable::least_worn_closed(std::uint32_t* spread) const {
  std::uint32_t least_worn = kNoBlock;
  for (std::uint32_t block = 0; block < size(); ++block) {
    if (blocks_[block].state != BlockState::closed) continue;
    if (least_worn == kNoBlock || blocks_[block].erases < blocks_[least_worn].erases) least_worn = block;
  }
  *spread = least_worn == kNoBlock ? 0 : erases_max_ - blocks_[least_worn].erases;
  return least_worn;
}

}  // namespace spillway::ssd
