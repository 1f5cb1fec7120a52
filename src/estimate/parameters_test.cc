#include "estimate/parameters.h"

#include <gtest/gtest.h>

#include "estimate/closed_form_for_tests.h"
#include "estimate/rank_bytes.h"

namespace gpumemprof {
namespace {

uint64_t elements_of(const WeightGroups& groups) {
  uint64_t sum = 0;
  for (const WeightGroup& group : groups) sum += group.elements();
  return sum;
}

/// All of the model, each weight once.
uint64_t parameter_count(const ModelShape& shape) {
  uint64_t sum = elements_of(embedding_weights(shape)) + elements_of(output_weights(shape));
  for (uint64_t i = 0; i < shape.encoder_layers; ++i)
    sum += elements_of(encoder_layer_weights(shape, i));
  for (uint64_t i = 0; i < shape.layers; ++i) sum += elements_of(layer_weights(shape, i));
  // A further prediction layer: a layer like the last, two norms before it, and the projection that
  // joins its inputs.
  for (uint64_t i = 0; i < shape.extra_prediction_layers; ++i) {
    sum += elements_of(layer_weights(shape, shape.layers - 1)) + 2 * shape.hidden * shape.hidden +
           3 * shape.hidden * (shape.norm_bias ? 2 : 1);
  }
  return sum;
}

uint64_t count_of(const char* config) { return parameter_count(read_case(config).shape); }

// The counts that the models' authors and Hugging Face state. tests/estimate_config compares with
// the library itself.
TEST(Parameters, WellKnownModelsHaveTheirPublishedCounts) {
  EXPECT_EQ(count_of(kLlama2_7b), 6'738'415'616u);
  EXPECT_EQ(count_of(kLlama3_8b), 8'030'261'248u);
  EXPECT_EQ(count_of(kMistral7b), 7'241'732'096u);
  EXPECT_EQ(count_of(kMixtral8x7b), 46'702'792'704u);
  EXPECT_EQ(count_of(kGpt2), 124'439'808u);
  // 671,026,419,200 with the routers' bias, which is no parameter but a buffer of 256 in each of 58
  // layers.
  EXPECT_EQ(count_of(kDeepSeekV3), 671'026'419'200u - 58 * 256);
  EXPECT_EQ(
      count_of(
          R"({"model_type": "t5", "num_layers": 6, "d_model": 512, "num_heads": 8, "d_kv": 64, "d_ff": 2048,
                         "vocab_size": 32128, "n_positions": 512})"),
      60'506'624u);
  EXPECT_EQ(
      count_of(
          R"({"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12,
                         "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512,
                         "architectures": ["BertForMaskedLM"]})"),
      109'514'298u);
  EXPECT_EQ(
      count_of(
          R"({"model_type": "gemma", "num_hidden_layers": 18, "hidden_size": 2048, "num_attention_heads": 8,
              "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 16384, "vocab_size": 256000})"),
      2'506'172'416u);
}

TEST(Parameters, MegatronsLayerIsTwelveSquaresAndThirteenVectors) {
  const ModelShape shape = read_case(kPaperGpt).shape;
  const uint64_t h = 512;
  EXPECT_EQ(elements_of(layer_weights(shape, 0)), 12 * h * h + 13 * h);
  EXPECT_EQ(shape.vocabulary, 50304u) << "padded to a multiple of 128";
  EXPECT_EQ(parameter_count(shape), 12 * (12 * h * h + 13 * h) + (50304 + 1024) * h + 2 * h);
}

/// Elements of one rank, by arithmetic on the layer: matrices split, norms and the biases of
/// row-parallel ones whole.
TEST(Parameters, ARankOfTensorAndPipelineParallelism) {
  const ConfigurationCase read = read_case(kPaperGpt);
  const TrainingSetup setup = setup_of(read, {{"tp", "4"}, {"pp", "2"}});
  const double h = 512;
  const double layer = 12 * h * h / 4 + (3 * h + 4 * h) / 4 + 2 * h + 4 * h;
  const RankContents first = rank_contents(read.shape, setup, 0),
                     last = rank_contents(read.shape, setup, 1);
  EXPECT_EQ(first.layers, (std::vector<uint64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(held_by_rank(read.shape, setup, first).all(), 6 * layer + 50304 * h / 4 + 1024 * h);
  // The tied output layer is a copy on the last rank.
  EXPECT_EQ(held_by_rank(read.shape, setup, last).all(), 6 * layer + 50304 * h / 4 + 2 * h);
}

TEST(Parameters, RanksThatOutnumberTheKeyHeadsShareThem) {
  const ConfigurationCase read = read_case(kLlama3_8b);
  const auto attention = [&](const char* ranks) {
    const WeightGroups groups = layer_weights(read.shape, 0);
    WeightGroups keys;
    for (const WeightGroup& group : groups) {
      if (group.split == WeightSplit::kKeyValue) keys.push_back(group);
    }
    return held_elements(keys, read.shape, setup_of(read, {{"tp", ranks}})).all();
  };
  EXPECT_EQ(attention("1"), 2.0 * 4096 * 1024);
  EXPECT_EQ(attention("8"), 2.0 * 4096 * 128);
  EXPECT_EQ(attention("32"), 2.0 * 4096 * 128);
}

TEST(Parameters, ExpertsAreSplitOverTheirOwnGroup) {
  const ConfigurationCase read = read_case(kMixtral8x7b);
  const RankContents all = rank_contents(read.shape, setup_of(read, {}), 0);
  const HeldElements whole = held_by_rank(read.shape, setup_of(read, {}), all);
  const HeldElements split = held_by_rank(read.shape, setup_of(read, {{"ep", "4"}}), all);
  EXPECT_EQ(whole.expert, 32.0 * 8 * 3 * 4096 * 14336);
  EXPECT_EQ(split.expert, whole.expert / 4);
  EXPECT_EQ(split.dense, whole.dense);
}

TEST(Parameters, LayersThatDoNotDivideGoToTheFirstStages) {
  const ConfigurationCase read = read_case(kPaperGpt);
  const TrainingSetup setup = setup_of(read, {{"pp", "5"}});
  size_t sum = 0;
  for (uint64_t stage = 0; stage < 5; ++stage)
    sum += rank_contents(read.shape, setup, stage).layers.size();
  EXPECT_EQ(sum, 12u);
  EXPECT_EQ(rank_contents(read.shape, setup, 0).layers.size(), 3u);
  EXPECT_EQ(rank_contents(read.shape, setup, 4).layers.size(), 2u);
  // Interleaved: chunks of one layer, every fourth.
  const TrainingSetup chunks = setup_of(read, {{"pp", "4"}, {"vpp", "3"}});
  EXPECT_EQ(rank_contents(read.shape, chunks, 1).layers, (std::vector<uint64_t>{1, 5, 9}));
}

}  // namespace
}  // namespace gpumemprof
