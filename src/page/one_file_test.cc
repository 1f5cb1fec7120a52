// What a page of one file says of answers that did not fit.
#include "page/one_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "page/bundle.h"
#include "page/service.h"

namespace gpumemprof {
namespace {

std::string note_of(size_t most_bytes) {
  auto file = PageFile::load({GPUMEMPROF_SOURCE_DIR "/tests/fixtures/allocator/falling_2.13.pickle"},
                             {.uses_index = false});
  if (!file) return "";
  std::vector<std::unique_ptr<PageFile>> files;
  files.push_back(std::move(*file));
  PageService service(std::move(files), "0");
  const auto page = one_file_page(service, {.most_bytes = most_bytes});
  if (!page) return "";
  const size_t at = page->find("id=\"gpumemprof-data\">") + 21;
  return nlohmann::json::parse(page->substr(at, page->find("</script>", at) - at))["note"];
}

TEST(OneFile, SaysWhatTheAnswersAreAboutThatDidNotFit) {
  if (!has_page()) GTEST_SKIP() << "this command was built without its page";
  EXPECT_EQ(note_of(10'000'000).find("did not fit"), std::string::npos);
  const std::string none = note_of(0);
  for (const char* about : {"the report (1)", "memory over time (",
                            "what holds memory at one moment (", "steps and other marks (1)"})
    EXPECT_NE(none.find(about), std::string::npos) << none;
  std::smatch told;
  ASSERT_TRUE(std::regex_search(none, told, std::regex("(\\d[\\d,]*) answers did not fit: (.*)\\.")));
  std::string count = told[1], rest = told[2];
  std::erase(count, ',');
  long sum = 0;
  for (std::smatch one; std::regex_search(rest, one, std::regex("\\((\\d+)\\)")); rest = one.suffix())
    sum += std::stol(one[1]);
  EXPECT_EQ(std::stol(count), sum);
}

}  // namespace
}  // namespace gpumemprof
