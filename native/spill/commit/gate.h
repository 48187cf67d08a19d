// Counts writers inside RocksDB. close() waits until they have left and refuses later ones; `Pass` never blocks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace spillway::spill {

class Gate {
 public:
  // Admits one writer. Converts to false if the gate is closed.
  class Pass {
   public:
    [[gnu::always_inline]] explicit Pass(Gate& gate) : count_(gate.counts_[stripe()].inside) {
      // Sequentially consistent on both sides: either close() sees this writer, or this writer sees the closed gate.
      count_.fetch_add(1, std::memory_order_seq_cst);
      is_in_ = gate.closed_.load(std::memory_order_seq_cst) == 0;
      if (!is_in_) count_.fetch_sub(1, std::memory_order_release);
    }
    [[gnu::always_inline]] ~Pass() {
      if (is_in_) count_.fetch_sub(1, std::memory_order_release);
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    explicit operator bool() const { return is_in_; }

   private:
    std::atomic<std::uint32_t>& count_;
    bool is_in_ = false;
  };

  // Returns when no writer is inside. Calls nest: the gate opens with the last open().
  void close() {
    closed_.fetch_add(1, std::memory_order_seq_cst);
    for (const Count& count : counts_) {
      while (count.inside.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
    }
  }
  void open() { closed_.fetch_sub(1, std::memory_order_release); }
  bool is_closed() const { return closed_.load(std::memory_order_acquire) != 0; }

 private:
  static constexpr std::size_t kStripes = 16;
  // A cache line each, so that writers on different processors do not contend for one.
  struct alignas(64) Count {
    std::atomic<std::uint32_t> inside{0};
  };

  static std::size_t stripe() {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
    return mine;
  }

  std::array<Count, kStripes> counts_;
  std::atomic<std::uint32_t> closed_{0};
};

}  // namespace spillway::spill
