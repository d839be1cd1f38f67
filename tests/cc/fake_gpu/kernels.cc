// Kernels of the fake GPU, enough for small nets: TensorFlow brings those of control flow, variables and lists for any
// device. What has none here goes to the CPU, by soft placement.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/variant_op_registry.h"
#include "tensorflow/core/util/bcast.h"
#include "tests/cc/fake_gpu/memory.h"

namespace fake_gpu {
namespace {

using tensorflow::DEVICE_GPU;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::UnaryVariantOpRegistry;
using tensorflow::Variant;

template <typename T>
T* On(const Tensor& tensor) {
  return reinterpret_cast<T*>(Memory::Get().Content(tensor.data()));
}

// Where element `i` of a tensor of shape `to` comes from in one of shape `from` that is broadcast.
int64_t Origin(int64_t i, const TensorShape& from, const TensorShape& to) {
  int64_t origin = 0;
  int64_t stride = 1;
  for (int axis = 1; axis <= from.dims(); ++axis) {
    const int64_t size = to.dim_size(to.dims() - axis);
    const int64_t own = from.dim_size(from.dims() - axis);
    origin += (own == 1 ? 0 : i % size) * stride;
    stride *= own;
    i /= size;
  }
  return origin;
}

template <typename Function, typename R = float>
class Binary : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor& a = context->input(0);
    const Tensor& b = context->input(1);
    const tensorflow::BCast broadcast(a.shape().dim_sizes(), b.shape().dim_sizes());
    OP_REQUIRES(context, broadcast.IsValid(), absl::InvalidArgumentError("fake GPU: shapes that don't fit"));
    const TensorShape shape = tensorflow::BCast::ToShape(broadcast.output_shape());
    Tensor* result = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &result));
    const float* from_a = On<float>(a);
    const float* from_b = On<float>(b);
    R* to = On<R>(*result);
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      to[i] = Function()(from_a[Origin(i, a.shape(), shape)], from_b[Origin(i, b.shape(), shape)]);
    }
  }
};

template <typename Function>
class Unary : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor& input = context->input(0);
    Tensor* result = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, input.shape(), &result));
    const float* from = On<float>(input);
    float* to = On<float>(*result);
    for (int64_t i = 0; i < input.NumElements(); ++i) to[i] = Function()(from[i]);
  }
};

class MatMul : public OpKernel {
 public:
  explicit MatMul(OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("transpose_a", &transposes_[0]));
    OP_REQUIRES_OK(construction, construction->GetAttr("transpose_b", &transposes_[1]));
  }
  void Compute(OpKernelContext* context) override {
    const Tensor& a = context->input(0);
    const Tensor& b = context->input(1);
    const int64_t rows = a.dim_size(transposes_[0] ? 1 : 0);
    const int64_t inner = a.dim_size(transposes_[0] ? 0 : 1);
    const int64_t columns = b.dim_size(transposes_[1] ? 0 : 1);
    OP_REQUIRES(context, b.dim_size(transposes_[1] ? 1 : 0) == inner,
                absl::InvalidArgumentError("fake GPU: matrices that don't fit"));
    Tensor* result = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({rows, columns}), &result));
    const float* from_a = On<float>(a);
    const float* from_b = On<float>(b);
    float* to = On<float>(*result);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += from_a[transposes_[0] ? k * rows + i : i * inner + k] *
                 from_b[transposes_[1] ? j * inner + k : k * columns + j];
        }
        to[i * columns + j] = sum;
      }
    }
  }

 private:
  bool transposes_[2];
};

class AddN : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* result = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &result));
    for (int64_t i = 0; i < result->NumElements(); ++i) {
      float sum = 0;
      for (int n = 0; n < num_inputs(); ++n) sum += On<float>(context->input(n))[i];
      On<float>(*result)[i] = sum;
    }
  }
};

// What types of variants have registered for GPUs.
class AddVariants : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor result(tensorflow::DT_VARIANT, TensorShape({}));
    Variant& sum = result.scalar<Variant>()();
    sum = context->input(0).scalar<Variant>()();
    const auto* add =
        UnaryVariantOpRegistry::Global()->GetBinaryOpFn(tensorflow::ADD_VARIANT_BINARY_OP, DEVICE_GPU, sum.TypeId());
    OP_REQUIRES(context, add != nullptr, absl::UnimplementedError("fake GPU: variants that can't be added"));
    for (int i = 1; i < num_inputs(); ++i) {
      const Variant left = std::move(sum);
      OP_REQUIRES_OK(context, (*add)(context, left, context->input(i).scalar<Variant>()(), &sum));
    }
    context->set_output(0, result);
  }
};

class ZeroVariant : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Variant& like = context->input(0).scalar<Variant>()();
    Tensor result(tensorflow::DT_VARIANT, TensorShape({}));
    const auto* zeros = UnaryVariantOpRegistry::Global()->GetUnaryOpFn(tensorflow::ZEROS_LIKE_VARIANT_UNARY_OP,
                                                                       DEVICE_GPU, like.TypeId());
    OP_REQUIRES(context, zeros != nullptr, absl::UnimplementedError("fake GPU: a variant without zeros"));
    OP_REQUIRES_OK(context, (*zeros)(context, like, &result.scalar<Variant>()()));
    context->set_output(0, result);
  }
};

// Over all axes, or the first of a matrix.
class Sum : public OpKernel {
 public:
  explicit Sum(OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("keep_dims", &keeps_));
  }
  void Compute(OpKernelContext* context) override {
    const Tensor& input = context->input(0);
    const Tensor& axes = context->input(1);
    const bool over_rows = axes.NumElements() == 1 && input.dims() == 2 && axes.flat<int32_t>()(0) == 0;
    OP_REQUIRES(context, over_rows || axes.NumElements() == input.dims(),
                absl::UnimplementedError("fake GPU: a sum over some axes"));
    TensorShape shape;
    for (int i = 0; i < input.dims(); ++i) {
      if (over_rows && i == 1) {
        shape.AddDim(input.dim_size(1));
      } else if (keeps_) {
        shape.AddDim(1);
      }
    }
    Tensor* result = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &result));
    const int64_t count = result->NumElements();
    if (count == 0) return;
    std::fill_n(On<float>(*result), count, 0.0f);
    for (int64_t i = 0; i < input.NumElements(); ++i) On<float>(*result)[i % count] += On<float>(input)[i];
  }

 private:
  bool keeps_;
};

class Fill : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor& dims = context->input(0);
    TensorShape shape;
    for (int64_t i = 0; i < dims.NumElements(); ++i) shape.AddDim(dims.flat<int32_t>()(i));
    Tensor* result = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &result));
    if (shape.num_elements() == 0) return;
    std::fill_n(On<float>(*result), shape.num_elements(), *On<float>(context->input(1)));
  }
};

template <int kValue>
struct Always {
  float operator()(float) const { return kValue; }
};
struct Square {  // what Grappler makes of x * x
  float operator()(float x) const { return x * x; }
};
struct Tanh {
  float operator()(float x) const { return std::tanh(x); }
};
struct TanhGrad {
  float operator()(float y, float dy) const { return dy * (1 - y * y); }
};

#define REGISTER_FLOAT(op, ...) \
  REGISTER_KERNEL_BUILDER(Name(op).Device(DEVICE_GPU).TypeConstraint<float>("T"), __VA_ARGS__)
REGISTER_FLOAT("AddV2", Binary<std::plus<float>>);
REGISTER_FLOAT("Sub", Binary<std::minus<float>>);
REGISTER_FLOAT("Mul", Binary<std::multiplies<float>>);
REGISTER_FLOAT("Less", Binary<std::less<float>, bool>);
REGISTER_FLOAT("Greater", Binary<std::greater<float>, bool>);
REGISTER_FLOAT("TanhGrad", Binary<TanhGrad>);
REGISTER_FLOAT("Tanh", Unary<Tanh>);
REGISTER_FLOAT("Square", Unary<Square>);
REGISTER_FLOAT("Neg", Unary<std::negate<float>>);
REGISTER_FLOAT("ZerosLike", Unary<Always<0>>);
REGISTER_FLOAT("OnesLike", Unary<Always<1>>);
REGISTER_FLOAT("MatMul", MatMul);
REGISTER_FLOAT("AddN", AddN);
REGISTER_KERNEL_BUILDER(Name("AddN").Device(DEVICE_GPU).TypeConstraint<Variant>("T"), AddVariants);
REGISTER_KERNEL_BUILDER(Name("ZerosLike").Device(DEVICE_GPU).TypeConstraint<Variant>("T"), ZeroVariant);
REGISTER_KERNEL_BUILDER(Name("Sum")
                            .Device(DEVICE_GPU)
                            .TypeConstraint<float>("T")
                            .TypeConstraint<int32_t>("Tidx")
                            .HostMemory("reduction_indices"),
                        Sum);
REGISTER_KERNEL_BUILDER(
    Name("Fill").Device(DEVICE_GPU).TypeConstraint<float>("T").TypeConstraint<int32_t>("index_type").HostMemory("dims"),
    Fill);

}  // namespace
}  // namespace fake_gpu
