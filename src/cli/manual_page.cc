// The page of the manual, in the macros of man(7).
#include <algorithm>
#include <cstdint>
#include <sstream>

#include "cli/command_shape.h"

namespace gpumemprof {
namespace {

constexpr size_t kInputColumns = 78;

/// One character of UTF-8 as roff writes it; advances `at`.
std::string roff_character(const std::string& text, size_t& at) {
  const unsigned char first = text[at++];
  if (first < 0x80)
    return first == '\\' ? "\\e" : first == '-' ? "\\-" : std::string(1, char(first));
  uint32_t code = first >= 0xf0 ? first & 7 : first >= 0xe0 ? first & 15 : first & 31;
  while (at < text.size() && (text[at] & 0xc0) == 0x80) code = code << 6 | (text[at++] & 0x3f);
  char written[16];
  std::snprintf(written, sizeof written, "\\[u%04X]", code);
  return written;
}

std::string roff(const std::string& text) {
  std::string escaped;
  for (size_t at = 0; at < text.size();) escaped += roff_character(text, at);
  return escaped;
}

/// No line of text may begin as a request does.
std::string safe_line(std::string line) {
  return (line.starts_with('.') || line.starts_with('\'') ? "\\&" : "") + std::move(line);
}

/// Filled text: a sentence begins a line, and lines are short, as those who read the source have
/// it.
std::string filled(const std::string& text) {
  std::istringstream words(text);
  std::string result, line;
  const auto end_line = [&] {
    if (!line.empty()) result += safe_line(line) + '\n';
    line.clear();
  };
  for (std::string word; words >> word;) {
    const std::string escaped = roff(word);
    if (line.size() + 1 + escaped.size() > kInputColumns) end_line();
    line += (line.empty() ? "" : " ") + escaped;
    if (word.ends_with('.') || word.ends_with('?') || word.ends_with('!')) end_line();
  }
  end_line();
  return result;
}

std::string in_capitals(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  return text;
}

/// Lines as they are, set in.
std::string as_it_is(const std::string& lines) {
  return ".PP\n.RS 4\n.nf\n" + lines + ".fi\n.RE\n";
}

std::string manual_option(const OptionShape& option) {
  std::string tag;
  for (const std::string& name : option.names)
    tag += (tag.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  if (!option.type.empty()) tag += " \\fI" + roff(option.type) + "\\fR";
  const std::string text = filled(option.text);
  return ".TP\n" + tag + '\n' + (text.empty() ? "\\&\n" : text);
}

/// Notes are filled; what is set in, such as examples, stays as it is.
std::string manual_footer(const std::string& footer) {
  std::istringstream lines(footer);
  std::string result, paragraph, block;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) result += ".PP\n" + filled(paragraph);
    paragraph.clear();
  };
  const auto end_block = [&] {
    if (!block.empty()) result += as_it_is(block);
    block.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ")) {
      end_paragraph();
      block += safe_line(roff(line.substr(2))) + '\n';
      continue;
    }
    end_block();
    if (line.empty()) {
      end_paragraph();
    } else {
      paragraph += line + ' ';
    }
  }
  end_paragraph();
  end_block();
  return result;
}

std::string manual_command(const ToolShape& tool, const CommandShape& command) {
  std::string text = ".SS " + roff(tool.name + ' ' + command.name) + '\n' + filled(command.text);
  text += as_it_is(roff(tool.name + ' ' + command.name + ' ' + command.usage) + '\n');
  for (const OptionShape& positional : command.positionals) text += manual_option(positional);
  std::string group = command.options.empty() ? "" : command.options.front().group;
  for (const OptionShape& option : command.options) {
    if (option.group != group) text += ".PP\n" + filled(option.group + ':');
    group = option.group;
    text += manual_option(option);
  }
  return text + manual_footer(command.footer);
}

}  // namespace

std::string manual_page(const ToolShape& tool, const std::string& version,
                        const std::string& date) {
  std::string summary = tool.text.substr(0, tool.text.find(':'));
  summary[0] = char(std::tolower(static_cast<unsigned char>(summary[0])));
  std::string text = ".TH " + in_capitals(tool.name) + " 1 " + date + " \"" + tool.name + ' ' + version + "\"\n";
  text += ".SH NAME\n" + tool.name + " \\- " + roff(summary) + '\n';
  text += ".SH SYNOPSIS\n.B " + tool.name +
          "\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR...]\n";
  text += ".SH DESCRIPTION\n" + filled(tool.text);
  std::istringstream notes(tool.footer);
  for (std::string line; std::getline(notes, line);) text += ".PP\n" + filled(line);
  text += ".SH OPTIONS\n";
  for (const OptionShape& option : tool.options) text += manual_option(option);
  std::string group;
  for (const CommandShape& command : tool.commands) {
    if (command.group != group) text += ".SH " + in_capitals(command.group) + '\n';
    group = command.group;
    text += manual_command(tool, command);
  }
  return text;
}

}  // namespace gpumemprof
