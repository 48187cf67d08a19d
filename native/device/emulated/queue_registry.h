// The open queues of an emulated device, by the number under which their ios travel through the model. Not thread-safe:
// its device's lock guards it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace spillway::device {

// REQUIRES: OneQueue(device, number) makes a queue, which calls close(number) before it goes.
template <class OneQueue>
class QueueRegistry {
 public:
  // A new queue of `device` under the lowest number that no open queue has, so that numbers stay small however many
  // queues come and go.
  template <class OneDevice>
  std::unique_ptr<OneQueue> open(OneDevice& device) {
    const auto place = std::find(queues_.begin(), queues_.end(), nullptr);
    auto queue = std::make_unique<OneQueue>(device, static_cast<std::uint32_t>(place - queues_.begin()));
    if (place == queues_.end()) {
      queues_.push_back(queue.get());
    } else {
      *place = queue.get();
    }
    return queue;
  }

  // REQUIRES: the queue of this number is open and has nothing in the model.
  void close(std::uint32_t number) { queues_[number] = nullptr; }

  // REQUIRES: the queue of this number is open.
  OneQueue& operator[](std::uint32_t number) { return *queues_[number]; }

  template <class Visit>
  void each(Visit visit) {
    for (OneQueue* const queue : queues_) {
      if (queue != nullptr) visit(*queue);
    }
  }

 private:
  std::vector<OneQueue*> queues_;  // by number; nullptr where one was closed
};

}  // namespace spillway::device
