// Small profiles written by protozero, in the order in which TensorFlow writes fields.
#pragma once

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

namespace gpumemprof::for_tests {

struct XplaneEvent {
  int64_t time_ps = 0;
  bool is_alloc = true;
  int64_t address = 0;
  int64_t size_bytes = 0;
  int64_t requested_bytes = 0;
  int64_t total_bytes = 0;
  std::string operation;
  std::string allocator = "GPU_0_bfc";
  int64_t peak_bytes = 0;
  std::string shape = {};
  int64_t data_type = 0, step = 0;
};
struct XplaneLine {
  std::string name;
  int64_t start_ns = 0;
  std::vector<XplaneEvent> events;
};

/// Text of the property with an even number of letters is written as such, other by reference.
class XplaneWriter {
 public:
  std::string plane(const std::vector<XplaneLine>& lines) {
    std::string bytes;
    protozero::pbf_writer plane(bytes);
    plane.add_string(2, "/host:CPU");
    for (const XplaneLine& line : lines) {
      protozero::pbf_writer message(plane, 3);
      message.add_int64(1, 77);
      message.add_string(2, line.name);
      message.add_int64(3, line.start_ns);
      for (const XplaneEvent& event : line.events) write(protozero::pbf_writer(message, 4), event);
    }
    dictionary(&plane, 4, {"MemoryAllocation", "MemoryDeallocation", "Other"});
    dictionary(&plane, 5, names_);
    return bytes;
  }

  static std::string space(const std::string& plane, uint64_t started_at_ns = 0) {
    std::string bytes;
    protozero::pbf_writer space(bytes);
    space.add_message(1, plane);
    if (started_at_ns != 0) {
      protozero::pbf_writer environment(space, 1);
      environment.add_string(2, "Task Environment");
      dictionary(&environment, 5, {"profile_start_time"});
      protozero::pbf_writer property(environment, 6);
      property.add_int64(1, 1);
      property.add_uint64(3, started_at_ns);
    }
    space.add_string(4, "host");
    return bytes;
  }

 private:
  static void dictionary(protozero::pbf_writer* plane, uint32_t tag,
                         const std::vector<std::string>& names) {
    for (size_t i = 0; i < names.size(); ++i) {
      protozero::pbf_writer entry(*plane, tag);
      entry.add_int64(1, static_cast<int64_t>(i + 1));
      protozero::pbf_writer value(entry, 2);
      value.add_int64(1, static_cast<int64_t>(i + 1));
      value.add_string(2, names[i]);
    }
  }
  int64_t number_of(const std::string& name) {
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return static_cast<int64_t>(i + 1);
    }
    names_.push_back(name);
    return static_cast<int64_t>(names_.size());
  }
  void integer(protozero::pbf_writer* event, const std::string& name, int64_t value) {
    protozero::pbf_writer stat(*event, 4);
    stat.add_int64(1, number_of(name));
    stat.add_int64(4, value);
  }
  void text(protozero::pbf_writer* event, const std::string& name, const std::string& value) {
    if (value.empty()) return;
    protozero::pbf_writer stat(*event, 4);
    stat.add_int64(1, number_of(name));
    if (value.size() % 2 == 0) return stat.add_string(5, value);
    stat.add_uint64(7, static_cast<uint64_t>(number_of(value)));
  }
  void write(protozero::pbf_writer message, const XplaneEvent& event) {
    message.add_int64(1, event.is_alloc ? 1 : 2);
    message.add_int64(2, event.time_ps);
    text(&message, "allocator_name", event.allocator);
    integer(&message, "bytes_allocated", event.total_bytes);
    integer(&message, "peak_bytes_in_use", event.peak_bytes);
    integer(&message, "requested_bytes", event.requested_bytes);
    integer(&message, "allocation_bytes", event.size_bytes);
    integer(&message, "addr", event.address);
    text(&message, "tf_op", event.operation);
    if (event.shape.empty()) return;
    integer(&message, "id", event.step);
    integer(&message, "data_type", event.data_type);
    text(&message, "shape", event.shape);
  }

  std::vector<std::string> names_;
};

/// Two threads and two allocators; one block from before is freed, and 100 bytes of before stay.
inline std::string small_xplane() {
  XplaneWriter writer;
  return XplaneWriter::space(writer.plane({{"python",
                                            500,
                                            {{.time_ps = 2'000'000,
                                              .address = 0x1000,
                                              .size_bytes = 512,
                                              .requested_bytes = 400,
                                              .total_bytes = 868,
                                              .operation = "model/dense_1/MatMul",
                                              .peak_bytes = 868,
                                              .shape = "[20,5]",
                                              .data_type = 1,
                                              .step = -7},
                                             {.time_ps = 9'000'000,
                                              .is_alloc = false,
                                              .address = 0x1000,
                                              .size_bytes = 512,
                                              .requested_bytes = 400,
                                              .total_bytes = 100,
                                              .peak_bytes = 868}}},
                                           {"tf_Compute",
                                            600,
                                            {{.time_ps = 5'000'000,
                                              .is_alloc = false,
                                              .address = 0x2000,
                                              .size_bytes = 256,
                                              .requested_bytes = 8,
                                              .total_bytes = 612,
                                              .operation = "Cast",
                                              .peak_bytes = 868},
                                             {.time_ps = 6'000'000,
                                              .address = 0x2000,
                                              .size_bytes = 256,
                                              .requested_bytes = 256,
                                              .total_bytes = 256,
                                              .operation = "Fill",
                                              .allocator = "cpu_pool"}}}}),
                             1'700'000'000'000'000'000);
}

}  // namespace gpumemprof::for_tests
