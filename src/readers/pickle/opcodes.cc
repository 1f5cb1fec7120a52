#include "readers/pickle/opcodes.h"

#include <cstdio>

namespace gpumemprof::pickle {
namespace {

struct Refused {
  uint8_t opcode;
  const char* name;
};

// What makes Python import modules, call functions or set state when it loads a pickle.
constexpr Refused kRunsCode[] = {
    {'c', "GLOBAL"},    {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},
    {'b', "BUILD"},     {'i', "INST"},          {'o', "OBJ"},
    {0x81, "NEWOBJ"},   {0x92, "NEWOBJ_EX"},    {'P', "PERSID"},
    {'Q', "BINPERSID"}, {0x82, "EXT1"},         {0x83, "EXT2"},
    {0x84, "EXT4"},     {0x97, "NEXT_BUFFER"},  {0x98, "READONLY_BUFFER"},
};

// Harmless, but of protocols 0 and 1, or of no use to a writer of plain data.
constexpr Refused kUnused[] = {
    {'0', "POP"},     {'1', "POP_MARK"},  {'2', "DUP"},
    {'F', "FLOAT"},   {'I', "INT"},       {'L', "LONG"},
    {'S', "STRING"},  {'T', "BINSTRING"}, {'U', "SHORT_BINSTRING"},
    {'V', "UNICODE"}, {'g', "GET"},       {'p', "PUT"},
};

}  // namespace

std::string why_refused(uint8_t opcode) {
  for (const Refused& refused : kRunsCode) {
    if (refused.opcode != opcode) continue;
    return std::string("the pickle's opcode ") + refused.name +
           " could run code when Python loads it, and PyTorch snapshots never contain it: refused";
  }
  for (const Refused& refused : kUnused) {
    if (refused.opcode != opcode) continue;
    return std::string("the pickle's opcode ") + refused.name +
           " does not occur in snapshots: refused";
  }
  char text[64];
  std::snprintf(text, sizeof text, "0x%02x is not a pickle opcode", opcode);
  return text;
}

}  // namespace gpumemprof::pickle
