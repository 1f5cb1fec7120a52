// A report as data: what is said, in the order in which it matters.
//
//   Analysis --describe/--> Document --render/text--------> a terminal, a file, a prompt
//                                    --json/document_json--> the page
//
// What is said is decided in describe/ alone; a renderer chooses nothing but its looks. A text here
// may hold anything: the renderers make it safe to show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gpumemprof {

enum class Tone {
  kPlain,
  kHeadline,  ///< the answer; one a document
  kStrong,
  kBad,      ///< what went wrong, or was lost
  kWarning,  ///< what may mislead
  kNote,
  kDim,  ///< what may be skipped
};

/// Where a page shows the blocks that something is said of.
struct EvidencePlace {
  enum class View : uint8_t { kHolders, kAddressSpace, kWhatIf } view = View::kHolders;
  enum class When : uint8_t {
    kPeak,
    kLeft,     ///< of what the run allocated, what lived after its last allocation
    kRefusal,  ///< `number`: which of the device's
    kEvent,    ///< `number`: of a snapshot's history, right after it
    kLevel,    ///< `number`: the first moment with so many bytes; the peak where there is none
  } when = When::kPeak;
  uint16_t device = 0;  ///< index in Tables::devices
  uint64_t number = 0;
  std::vector<uint32_t> lines = {};        ///< StackTable ids: blocks of one of these lines
  std::string category = {}, module = {};  ///< blocks of it; empty: of any
};

struct Sentence {
  std::string text;
  Tone tone = Tone::kPlain;
  std::string label = {};  ///< said before it: "Note: "
};

/// One point of a list: "warning  cuda:0: 2.00 MiB are kept with every step." and what is to know
/// of it, a sentence each.
struct Item {
  std::string label;  ///< may be empty
  std::string text;
  std::vector<Sentence> details = {};
  Tone tone = Tone::kPlain;
  std::optional<EvidencePlace> evidence = {};
};
struct List {
  std::vector<Item> items;
  size_t label_width = 0;  ///< of text: characters at least
};

/// A call stack, innermost frame first.
struct StackFrame {
  std::string text;        ///< with the whole path
  std::string short_text;  ///< with as much of the path as names the file
  bool is_user_code = false;
  bool is_kept = false;  ///< shown even where frames of libraries are left out
  /// Of C or C++, in a stack that has frames of Python: shown on demand.
  bool is_native = false;
};
struct Stack {
  std::vector<StackFrame> frames;
};

/// Bytes over seconds, of what no other view of the page draws; a text leaves it out.
struct ChartLine {
  std::string name;
  std::vector<double> times_s, bytes;  ///< as many; a figure that is not known is NaN
};
struct Chart {
  std::string title;
  std::vector<ChartLine> lines;
  std::optional<uint64_t> limit_bytes = {};  ///< how much there is
};
/// Of very many points the least and the most of each of a few hundred columns, in order of time.
ChartLine chart_line(std::string name, const std::vector<double>& times_s,
                     const std::vector<double>& bytes);

struct Column {
  std::string title;
  bool is_number = false;  ///< right-aligned
  size_t width = 0;        ///< of text: characters at least
};
struct TableCell {
  std::string text;
  std::string note = {};  ///< beside it, of less weight
  bool is_code = false;
  bool is_strong = false;
  size_t depth = 0;  ///< of a tree
};
struct Part;
struct Row {
  std::vector<TableCell> cells;    ///< as many as columns, or fewer
  std::vector<Part> details = {};  ///< below the last cell; a page shows them when it is opened
  double share = -1;               ///< 0 to 1, drawn as a bar; below 0: none
  std::optional<EvidencePlace> evidence = {};
};
struct Table {
  std::vector<Column> columns;
  std::vector<Row> rows;
  size_t left_out = 0;  ///< rows that are not shown
  std::string noun;     ///< of one row: "and 3 more lines"
};

/// "and 3 more lines"; empty where no row is left out.
std::string left_out_text(const Table& table);

struct Part {
  template <class Kind>
  explicit Part(Kind part) : is(std::in_place_type<Kind>, std::move(part)) {}

  std::variant<Sentence, List, Table, Stack, Chart> is;
};

struct Section {
  std::string title;  ///< of the first one empty: the answer
  std::vector<Part> parts = {};
  bool is_folded = false;  ///< on a page, shown when it is opened
  std::optional<EvidencePlace> evidence = {};

  template <class Kind>
  void add(Kind part) {
    parts.emplace_back(std::move(part));
  }
};

struct Document {
  std::string title;
  std::vector<Section> sections;

  /// A section without parts says nothing and is left out.
  void add(Section section) {
    if (!section.parts.empty()) sections.push_back(std::move(section));
  }
};

}  // namespace gpumemprof
