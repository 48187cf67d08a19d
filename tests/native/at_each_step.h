// Something that happens whenever the code under test comes to a step of a name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/steps.h"

namespace spillway {

// `what` is called by whoever comes there. One at a time watches.
class AtEach final : public steps::Watcher {
 public:
  AtEach(std::string step, std::function<void()> what) : step_(std::move(step)), what_(std::move(what)) {
    steps::watch(this);
  }
  ~AtEach() override { steps::watch(nullptr); }
  void reached(std::string_view step) override {
    if (step == step_) what_();
  }

 private:
  const std::string step_;
  const std::function<void()> what_;
};

}  // namespace spillway
