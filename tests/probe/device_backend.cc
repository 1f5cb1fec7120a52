// A device that is none: PrivateUse1 in the host's memory, every operation done by the CPU's. What
// matters is that autograd gives such a device a thread of its own, which runs no Python, and that
// its allocator reports as an accelerator's does.
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_copy_from_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>

namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
const c10::Device kDevice(kType, 0);

/// The size lies before the block, as a free reports it too.
constexpr size_t kHead = 64;

void release(void* block) {
  if (block == nullptr) return;
  char* base = static_cast<char*>(block) - kHead;
  int64_t size;
  memcpy(&size, base, sizeof size);
  c10::reportMemoryUsageToProfiler(block, -size, 0, 0, kDevice);
  free(base);
}

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    if (size == 0) return {nullptr, nullptr, &release, kDevice};
    char* base = static_cast<char*>(aligned_alloc(kHead, (size + 2 * kHead - 1) / kHead * kHead));
    const auto told = static_cast<int64_t>(size);
    memcpy(base, &told, sizeof told);
    c10::reportMemoryUsageToProfiler(base + kHead, told, 0, 0, kDevice);
    return {base + kHead, base + kHead, &release, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t size) const override {
    memcpy(to, from, size);
  }
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override {
    return c10::Stream(c10::Stream::DEFAULT, kDevice);
  }
  c10::Stream getDefaultStream(c10::Device) const override {
    return c10::Stream(c10::Stream::DEFAULT, kDevice);
  }
  c10::Stream exchangeStream(c10::Stream) const override {
    return c10::Stream(c10::Stream::DEFAULT, kDevice);
  }
  void record(void**, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};

/// Autograd asks the hooks of what PyTorch takes for the accelerator.
struct Hooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isAvailable() const override { return true; }
};

Memory memory;
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);
const bool is_set = [] {
  c10::SetAllocator(kType, &memory);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor make(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                std::optional<at::Device>, std::optional<bool>,
                std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory, kKeys, type.value_or(at::kFloat), format);
}
at::Tensor make_strided(at::IntArrayRef size, at::IntArrayRef stride,
                        std::optional<at::ScalarType> type, std::optional<at::Layout>,
                        std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &memory, kKeys, type.value_or(at::kFloat));
}

/// The same bytes, seen as a tensor of the CPU.
at::Tensor on_cpu(const at::Tensor& tensor) {
  if (tensor.device().is_cpu()) return tensor;
  const size_t bytes = tensor.storage().nbytes();
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes,
                       c10::DataPtr(tensor.storage().mutable_data(), c10::Device(at::kCPU)),
                       nullptr, false);
  auto seen = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  seen.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  return seen;
}
at::Tensor copy(const at::Tensor& from, const at::Tensor& to, bool) {
  on_cpu(to).copy_(on_cpu(from));
  return to;
}
at::Tensor copy_and_resize(const at::Tensor& from, const at::Tensor& to) {
  return copy(from, to, false);
}

void by_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  at::native::cpu_fallback(operation, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &make);
  m.impl("empty_strided", &make_strided);
  m.impl("_copy_from", &copy);
  m.impl("_copy_from_and_resize", &copy_and_resize);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&by_cpu>());
}

}  // namespace
