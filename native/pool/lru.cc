#include <cassert>
#include <vector>

#include "pool/policy.h"

namespace spillway::pool {
namespace {

// A ring of frames with one sentinel. The frame after it is the least recently used, the one before it the most
// recently.
class Lru final : public Policy {
 public:
  explicit Lru(Frame frames) : links_(frames + std::size_t{1}), ends_(frames) { links_[ends_] = {ends_, ends_}; }

  void loaded(Frame frame, Arrival arrival) override {
    assert(links_[frame].next == kAbsent);
    put_before(arrival == Arrival::demanded ? ends_ : links_[ends_].next, frame);
  }

  void used(Frame frame) override {
    take_out(frame);
    put_before(ends_, frame);
  }

  void visit_in_order(const Visit& visit) const override {
    for (Frame frame = links_[ends_].next; frame != ends_ && visit(frame);) frame = links_[frame].next;
  }

  std::optional<Frame> evict(const IsEvictable& is_evictable) override {
    for (Frame frame = links_[ends_].next; frame != ends_; frame = links_[frame].next) {
      if (!is_evictable(frame)) continue;
      take_out(frame);
      return frame;
    }
    return std::nullopt;
  }

 private:
  static constexpr Frame kAbsent = ~Frame{0};
  struct Link {
    Frame before = kAbsent;
    Frame next = kAbsent;
  };

  void take_out(Frame frame) {
    const Link link = links_[frame];
    assert(link.next != kAbsent);
    links_[link.before].next = link.next;
    links_[link.next].before = link.before;
    links_[frame] = {};
  }

  void put_before(Frame place, Frame frame) {
    const Frame before = links_[place].before;
    links_[frame] = {before, place};
    links_[before].next = frame;
    links_[place].before = frame;
  }

  std::vector<Link> links_;
  Frame ends_;
};

}  // namespace

std::unique_ptr<Policy> make_lru(Frame frames) { return std::make_unique<Lru>(frames); }

}  // namespace spillway::pool
