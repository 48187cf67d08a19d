// Brings a drive to the initial state of an experiment, at memory speed.
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>

#include "ssd/ftl/ftl.h"
#include "ssd/gc/steady_distribution.h"

namespace spillway::ssd {
namespace {

// Greedy is d-choices with every block drawn. The recurrence converges long before this many.
constexpr double kGreedyChoices = 1e6;
constexpr std::uint32_t kDrawnAhead = 16;
// Random writes per log after which hybrid mapping's logs no longer depend on how they began. The least recently used
// log is replaced after about as many writes as there are logs.
constexpr std::uint64_t kWritesForEachLog = 4;

// Converts shares of blocks by valid count to one count for each block, by quantile.
std::vector<std::uint32_t> counts_by_quantile(const std::vector<double>& shares, std::uint32_t blocks) {
  std::vector<std::uint32_t> counts(blocks);
  double cumulated = shares[0];
  std::uint32_t valid = 0;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const double quantile = (block + 0.5) / blocks;
    while (cumulated < quantile && valid + 1 < shares.size()) cumulated += shares[++valid];
    counts[block] = valid;
  }
  return counts;
}

// Oldest block first: valid pages are binomial with the age's survival probability (normal approximation).
std::vector<std::uint32_t> fifo_counts(double rho, std::uint32_t b, std::uint32_t blocks, Random& random) {
  const double a = fifo_write_amplification(rho);
  std::vector<std::uint32_t> counts(blocks);
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const double age = 1 - (block + 0.5) / blocks;
    const double p = std::exp(-age / (rho * a));
    const double normal =
        std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(2 * 3.14159265358979323846 * random.uniform());
    const double valid = b * p + normal * std::sqrt(b * p * (1 - p));
    counts[block] = static_cast<std::uint32_t>(std::lround(std::clamp(valid, 0.0, static_cast<double>(b))));
  }
  return counts;
}

}  // namespace

bool Ftl::overwrite(std::uint32_t unit, std::uint8_t slots) {
  if (block_mapping_) {
    block_mapping_->overwrite(unit);
    return true;
  }
  if (streams_[0].open && !fits(streams_[0], slots)) pad_host_step({});
  if (!streams_[0].open && !ensure_clean_space({})) return false;
  write_untimed(unit, slots);
  return true;
}

void Ftl::write_sequentially(std::uint32_t first, std::uint32_t count, std::uint8_t slots) {
  for (std::uint32_t unit = first; unit < first + count; ++unit) {
    [[maybe_unused]] const bool done = overwrite(unit, slots);
    assert(done);
  }
  store_translation_units(first, count);
}

void Ftl::store_translation_units(std::uint32_t first, std::uint32_t count) {
  if (mapping_.holds_everything() || count == 0) return;
  for (std::uint32_t t = translation_unit_of(first); t <= translation_unit_of(first + count - 1); ++t) {
    if (map_[logical_units_ + t] == 0) write_translation_unit({}, t);
  }
}

void Ftl::assume_steady(std::uint32_t count, std::uint8_t slots) {
  assert(mapped_units_ == 0 && blocks_.free_total() == blocks_.size());
  const auto blocks = static_cast<std::uint32_t>(layout_.data_units / slots_per_block_);
  if (count == 0) return;
  if (block_mapping_) {
    assume_steady_in_rows(count);
    return;
  }
  const std::uint32_t units_per_block = pages_per_block_ * (slots_per_page_ / slots);
  if (std::uint64_t{count} + blocks > std::uint64_t{blocks} * units_per_block) {
    write_sequentially(0, count, slots);  // almost no spare space: there is no steady state under random writes
    return;
  }
  scatter(count, steady_valid_counts(count, blocks, units_per_block), slots);
  mapped_units_ = count;
  clean_slots_ -= std::uint64_t{blocks} * slots_per_block_;
  store_translation_units(0, count);
}

// With block and hybrid mapping data rows are always full, so only the rows for overwrites have a steady state. Random
// writes that use each of them several times make it independent of its beginning.
void Ftl::assume_steady_in_rows(std::uint32_t count) {
  write_sequentially(0, count, 1);
  const std::uint64_t logs = std::uint64_t{layout_.log_rows} * dies_;
  for (std::uint64_t i = 0; i < kWritesForEachLog * logs; ++i) {
    block_mapping_->overwrite(static_cast<std::uint32_t>(random_.below(count)));
  }
}

// The number of valid units of each of `blocks` closed blocks, in the order of their closing; the sum is `count`.
std::vector<std::uint32_t> Ftl::steady_valid_counts(std::uint32_t count, std::uint32_t blocks,
                                                    std::uint32_t units_per_block) {
  const double rho = static_cast<double>(count) / (static_cast<double>(blocks) * units_per_block);
  std::vector<std::uint32_t> counts;
  const auto by_choices = [&](double choices) {
    counts = counts_by_quantile(d_choices_distribution(rho, units_per_block, choices), blocks);
    for (std::uint32_t i = blocks; i > 1; --i) std::swap(counts[i - 1], counts[random_.below(i)]);
  };
  switch (config_.gc.policy) {
    case GcPolicy::fifo:
      counts = fifo_counts(rho, units_per_block, blocks, random_);
      break;
    case GcPolicy::d_choices:
      by_choices(config_.gc.choices);
      break;
    case GcPolicy::greedy:
    case GcPolicy::cost_benefit:
      by_choices(kGreedyChoices);
      break;
  }
  auto sum = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  while (sum != count) {
    std::uint32_t& valid = counts[random_.below(blocks)];
    if (sum < count && valid < units_per_block) {
      ++valid;
      ++sum;
    } else if (sum > count && valid > 0) {
      --valid;
      --sum;
    }
  }
  return counts;
}

// Places units 0..count-1 in random order in random pages of the first blocks.
// A page takes as many as fit at that size.
void Ftl::scatter(std::uint32_t count, const std::vector<std::uint32_t>& valid_counts, std::uint8_t slots) {
  const std::uint32_t units_per_page = slots_per_page_ / slots;
  const std::uint32_t units_per_block = pages_per_block_ * units_per_page;
  const Permutation unit_at(count, random_.next());
  std::array<std::uint32_t, kDrawnAhead> drawn;  // a few units ahead, so that their map entries can be prefetched
  std::uint32_t placed = 0;
  const auto draw = [&](std::uint32_t which) {
    const auto unit = static_cast<std::uint32_t>(unit_at(which));
    prefetch(map_.address(unit));
    drawn[which % kDrawnAhead] = unit;
  };
  for (std::uint32_t i = 0; i < std::min(count, kDrawnAhead); ++i) draw(i);
  for (std::uint32_t block = 0; block < valid_counts.size(); ++block) {
    std::uint32_t wanted = valid_counts[block];
    for (std::uint32_t i = 0; i < units_per_block && wanted > 0; ++i) {
      if (random_.below(units_per_block - i) >= wanted) continue;  // selection sampling: all subsets are equally likely
      --wanted;
      const std::uint32_t to =
          block * slots_per_block_ + i / units_per_page * slots_per_page_ + i % units_per_page * slots;
      const std::uint32_t unit = drawn[placed % kDrawnAhead];
      if (placed + kDrawnAhead < count) draw(placed + kDrawnAhead);
      ++placed;
      map_.set(unit, to + 1);
      if (compresses_) slots_[unit] = slots;
      owner_.set(to, unit);
      valid_[to / 64] |= std::uint64_t{1} << (to % 64);
    }
    Block& b = blocks_[block];
    b.state = BlockState::closed;
    b.valid = valid_counts[block] * slots;
    b.programmed_pages = pages_per_block_;
    // A block with v valid units has its next invalidation after U / v host writes on average; so long ago was its last
    // one.
    const double wait = static_cast<double>(count) / std::max(1U, valid_counts[block]);
    const double ago = std::min(-std::log(1 - random_.uniform()) * wait, 2e9);
    b.changed = static_cast<std::uint32_t>(-static_cast<std::int64_t>(ago));  // the current time is 0
  }
  std::vector<std::uint32_t> order(valid_counts.size());
  std::iota(order.begin(), order.end(), 0U);
  if (config_.gc.policy == GcPolicy::cost_benefit) {
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      return static_cast<std::int32_t>(blocks_[a].changed) < static_cast<std::int32_t>(blocks_[b].changed);
    });
  }
  blocks_.rebuild(order);
}

}  // namespace spillway::ssd
