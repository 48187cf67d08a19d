// The open queues of an emulated device, by the number that identifies their ios in the model. Not thread-safe: its
// device's lock guards it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace spillway::device {

// REQUIRES: OneQueue(device, number) creates a queue, and its destructor calls close(number).
template <class OneQueue>
class QueueRegistry {
 public:
  // A new queue of `device` under the lowest free number, so that numbers stay small when many queues are opened and
  // closed.
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

  // REQUIRES: the queue of this number is open and has nothing in the model
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
