// A run whose events nobody reads any more ends by itself, and does not replace a kept state.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <ostream>
#include <streambuf>
#include <string>

#include "base/file_bytes.h"
#include "temporary_directory.h"
#include "tool/run/command.h"
#include "tool_conversation.h"

namespace spillway::tool {
namespace {

// A pipe whose reader disappears after a number of lines.
class PipeCutShort final : public std::streambuf {
 public:
  explicit PipeCutShort(int lines) : lines_left_(lines) {}
  const std::string& text() const { return text_; }

 protected:
  int_type overflow(int_type letter) override {
    if (lines_left_ <= 0) return traits_type::eof();
    text_ += traits_type::to_char_type(letter);
    if (letter == '\n') --lines_left_;
    return letter;
  }

 private:
  int lines_left_;
  std::string text_;
};

class ToolUnread : public ::testing::Test {
 protected:
  Json request(const std::string& workload) const {
    return {
        {"seed", 1},
        {"directory", temporary_.path("db")},
        {"target",
         {{"kind", "emulated"}, {"pacing", "off"}, {"drive", small_drive("1MiB")}, {"initial", {{"kind", "trimmed"}}}}},
        {"engine", {{"name", "leveldb"}, {"options", {{"compression", "kNoCompression"}}}}},
        {"load", {{"num", 1000}, {"value_bytes", 400}}},
        {"phases", {{{"name", "fill"}, {"workload", workload}}}},
        {"sample_interval_ms", 20},
        {"kept", {{"to", temporary_.path("kept/state")}}}};
  }

  std::map<std::string, std::size_t> kept_files() const {
    std::map<std::string, std::size_t> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(temporary_.path("kept"))) {
      if (entry.is_regular_file()) files[entry.path().string()] = std::hash<std::string>()(file_bytes(entry.path()));
    }
    return files;
  }

  const TemporaryDirectory temporary_{memory_path()};
};

// The phase would complete by itself after a while, and then the state would be replaced.
TEST_F(ToolUnread, EndsInAPhaseAndLeavesTheKeptStateAsItWas) {
  const Outcome filled = outcome_of(
      [&](Events& events, const std::atomic<bool>& stop) { return run_command(request("fillseq"), events, stop); });
  ASSERT_TRUE(filled.status) << filled.status.message();
  const auto before = kept_files();
  ASSERT_FALSE(before.empty());
  std::filesystem::remove_all(temporary_.path("db"));

  Json onto = request("overwrite");
  onto["kept"]["from"] = onto["kept"]["to"];
  onto["phases"][0]["duration_s"] = 20;
  PipeCutShort pipe(3);
  std::ostream out(&pipe);
  std::atomic<bool> stop{false};
  Events events(out, &stop);
  const Status status = run_command(onto, events, stop);
  EXPECT_TRUE(status) << status.message();
  EXPECT_TRUE(stop) << "the phase was done to its end";
  EXPECT_EQ(pipe.text().find("\"result\""), std::string::npos);
  EXPECT_EQ(kept_files(), before);
}

TEST_F(ToolUnread, EndsWhileTheDriveIsPrepared) {
  Json onto = request("overwrite");
  onto["target"]["initial"] = {{"kind", "steady"}};
  onto["phases"][0]["duration_s"] = 20;
  PipeCutShort pipe(1);
  std::ostream out(&pipe);
  std::atomic<bool> stop{false};
  Events events(out, &stop);
  (void)run_command(onto, events, stop);
  EXPECT_TRUE(stop);
  EXPECT_FALSE(std::filesystem::exists(temporary_.path("kept/state")));
}

}  // namespace
}  // namespace spillway::tool
