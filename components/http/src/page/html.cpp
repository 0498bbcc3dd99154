#include "page/html.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

/// The length of the character of UTF-8 at the beginning of the text, and its number. 0: there is none.
std::size_t character_at(std::string_view text, std::uint32_t& number) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    number = first;
    return 1;
  }
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  number = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
    number = number << 6U | (byte(i) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = number >= 0xD800 && number <= 0xDFFF;
  return number < least.at(length) || number > 0x10FFFF || is_surrogate ? 0 : length;
}

/// Whether the character changes the direction of text or has no width.
bool is_invisible(std::uint32_t c) {
  constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 15> ranges{{{0x00AD, 0x00AD},
                                                                            {0x061C, 0x061C},
                                                                            {0x115F, 0x1160},
                                                                            {0x180E, 0x180E},
                                                                            {0x200B, 0x200F},
                                                                            {0x2028, 0x202E},
                                                                            {0x2060, 0x2069},
                                                                            {0x2800, 0x2800},
                                                                            {0x3164, 0x3164},
                                                                            {0xFE00, 0xFE0F},
                                                                            {0xFEFF, 0xFEFF},
                                                                            {0xFFA0, 0xFFA0},
                                                                            {0xFFF9, 0xFFFB},
                                                                            {0x1D173, 0x1D17A},
                                                                            {0xE0000, 0xE0FFF}}};
  return std::ranges::any_of(ranges, [&](const auto& range) { return c >= range.first && c <= range.second; });
}

bool is_special(char c) { return c == '&' || c == '<' || c == '>' || c == '"' || c == '\''; }

std::string reference(char c) { return "&#" + std::to_string(int{c}) + ";"; }

std::string number_of(std::uint32_t c) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string text = "\xE2\x9F\xA8U+";  // ⟨
  for (int shift = c > 0xFFFF ? 16 : 12; shift >= 0; shift -= 4)
    text += digits[c >> static_cast<unsigned>(shift) & 15U];
  return text + "\xE2\x9F\xA9";  // ⟩
}

std::string value_of(const Json& row, std::string_view member, Shows shows) {
  const auto found = row.find(std::string(member));
  if (found == row.end() || found->is_null()) return "–";
  switch (shows) {
    case Shows::number:
      return found->is_number_float() ? found->dump() : grouped(found->get<long long>());
    case Shows::seconds:
      return human_age(found->get<long long>());
    case Shows::milliseconds:
      return human_age(found->get<long long>() / 1000);
    case Shows::time: {
      const auto text = found->get<std::string>();
      return text.empty() ? "–" : text.substr(0, text.find('.'));
    }
    case Shows::hash:
      return found->get<std::string>().substr(0, 8);
    case Shows::text:
      break;
  }
  return found->is_string() ? found->get<std::string>() : found->dump();
}

bool is_number(Shows shows) {
  return shows == Shows::number || shows == Shows::seconds || shows == Shows::milliseconds;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    std::uint32_t c = 0;
    const std::size_t length = character_at(text, c);
    if (length == 0 || (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0)) {
      result += replacement;
    } else if (is_invisible(c)) {
      result += number_of(c);
    } else if (length == 1 && is_special(text.front())) {
      result += reference(text.front());
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::string attribute(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (is_special(c)) {
      result += reference(c);
    } else {
      result += c;
    }
  }
  return result;
}

std::string human_age(long long seconds) {
  seconds = std::max(seconds, 0LL);
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < 86'400) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86'400) + "d";
}

std::string grouped(long long number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3) {
    text.insert(static_cast<std::size_t>(at), "\xE2\x80\xAF");  // a narrow space that does not break
  }
  return text;
}

std::string anchor(std::string_view target, std::string_view text) {
  return "<a href=\"" + escaped(target) + "\">" + escaped(text) + "</a>";
}

std::string table(std::string_view caption, const std::vector<Column>& columns, const Json& rows,
                  const CellOf& cell_of) {
  std::string html = "<section><h2>" + escaped(caption) + "</h2>\n";
  if (rows.empty()) return html + "<p class=\"none\">There are none.</p></section>\n";
  html += "<div class=\"scroll\"><table><thead><tr>";
  for (const Column& each : columns) {
    html += "<th scope=\"col\"" + std::string(is_number(each.shows) ? " class=\"number\">" : ">") +
            escaped(each.title) + "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const Json& row : rows) {
    html += "<tr>";
    for (const Column& each : columns) {
      std::string cell = cell_of ? cell_of(row, each.member) : std::string();
      if (cell.empty()) cell = escaped(value_of(row, each.member, each.shows));
      html += (is_number(each.shows) ? "<td class=\"number\">" : "<td>") + cell + "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div></section>\n";
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
