// Profiles as JAX writes them, by hand: for tests and the fuzzer's corpus.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gpumemprof::for_tests {

/// One sample; its stack innermost first, as functions of one file with the line that their place
/// in `stack` is.
struct PprofSample {
  int64_t count = 0;
  int64_t bytes = 0;
  std::string kind = "buffer";
  std::string device = "cpu:0";
  std::vector<std::string> stack = {};
};

class PprofWriter {
 public:
  PprofWriter() { string(""); }

  std::string write(const std::vector<PprofSample>& samples, std::string_view unit = "bytes") {
    protozero::pbf_writer out(bytes_);
    const auto type = [&](std::string_view name, std::string_view of) {
      protozero::pbf_writer message(out, 1);
      message.add_int64(1, string(name));
      message.add_int64(2, string(of));
    };
    type("allocations", "count");
    type("space", unit);
    for (const PprofSample& sample : samples) write_sample(sample);
    for (const std::string& text : strings_) out.add_string(6, text);
    return bytes_;
  }

 private:
  int64_t string(std::string_view text) {
    for (size_t i = 0; i < strings_.size(); ++i) {
      if (strings_[i] == text) return static_cast<int64_t>(i);
    }
    strings_.emplace_back(text);
    return static_cast<int64_t>(strings_.size()) - 1;
  }

  void write_sample(const PprofSample& sample) {
    protozero::pbf_writer out(bytes_);
    std::vector<uint64_t> places;
    for (size_t i = 0; i < sample.stack.size(); ++i) {
      places.push_back(++places_);
      protozero::pbf_writer location(out, 4);
      location.add_uint64(1, places_);
      {
        protozero::pbf_writer line(location, 4);
        line.add_uint64(1, places_);
        line.add_int64(2, static_cast<int64_t>(i));
      }
      location.commit();
      protozero::pbf_writer function(out, 5);
      function.add_uint64(1, places_);
      function.add_int64(2, string(sample.stack[i]));
      function.add_int64(4, string("/srv/x/train.py"));
    }
    const int64_t values[] = {sample.count, sample.bytes};
    protozero::pbf_writer message(out, 2);
    message.add_packed_uint64(1, places.begin(), places.end());
    message.add_packed_int64(2, std::begin(values), std::end(values));
    label(&message, "kind", sample.kind);
    label(&message, "device", sample.device);
  }

  void label(protozero::pbf_writer* sample, std::string_view key, std::string_view value) {
    if (value.empty()) return;
    protozero::pbf_writer message(*sample, 3);
    message.add_int64(1, string(key));
    message.add_int64(2, string(value));
  }

  std::string bytes_;
  std::vector<std::string> strings_;
  uint64_t places_ = 0;
};

/// Buffers of two devices, an executable, stacks: something of everything.
inline std::string small_pprof() {
  return PprofWriter().write(
      {{2, 8'193, "buffer", "cpu:0", {"full", "load_params", "<module>"}},
       {1, 512, "buffer", "TPU_0(process=0,(0,0,0,0))", {"ones", "<module>"}},
       {1, 0, "executable", "", {"compile", "<module>"}}});
}

inline std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace gpumemprof::for_tests
